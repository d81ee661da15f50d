"""A seeded campaign of what may go wrong around a run: kills, no memory, damaged files, another host.

    python benchmarks/robustness.py [--seed N] [--tries SHARE] [KIND]...

Each kind of attempt is a function of a generator and an empty folder, and returns what is wrong; the suite
makes some attempts of each. Prints a table, and every failure; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from damage import flipped, verify, zeroed

import edgefl
from edgefl.analysis.summary import summaries
from edgefl.core.documents import document
from edgefl.core.errors import EdgeflError, UserError
from edgefl.export.trained import trained
from edgefl.planning.learning import DataAccess
from edgefl.protocol import flatten
from edgefl.store.reader import read

SCENARIO: dict[str, Any] = {
    "name": "robust",
    "task": {
        "dataset": "digits",
        "clients": 7,
        "partition": {"name": "dirichlet", "alpha": 0.5, "min_samples": 20},
    },
    "model": {"name": "mlp", "hidden": [16]},
    "method": "fedclassavg",
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}},
    "fleet": "home-lab",
    "server": {"participants": 5, "rounds": 2},
}
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only looked at
_WAIT_S = 120.0


def bits(folder: Path) -> str:
    """A hash of all that a run has learned and of its jobs' rows, but for wall times."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*s/*.safetensors")):
        digest.update(path.name.encode() + path.read_bytes())
    digest.update(events(folder).encode())
    return digest.hexdigest()


def events(folder: Path) -> str:
    """A run's events as text."""
    with sqlite3.connect(f"file:{folder / 'run.sqlite'}?mode=ro", uri=True) as base:
        return json.dumps(base.execute("select * from events").fetchall())


def ran(folder: Path, engine: Any = "loop", **changes: Any) -> Path:
    """The folder of a run in this process."""
    result = edgefl.run({**SCENARIO, **changes}, engine=engine, out=folder)
    return result.runs[0].folder


def _started(
    folder: Path, engine: str, environment: Mapping[str, str], rounds: int
) -> subprocess.Popen[bytes]:
    """The command, in a session of its own."""
    scenario = folder / "scenario.json"
    text = {**SCENARIO, "server": {"participants": 5, "rounds": rounds}}
    scenario.write_text(json.dumps(text), encoding="utf-8")
    command = [sys.executable, "-m", "edgefl", "run"]
    workers = ["--workers", "2"] if engine == "processes" else []
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            [*command, str(scenario), "--engine", engine, *workers, "--out", str(folder / "run")],
            stdout=said,
            stderr=said,
            env={**os.environ, **environment},
            start_new_session=True,
        )


def _merges(folder: Path) -> int:
    with suppress(sqlite3.Error), sqlite3.connect(f"file:{folder}/run.sqlite?mode=ro", uri=True) as base:
        return int(base.execute("select count(*) from merges").fetchone()[0])
    return 0


def left(before: set[Path], session: int) -> list[str]:
    """What a process left: others of its session, and files in shared memory."""
    here = set(SHARED_MEMORY.glob(f"*-{session}-*")) - before
    return [
        *(f"process {one.pid}" for one in psutil.process_iter() if _session(one.pid) == session),
        *map(str, here),
    ]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


# A signal, how often it is sent, and the exit status.
WAYS = ((signal.SIGKILL, 1, -9), (signal.SIGTERM, 1, 143), (signal.SIGINT, 1, 130), (signal.SIGINT, 5, 130))


def ended(rng: random.Random, folder: Path) -> str:
    """A run is killed, terminated or interrupted: it is readable, and nothing is left of it."""
    how, engine = rng.choice(WAYS), rng.choice(["loop", "processes"])
    return stopped(folder, engine, how, rng.choice([0, 1, 2, 5, 20]), rng.random() * 0.3)


