"""edgefl's engines compared with Flower, pfl and a bare PyTorch loop, as ratios from one run on one machine.

    python benchmarks/engines.py [W1 W2 W3 GPU start memory]... [--rounds N] [--repeats K]
                                 [--contender NAME]... [--engine NAME[:KEY=VALUE,...]]... [--out FILE]

Every contender trains the same models on the same tensors for the same steps, in a process of its own.
Contenders take turns, K times, so that the noise of a shared machine affects all; the median round counts.
"""

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import environments
import psutil
from peers import workloads
from peers.workloads import WORKLOADS, Workload

from edgefl.core.host import processor

HERE = Path(__file__).parent
PEERS = HERE / "peers"
PARTS = (*WORKLOADS, "start", "memory")

BEST = "edgefl"
"""The fastest of edgefl's engines."""

# The required ratios: workload -> (contender, times as fast as, the fastest of these contenders).
REQUIRED: dict[str, tuple[tuple[str, float, tuple[str, ...]], ...]] = {
    "W1": (
        (BEST, 1.8, ("flower",)),
        (BEST, 1.8, ("flower-tuned",)),
        (BEST, 1.5, ("pfl-1", "pfl-2")),
        (BEST, 1.5, ("bare-2",)),
        (BEST, 0.88, ("bare-halves",)),
    ),
    "W2": ((BEST, 30.0, ("flower",)), (BEST, 30.0, ("flower-tuned",)), (BEST, 20.0, ("pfl-1", "pfl-2"))),
    # On the same cores: on both, and on one each.
    "W3": ((BEST, 0.97, ("bare-2",)), ("edgefl-loop", 0.97, ("bare-1",))),
    "GPU": ((BEST, 8.0, ("edgefl-loop:device=cuda",)),),
}
# The peers' scripts train on the CPU, so edgefl's engines are compared with each other.
GPU_ENGINES = ("loop:device=cuda", "vmapped:device=cuda,group=100")
START_S = 2.5
MEMORY_ROUNDS = 200
LONGEST_S = 3600
NOISY = 1.3
MEMORY_ROOM = 300 * 2**20


@dataclass(frozen=True)
class Contender:
    """A script and its interpreter.

    Attributes:
        name: in tables.
        script: under ``peers/``.
        peer: the peer whose environment it runs in; empty for this one.
        options: further arguments.
        parts: the workloads that it runs.
    """

    name: str
    script: str
    peer: str = ""
    options: tuple[str, ...] = ()
    parts: tuple[str, ...] = tuple(WORKLOADS)

    @property
    def interpreter(self) -> Path:
        """Its interpreter; may create the environment."""
        return environments.python(self.peer) if self.peer else Path(sys.executable)


@dataclass
class Figures:
    """A contender's reports over all repeats.

    Attributes:
        start_s: for each repeat, from the launch to the end of the first round.
        rounds_s: all counted rounds.
        last: the last repeat's whole report.
    """

    start_s: list[float] = field(default_factory=list)
    rounds_s: list[float] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)

    def add(self, report: dict[str, Any], warm_up: int) -> None:
        """Adds a repeat."""
        self.start_s.append(report["start_s"])
        # The first round of the warm-up ends the start-up, and is not among the reported ones.
        self.rounds_s += report["rounds_s"][warm_up - 1 :]
        self.last = report

    @property
    def ms(self) -> float:
        """The median round, in milliseconds."""
        return 1000 * median(self.rounds_s)

    @property
    def noise(self) -> float:
        """The median round over the fastest: near 1 on a quiet machine."""
        return median(self.rounds_s) / min(self.rounds_s)


PEER_CONTENDERS = (
    Contender("bare-1", "bare.py", options=("--threads", "1")),
    Contender("bare-2", "bare.py", options=("--threads", "2")),
    # What two workers can be measured by.
    Contender("bare-halves", "bare.py", options=("--threads", "1", "--halves"), parts=("W1",)),
    # For comparison: a layout that suits convolutions.
    Contender(
        "bare-2-channels-last", "bare.py", options=("--threads", "2", "--channels-last"), parts=("W1", "W3")
    ),
    Contender("flower", "flower_run.py", peer="flower"),
    Contender("flower-tuned", "flower_run.py", peer="flower", options=("--client", "tuned")),
    Contender("pfl-1", "pfl_run.py", peer="pfl", options=("--threads", "1")),
    Contender("pfl-2", "pfl_run.py", peer="pfl", options=("--threads", "2")),
)


def own(engine: str) -> Contender:
    """One of edgefl's engines, such as "loop" or "processes:inner=vmapped,group=25"."""
    return Contender(f"edgefl-{engine}", "edgefl_run.py", options=("--engine", engine))