def stopped(folder: Path, engine: str, how: tuple[int, int, int], at: int, wait_s: float) -> str:
    """Sends a signal some times after some merges, to all processes but SIGKILL; what is wrong afterwards."""
    number, times, status = how
    what = f"{engine}, signal {number} x {times} after merge {at}"
    before = set(SHARED_MEMORY.glob("*"))
    driver = _started(folder, engine, {}, 10**5)
    try:
        _merged(driver, folder, at)
        time.sleep(wait_s)
        for _ in range(times):
            with suppress(ProcessLookupError):
                driver.kill() if number == signal.SIGKILL else os.killpg(driver.pid, number)
            time.sleep(0.05)
        found = driver.wait(_WAIT_S)
    finally:
        driver.kill()
        driver.wait()
    if found != status:
        return f"{what}: status {found}, not {status}: {_said(folder)[-500:]}"
    if wrong := _wrong(folder, before, driver.pid, what, readable=at > 0):
        return wrong
    if not at:
        # Perhaps it had not begun.
        return ""
    with read(folder / "run") as reader:
        stands = "killed" if number == signal.SIGKILL else "interrupted"
        return "" if reader.status == stands else f"{what}: it is {reader.status}"


def _merged(driver: subprocess.Popen[bytes], folder: Path, at: int) -> None:
    """Waits until a run has so many merges."""
    deadline = time.monotonic() + _WAIT_S
    while driver.poll() is None and time.monotonic() < deadline:
        if (folder / "run" / "run.sqlite").exists() and _merges(folder / "run") >= at:
            return
        time.sleep(0.02)


def _said(folder: Path) -> str:
    return (folder / "said").read_text(encoding="utf-8", errors="replace")


def _wrong(folder: Path, before: set[Path], session: int, what: str, *, readable: bool = True) -> str:
    """What is wrong after a run: a traceback, processes, shared memory, or that it cannot be read."""
    deadline = time.monotonic() + 30
    while (stays := left(before, session)) and time.monotonic() < deadline:
        time.sleep(0.1)
    if "Traceback" in _said(folder):
        return f"{what}: {_said(folder)[-2000:]}"
    if stays:
        return f"{what}: left {stays}"
    try:
        summaries([folder / "run"])
    except EdgeflError as error:
        return f"{what}: unreadable: {error}" if readable else ""
    return ""


def all_killed(rng: random.Random, folder: Path) -> str:
    """All processes of a run are killed at once: what is left in shared memory is removed by the next run."""
    before = set(SHARED_MEMORY.glob("*"))
    driver = _started(folder, "processes", {}, 10**5)
    _merged(driver, folder, rng.choice([1, 5, 20]))
    time.sleep(rng.random() * 0.3)
    for one in psutil.process_iter():
        if _session(one.pid) == driver.pid:
            one.kill()
    driver.wait()
    # Its own few bytes, which name semaphores, loky leaves.
    before |= set(SHARED_MEMORY.glob(f"sem.loky-{driver.pid}-*"))
    ran(folder / "next", {"name": "processes", "workers": 1})
    return _wrong(folder, before, driver.pid, "all killed")


def starved(rng: random.Random, folder: Path) -> str:
    """A process gets no more memory from some moment on: the run ends right, or says what happened."""
    before = set(SHARED_MEMORY.glob("*"))
    driver = _started(folder, "processes", {}, 30)
    _merged(driver, folder, 1)
    time.sleep(rng.random() * 0.3)
    more = rng.choice([0, 10**5, 10**6, 10**7])
    with suppress(IndexError, psutil.Error):
        process = psutil.Process(driver.pid)
        workers = [one for one in process.children() if "--process-name" in one.cmdline()]
        victim = rng.choice([process, *workers])
        most = victim.memory_info().vms + more
        victim.rlimit(psutil.RLIMIT_AS, (most, most))
    found, what = driver.wait(_WAIT_S), f"{more} bytes more for one"
    if found == 0:
        alone = bits(ran(folder / "alone", server={"participants": 5, "rounds": 30}))
        return "" if bits(folder / "run") == alone else f"{what}: other bits"
    if found != 1 or not ("no more memory" in _said(folder) or "process died" in _said(folder)):
        return f"{what}: status {found}: {_said(folder)[-2000:]}"
    return _wrong(folder, before, driver.pid, what)