def measure(contender: Contender, rounds: int, tensors: Path) -> dict[str, Any] | None:
    """One run of a contender; None if it failed, which is reported on standard error."""
    log = tensors.with_suffix(".log")
    command = [contender.interpreter, PEERS / contender.script, *contender.options, "--rounds", str(rounds)]
    with log.open("w") as errors:
        try:
            ran = subprocess.run(
                [*command, "--launched", str(time.time())],
                check=False, stdout=subprocess.PIPE, stderr=errors, text=True, env=_environment(tensors),
                timeout=LONGEST_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            note(f"  {contender.name} was stopped after {LONGEST_S} s")
            return None
    lines = [line for line in ran.stdout.splitlines() if line.startswith('{"start_s"')]
    if ran.returncode == 0 and lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    last_lines = "\n    ".join(log.read_text().strip().splitlines()[-8:])
    note(f"  {contender.name} failed (exit status {ran.returncode}):\n    {last_lines}")
    return None


def _environment(tensors: Path) -> dict[str, str]:
    """The environment of all contenders: the tensors' file, and telemetry off."""
    return {
        **os.environ,
        workloads.FILE: str(tensors),
        "EDGEFL_PATH": str(HERE / "components"),
        "FLWR_HOME": str(tensors.parent / "flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def compare(workload: Workload, contenders: list[Contender], given: argparse.Namespace) -> list[str]:
    """A workload's table, and which required ratios were reached."""
    rounds = (given.rounds or workload.rounds) + workload.warm_up
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder:
        tensors = Path(folder) / f"{workload.name}.npz"
        workloads.write(workload, tensors)
        for repeat in range(given.repeats):
            for contender in (one for one in contenders if workload.name in one.parts):
                report = measure(contender, rounds, tensors)
                if report is None:
                    continue
                found.setdefault(contender.name, Figures()).add(report, workload.warm_up)
                done = f"{workload.name} {repeat + 1}/{given.repeats} {contender.name}"
                counted = report["rounds_s"][workload.warm_up - 1 :]
                note(f"{done}: {1000 * median(counted):.1f} ms a round, start-up {report['start_s']:.1f} s")
    heading = f"{workload.name}: {workload.title}; {given.repeats} x {rounds - workload.warm_up} rounds"
    equal, quiet = _unequal(found, workload.steps(rounds)), _noisy(found)
    return ["", heading, *_table(found), *equal, *quiet, *_judged(workload, found)]


def _table(found: dict[str, Figures]) -> list[str]:
    head = ("contender", "ms a round", "fastest", "x bare-2", "x flower", "x pfl", "start-up s", "steps")
    rows = [(*head, "last loss", "peak MB")]
    for name, figures in found.items():
        rivals = (("bare-2",), ("flower",), ("pfl-1", "pfl-2"))
        ratios = [
            _ratio(best.ms / figures.ms if best else None) for best in (_best(found, r) for r in rivals)
        ]
        row = (f"{figures.ms:.1f}", f"{1000 * min(figures.rounds_s):.1f}", *ratios)
        last = (figures.last["loss"], figures.last["peak_rss_bytes"] / 1e6)
        steps = f"{figures.last['steps']:,}"
        rows.append((name, *row, f"{median(figures.start_s):.1f}", steps, f"{last[0]:.3f}", f"{last[1]:.0f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + row[0].ljust(widths[0])
        + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _best(found: dict[str, Figures], names: tuple[str, ...]) -> Figures | None:
    """The fastest of those that were measured."""
    return min((found[name] for name in names if name in found), key=lambda one: one.ms, default=None)


def _unequal(found: dict[str, Figures], steps: int) -> list[str]:
    """The contenders that did other work, or had another model, than the rest."""
    sizes = {figures.last["parameters"] for figures in found.values()}
    lines = [] if len(sizes) < 2 else [f"  UNEQUAL: models of {sorted(sizes)} parameters"]
    for name, figures in found.items():
        if figures.last["steps"] != steps:
            lines.append(f"  UNEQUAL: {name} took {figures.last['steps']:,} steps of {steps:,}")
    return lines


def _noisy(found: dict[str, Figures]) -> list[str]:
    """The contenders that other programs disturbed; two threads that wait for each other suffer most."""
    return [
        f"  NOISY: {name}: its median round took {figures.noise:.1f} times its fastest"
        for name, figures in found.items()
        if figures.noise > NOISY
    ]


def _judged(workload: Workload, found: dict[str, Figures]) -> list[str]:
    """The required ratios of the contenders that were measured."""
    engines = [name for name in found if name.startswith("edgefl-")]
    fastest = min(engines, key=lambda name: found[name].ms, default="")
    lines = []
    for who, least, rivals in REQUIRED[workload.name]:
        mine, rival = fastest if who == BEST else who, _best(found, rivals)
        if mine in found and rival is not None:
            ratio = rival.ms / found[mine].ms
            what = f"{mine} is {ratio:.2f} times as fast as {_fastest_of(rivals)}"
            noisy = max(found[mine].noise, rival.noise) > NOISY
            outcome = "unclear, see NOISY" if noisy else verdict(ratio >= least)
            lines.append(f"  {what}, required {least:g}: {outcome}")
    return lines


def _fastest_of(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"the faster of {' and '.join(names)}"


def start(given: argparse.Namespace) -> list[str]:
    """The time from launching ``edgefl run quickstart`` to its first merged round; the second run counts."""
    lines = ["", "start: edgefl run quickstart, from launch to the end of the first round"]
    for engine in given.engine or [""]:
        on = f"engine {engine}" if engine else "the scenario's engine"
        command = [sys.executable, PEERS / "edgefl_start.py", *(("--engine", engine) if engine else ())]
        seconds = []
        for _ in range(2):
            timed = [*command, "--launched", str(time.time())]
            ran = subprocess.run(timed, check=False, stdout=subprocess.PIPE, text=True)
            if ran.returncode:
                break
            seconds.append(float(ran.stdout.split()[-1]))
            note(f"start, {on}: {seconds[-1]:.2f} s")
        if len(seconds) < 2:
            lines.append(f"  {on}: failed")
            continue
        what = f"{on}: {seconds[1]:.2f} s with a warm file cache ({seconds[0]:.2f} s before)"
        lines.append(f"  {what}, required below {START_S:g} s: {verdict(seconds[1] < START_S)}")
    return lines


def memory(given: argparse.Namespace) -> list[str]:
    """The loop engine's memory over many rounds of W1, compared with the bare loop's."""
    rounds = given.rounds or MEMORY_ROUNDS
    early = max(rounds // 10, 1)
    with tempfile.TemporaryDirectory() as folder:
        tensors = Path(folder) / "W1.npz"
        workloads.write(WORKLOADS["W1"], tensors)
        note(f"memory: {rounds} rounds of W1 on the loop engine")
        mine = measure(own("loop"), rounds, tensors)
        bare = measure(PEER_CONTENDERS[0], early, tensors)
    if mine is None or bare is None:
        raise SystemExit("memory: a run failed")
    before, after = mine["rss_bytes"][early - 1], mine["rss_bytes"][-1]
    peak, allowed = mine["peak_rss_bytes"], bare["peak_rss_bytes"] + MEMORY_ROOM
    grown = f"{before / 2**20:.0f} MiB after round {early}, {after / 2**20:.0f} MiB after round {rounds}"
    higher = f"{peak / 2**20:.0f} MiB, the bare loop's {bare['peak_rss_bytes'] / 2**20:.0f} MiB"
    return [
        "",
        "memory: resident bytes of edgefl's process, loop engine on W1",
        f"  {grown}: grew by {(after - before) / 2**20:.1f} MiB",
        f"  peak {higher}, required at most 300 MiB more: {verdict(peak <= allowed)}",
    ]


def verdict(reached: bool) -> str:  # noqa: FBT001 - its only argument
    """Whether a requirement was met, in words."""
    return "reached" if reached else "NOT REACHED"


def head(contenders: list[Contender]) -> list[str]:
    """The machine, the date and the versions."""
    cores, load = psutil.cpu_count(), psutil.getloadavg()[0]
    size = psutil.virtual_memory().total / 2**30
    python = platform.python_version()
    machine = f"{processor() or platform.machine()}, {cores} cores, {size:.0f} GiB"
    lines = [
        f"{machine}, {platform.system()}, Python {python}, load before the run {load:.2f}",
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}",
        f"edgefl, bare: {environments.versions(Path(sys.executable), environments.OWN)}",
    ]
    for peer in dict.fromkeys(one.peer for one in contenders if one.peer):
        found = environments.versions(environments.python(peer), environments.PEERS[peer].shown)
        lines.append(f"{peer}, in an environment of its own: {found}")
    return lines


def note(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all but GPU")
    parser.add_argument(
        "--rounds", type=int, help="counted rounds in each repeat; default: the workload's own"
    )
    parser.add_argument("--repeats", type=int, default=3, help="turns of each contender")
    names = [one.name for one in PEER_CONTENDERS]
    parser.add_argument("--contender", action="append", choices=[*names, "edgefl"], help="default: all")
    parser.add_argument("--engine", action="append", help="one of edgefl's; default: loop and auto")
    parser.add_argument("--out", type=Path, help="also write the results to this file")
    given = parser.parse_args()
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; parts are {', '.join(PARTS)}")
    return given


def main() -> None:
    """Measures the requested parts and prints their results."""
    given = arguments()
    # Else every process compiles torch's thousand files anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    parts = given.parts or [part for part in PARTS if part != "GPU"]
    names = given.contender or [*(one.name for one in PEER_CONTENDERS), "edgefl"]
    contenders = [one for one in PEER_CONTENDERS if one.name in names]
    if "edgefl" in names:
        contenders += [own(engine) for engine in given.engine or ("loop", "auto")]
    trained = [WORKLOADS[part] for part in parts if part in WORKLOADS]
    lines = head(contenders if any(workload.name != "GPU" for workload in trained) else [])
    for workload in trained:
        own_only = [own(engine) for engine in given.engine or GPU_ENGINES]
        lines += compare(workload, own_only if workload.name == "GPU" else contenders, given)
    if "start" in parts:
        lines += start(given)
    if "memory" in parts:
        lines += memory(given)
    lines += ["", f"load after the run {psutil.getloadavg()[0]:.2f}"]
    text = "\n".join(lines)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