def killed_worker(rng: random.Random, folder: Path) -> str:
    """Workers are killed at some moments: the run has the bits that it has without, and leaves nothing."""
    engine = {"name": "processes", "workers": 2, "inner": rng.choice(["loop", "vmapped"])}
    alone = bits(ran(folder / "alone", engine["inner"], server={"participants": 5, "rounds": 6}))
    kills = [(rng.random() * 0.5, rng.randrange(2)) for _ in range(rng.choice([1, 1, 2]))]
    over, killed, before = threading.Event(), list[int](), set(SHARED_MEMORY.glob("*"))

    def kill() -> None:
        while not over.is_set() and not _merges(folder / "run"):
            time.sleep(0.02)
        for wait_s, place in kills:
            time.sleep(wait_s)
            with suppress(IndexError, psutil.Error):
                one = [one for one in psutil.Process().children() if "--process-name" in one.cmdline()][place]
                one.kill()
                killed.append(one.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = bits(ran(folder / "run", engine, server={"participants": 5, "rounds": 6}))
    finally:
        over.set()
        killer.join()
    what = f"{len(killed)} kills, {engine['inner']}"
    if found != alone:
        return f"{what}: other bits"
    stays = set(SHARED_MEMORY.glob(f"edgefl-*-{os.getpid()}-*")) - before
    return f"{what}: left {stays}" if stays else ""


def damaged(rng: random.Random, folder: Path) -> str:
    """Bits, ranges and ends of an ended run's files are changed: found, and no other numbers are read."""
    run = ran(folder / "run", method=rng.choice(["fedavg", "fedclassavg", "scaffold"]))
    whole = _content(run)
    for file in sorted(path for path in run.rglob("*") if path.is_file()):
        content = file.read_bytes()
        for changed in _changes(rng, content) if content else ():
            file.write_bytes(changed)
            found, after = True, whole
            with suppress(UserError):
                found = bool(verify(run))
            with suppress(UserError):
                after = _content(run)
            # What is left of damaged sums may be true of less.
            if not found and file.name != "SHA256SUMS":
                return f"{file.relative_to(run)}: damage was not found"
            if after != whole:
                return f"{file.relative_to(run)}: other numbers were read"
        file.write_bytes(content)
    return "" if verify(run) == [] else "whole files are called damaged"


def _changes(rng: random.Random, content: bytes) -> Iterator[bytes]:
    for _ in range(2):
        yield flipped(content, rng.randrange(8 * len(content)))
        changed = zeroed(content, rng.randrange(len(content)), rng.choice([1, 16, 512, 4096]))
        if changed != content:
            yield changed
    yield content[: rng.randrange(len(content))]


def _content(run: Path) -> Any:
    """A run's numbers and the tensors of its models."""
    model = trained(run, DataAccess())
    trees = {"server": model.server, **model.states}
    tensors = {
        (name, key): leaf.numpy().tobytes()
        for name, tree in trees.items()
        for key, leaf in flatten(tree).items()
    }
    return document(summaries([run])[0]), tensors


def repeated(rng: random.Random, folder: Path) -> str:
    """The command has the same bits under other environments as in this process."""
    environment = {
        "OMP_NUM_THREADS": rng.choice(["1", "2", "4"]),
        "MKL_NUM_THREADS": rng.choice(["1", "3"]),
        "PYTHONHASHSEED": str(rng.randrange(1000)),
        "LC_ALL": rng.choice(["C", "C.UTF-8", "de_DE.UTF-8"]),
        "TZ": rng.choice(["UTC", "Asia/Kathmandu"]),
    }
    engine = rng.choice(["loop", "vmapped"])
    driver = _started(folder, engine, environment, 2)
    if driver.wait(_WAIT_S):
        return f"{engine}, {environment}: {_said(folder)}"
    here = ran(folder / "here", engine)
    return "" if bits(folder / "run") == bits(here) else f"{engine}: other bits under {environment}"


def same_events(rng: random.Random, folder: Path) -> str:
    """Every engine has the events of the null engine."""
    server = {
        "participants": rng.randrange(2, 7),
        "rounds": 2,
        "policy": rng.choice(["sync", {"name": "fedbuff", "buffer": 2}]),
    }
    changes = {"server": server, "seed": rng.randrange(1000), "method": "fedavg"}
    expected = events(ran(folder / "null", "null", **changes))
    for engine in ("loop", "vmapped", rng.choice(["loop", "processes"])):
        out = Path(tempfile.mkdtemp(dir=folder)) / engine
        if events(ran(out, engine, **changes)) != expected:
            return f"{engine} has other events than null: {changes}"
    return ""


def flat_memory(rng: random.Random, folder: Path, rounds: int = 5000) -> str:
    """Memory does not grow with rounds: by less than 8 MB and 1 kB a round in a run's second half."""
    held: list[int] = []

    class Watch(edgefl.Callbacks):
        """Reads the resident memory at each merge."""

        def told(self, so_far: edgefl.Progress) -> None:
            if so_far.what == "merged":
                held.append(psutil.Process().memory_info().rss)

    scenario = {
        **SCENARIO,
        "method": "fedavg",
        "seed": rng.randrange(1000),
        "server": {"participants": 1, "rounds": rounds},
        "evaluate": {"every": rounds},
        "local": {"epochs": 1, "batch_size": 256, "optimizer": {"name": "sgd", "lr": 0.01}},
    }
    edgefl.run(scenario, engine="loop", out=folder / "run", callbacks=Watch())
    grown = held[-1] - held[len(held) // 2]
    return "" if grown < 8_000_000 + 1000 * rounds else f"{grown / 1e6:.1f} MB more after {rounds} rounds"


def not_executed(rng: random.Random, folder: Path) -> str:
    """A tag that other YAML readers execute is refused."""
    mark = folder / "executed"
    call = rng.choice(["os.mkdir", "os.makedirs"])
    tag = rng.choice(
        [f"!!python/object/apply:{call}", f"!!python/object/new:{call}", "!!python/name:os.abort"]
    )
    key = rng.choice(["name", "notes", "title", "task", "fleet"])
    path = folder / "scenario.yaml"
    path.write_text(f"{key}: {tag} ['{mark}']\n", encoding="utf-8")
    try:
        edgefl.run(path, engine="null", out=folder / "run")
    except edgefl.UserError:
        return f"{tag} was executed" if mark.exists() else ""
    return f"{tag} was read"


Attempt = Callable[[random.Random, Path], str]
# How often each is tried by default.
KINDS: dict[str, tuple[Attempt, int]] = {
    "ended": (ended, 30),
    "all_killed": (all_killed, 10),
    "killed_worker": (killed_worker, 30),
    "starved": (starved, 20),
    "damaged": (damaged, 10),
    "repeated": (repeated, 20),
    "same_events": (same_events, 10),
    "flat_memory": (flat_memory, 1),
    "not_executed": (not_executed, 50),
}


def attempted(attempt: Attempt, seed: str) -> str:
    """What is wrong after an attempt."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return attempt(random.Random(seed), Path(folder))  # noqa: S311 - nothing is secret
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not have been raised
            return f"{seed}: {type(error).__name__}: {error}"


def main() -> None:
    """Prints a row for each kind of attempt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tries", type=float, default=1.0, help="a share of the usual number of attempts")
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{'attempt':15} {'held':>9}  seconds  seed {given.seed}", flush=True)
    failures = []
    for kind in given.kinds or KINDS:
        attempt, usual = KINDS[kind]
        tries, start = max(1, round(usual * given.tries)), time.perf_counter()
        wrong = [text for nth in range(tries) if (text := attempted(attempt, f"{given.seed} {kind} {nth}"))]
        held = f"{tries - len(wrong)} of {tries}"
        print(f"{kind:15} {held:>9}  {time.perf_counter() - start:7.1f}", flush=True)
        failures += [f"{kind}: {text}" for text in wrong]
    print(*failures, sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
