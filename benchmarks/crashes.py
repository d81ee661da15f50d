"""A seeded campaign of ``kill -9``: what is killed and resumed is, bit for bit, what was never killed.

    python benchmarks/crashes.py [--seed N] [--only N] [--rounds N] [--folder DIR] [--out FILE]

Runs of every policy, method and engine below are killed at some moment, some of them again while they are
resumed, and then resumed to their end. Prints a line for each; the exit status is 1 if one differs from the
uninterrupted run, which is made once for each policy, method and engine.
"""

import argparse
import datetime as dt
import json
import multiprocessing
import os
import platform
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import product
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

import psutil

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from resumed import difference
from robustness import SHARED_MEMORY, left

from edgefl.cli import main as command
from edgefl.core.errors import EdgeflError

POLICIES: dict[str, Any] = {
    "sync": "sync",
    "deadline": {"name": "deadline", "quantile": 0.5, "late": "merge", "allow_partial": True},
    "fedbuff": {"name": "fedbuff", "buffer": 2},
    "fedasync": "fedasync",
}
METHODS = ("fedavg", "spherefed", "fedclassavg")
ENGINES: dict[str, Any] = {
    "loop": "loop",
    "vmapped": "vmapped",
    "processes": {"name": "processes", "workers": 2},
}
SCENARIO: dict[str, Any] = {
    "task": {
        "dataset": "digits",
        "clients": 8,
        "partition": {"name": "dirichlet", "alpha": 0.5, "min_samples": 20},
    },
    "model": {"name": "mlp", "hidden": [16]},
    "local": {"epochs": 2, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
    "fleet": {"like": "home-lab", "jitter": {"name": "half-normal", "scale": 0.3}},
    "evaluate": {"every": 3},
}
# Merges of few updates take less time.
ROUNDS = {"sync": 1, "deadline": 1, "fedbuff": 2, "fedasync": 3}
_WAIT_S, _LEAVING_S, _POLL_S = 300.0, 30.0, 0.003


class Cell(NamedTuple):
    """A kind of run; two of one kind are equal bit for bit."""

    policy: str
    method: str
    engine: str

    def __str__(self) -> str:
        return ", ".join(self)


CELLS = [Cell(*names) for names in product(POLICIES, METHODS, ENGINES)]


class Moment(NamedTuple):
    """When a process is killed.

    Attributes:
        kind: "time", "merges" or "checkpoints" that are seen in the store, "writes" of the process itself,
            which kills itself before the next one, "planned" or "over", when all merges are seen.
        share: of the uninterrupted run's time or merges.
    """

    kind: str
    share: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.share:.0%}" if self.share else self.kind


@dataclass(frozen=True)
class Crash:
    """A run that is killed some times.

    Attributes:
        number: in the campaign, from 1.
        cell: what is run.
        moments: one for each kill: of the run, then of resumes.
        all_processes: whether workers are killed too; else they have to end by themselves.
        minutes: ``checkpoint.minutes``.
    """

    number: int
    cell: Cell
    moments: tuple[Moment, ...]
    all_processes: bool
    minutes: int


def crashes(count: int, seed: int = 0) -> list[Crash]:
    """The campaign: every cell, then cells by chance."""
    rng = random.Random(seed)  # noqa: S311 - nothing is secret
    cells = rng.sample(CELLS, len(CELLS))
    while len(cells) < count:
        cells += rng.sample(CELLS, len(CELLS))
    return [_crash(rng, number, cell) for number, cell in enumerate(cells[:count], start=1)]


def _crash(rng: random.Random, number: int, cell: Cell) -> Crash:
    first = rng.choice(
        ["time", "time", "time", "merges", "checkpoints", "writes", "writes", "planned", "over"]
    )
    again = rng.choices([0, 1, 2], [5, 3, 2])[0]
    # A resumed run has less left to do.
    later = [Moment(rng.choice(["time", "merges", "writes"]), rng.uniform(0.02, 0.5)) for _ in range(again)]
    share = 0.0 if first in {"planned", "over"} else rng.uniform(0.05, 1.0)
    return Crash(number, cell, (Moment(first, share), *later), rng.random() < 0.5, rng.choice([0, 5]))


class Reference(NamedTuple):
    """An uninterrupted run, its merges and its wall time."""

    folder: Path
    merges: int
    wall_s: float


class Process:
    """The command ``edgefl``, in a session of its own; what it prints is kept.

    It is a fork of a server that has loaded everything, which saves the seconds that a fresh one takes.
    """

    _context = multiprocessing.get_context("forkserver")
    _context.set_forkserver_preload(["edgefl.cli", "edgefl.runs.group", "edgefl.data.sources.digits"])

    def __init__(self, arguments: Sequence[str], said: Path, writes: int | None = None) -> None:
        """Starts it.

        Args:
            arguments: of the command.
            said: a file for what it prints.
            writes: before which of its writes it kills itself; None for none.
        """
        self.said = said
        self._process: ForkServerProcess = self._context.Process(
            target=_run, args=(list(arguments), str(said), writes)
        )
        self._process.start()
        assert self._process.pid is not None  # noqa: S101 - it was started
        self.session = self._process.pid

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._process.exitcode is not None

    def wait(self) -> int:
        """Its exit status.

        Raises:
            AssertionError: it does not end.
        """
        self._process.join(_WAIT_S)
        if self._process.exitcode is None:
            self.kill(all_processes=True)
            raise AssertionError(f"no end after {_WAIT_S:g} s: {self.text()}")
        return self._process.exitcode

    def kill(self, *, all_processes: bool) -> None:
        """Kills it, and its workers or not."""
        workers = [
            one for one in psutil.process_iter() if all_processes and _session(one.pid) == self.session
        ]
        with suppress(ProcessLookupError):
            os.kill(self.session, signal.SIGKILL)
        for one in workers:
            with suppress(psutil.Error):
                one.kill()
        self._process.join(_WAIT_S)

    def text(self) -> str:
        """What it printed."""
        return self.said.read_text(encoding="utf-8", errors="replace")


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _run(arguments: list[str], said: str, writes: int | None) -> None:
    """In the process: the command."""
    os.setsid()
    # The server may have been started beside an engine's workers, which are not to be told.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with Path(said).open("wb") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    if writes is not None:
        _kill_before(writes)
    command(arguments)


def _kill_before(writes: int) -> None:
    """Kills this process before so many commits and files that get their names."""
    from edgefl.store.writer import Store

    seen = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen >= writes:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*given, **named)

        return called

    for owner, name in ((Path, "replace"), (Path, "unlink"), (Store, "commit")):
        setattr(owner, name, counted(getattr(owner, name)))


class Campaign:
    """Runs that are killed, and their references.

    Attributes:
        folder: for all of them.
        rounds: how long runs are; see ``ROUNDS``.
        failed: whether one was not the same.
    """

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder = folder
        self.rounds = rounds
        self.failed = False
        self._references: dict[Cell, Reference] = {}

    def reference(self, cell: Cell) -> Reference:
        """The uninterrupted run of a cell.

        Raises:
            AssertionError: it failed.
        """
        if cell not in self._references:
            folder, start = self.folder / "-".join(cell), time.perf_counter()
            process = Process(self.arguments(cell, folder), folder.with_suffix(".said"))
            status, wall_s = process.wait(), time.perf_counter() - start
            if status:
                raise AssertionError(f"{cell}: status {status}: {process.text()}")
            self._references[cell] = Reference(folder, count(folder, "merges"), wall_s)
        return self._references[cell]

    def arguments(self, cell: Cell, out: Path, minutes: int = 5) -> list[str]:
        """The command line of a cell's run."""
        scenario = self.folder / f"{'-'.join(cell)}.json"
        server = {
            "participants": 4,
            "policy": POLICIES[cell.policy],
            "rounds": self.rounds * ROUNDS[cell.policy],
        }
        settings = {
            **SCENARIO,
            "name": "crash",
            "method": cell.method,
            "engine": ENGINES[cell.engine],
            "server": server,
        }
        scenario.write_text(json.dumps(settings), encoding="utf-8")
        return ["run", str(scenario), "--out", str(out), "--set", f"checkpoint.minutes={minutes}"]

    def crashed(self, crash: Crash) -> tuple[str, str]:
        """Kills a run and resumes it to its end.

        Returns:
            How far it was at each kill, and what is wrong; empty if nothing is.
        """
        reference = self.reference(crash.cell)
        folder = self.folder / f"crash-{crash.number}"
        stood: list[str] = []
        try:
            stood.extend(self._killed(crash, folder, reference))
            self.to_end(folder)
            wrong = difference(reference.folder, folder)
        except (AssertionError, EdgeflError) as error:
            wrong = str(error)
        if wrong:
            self.failed = True
        else:
            shutil.rmtree(folder)
        return " > ".join(stood), wrong

    def _killed(self, crash: Crash, folder: Path, reference: Reference) -> Iterator[str]:
        """Starts, kills and kills again; yields how far the run was."""
        said = folder.with_suffix(".said")
        arguments = self.arguments(crash.cell, folder, crash.minutes)
        for nth, moment in enumerate(crash.moments):
            share = moment.share
            while True:
                at = moment._replace(share=share)
                self._kill_at(at, arguments, said, folder, crash, reference)
                if nth or _is_planned(folder):
                    break
                # Nothing was planned yet: that is said, and the run is started anew.
                yield "planning"
                _refused(folder, said)
                shutil.rmtree(folder, ignore_errors=True)
                share += 0.25
            yield f"merge {count(folder, 'merges')}"
            arguments = ["run", "--resume", str(folder)]

    def _kill_at(
        self,
        moment: Moment,
        arguments: Sequence[str],
        said: Path,
        folder: Path,
        crash: Crash,
        reference: Reference,
    ) -> None:
        """Starts a process and kills it at a moment, or lets it end if that never comes.

        Raises:
            AssertionError: it fails before, prints a traceback, or leaves processes.
        """
        before, start = count(folder, "merges"), time.perf_counter()
        writes = 1 + round(2 * moment.share * reference.merges) if moment.kind == "writes" else None
        process = Process(arguments, said, writes)
        while not process.over and not _is_time(moment, folder, before, start, reference):
            time.sleep(_POLL_S)
        # One that ended by itself must have ended well.
        process.kill(all_processes=crash.all_processes)
        status = process.wait()
        if status not in {0, -signal.SIGKILL} or "Traceback" in process.text():
            raise AssertionError(f"status {status}: {process.text()}")
        _check_left(process.session, all_processes=crash.all_processes)

    def to_end(self, folder: Path) -> None:
        """Resumes a run to its end.

        Raises:
            AssertionError: it does not end well.
        """
        process = Process(["run", "--resume", str(folder)], folder.with_suffix(".said"))
        if status := process.wait():
            raise AssertionError(f"resumed: status {status}: {process.text()}")
        _check_left(process.session)


def _is_time(moment: Moment, folder: Path, before: int, start: float, reference: Reference) -> bool:
    """Whether a moment has come; ``before`` are the merges that were there at its start."""
    kind, share = moment
    if kind == "time":
        return time.perf_counter() - start >= share * reference.wall_s
    if kind == "planned":
        return _is_planned(folder)
    if kind == "merges":
        return count(folder, "merges") >= min(before + share * reference.merges, reference.merges)
    if kind == "checkpoints":
        # They are numbered by needs, which are at least as many as merges.
        return count(folder, "checkpoints") > share * reference.merges
    return kind == "over" and count(folder, "merges") >= reference.merges


def _is_planned(folder: Path) -> bool:
    return (folder / "run.sqlite").exists()


def count(folder: Path, table: str) -> int:
    """The merges in the store, or how many needs the last checkpoint has answered."""
    what = "COUNT(*)" if table == "merges" else "MAX(needs)"
    file = folder / "run.sqlite"
    if file.exists():
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as base:
            return int(base.execute(f"SELECT {what} FROM {table}").fetchone()[0] or 0)  # noqa: S608 - our own names
    return 0


def _refused(folder: Path, said: Path) -> None:
    """What was never planned cannot be resumed, which is said in one message.

    Raises:
        AssertionError: it is not.
    """
    process = Process(["run", "--resume", str(folder)], said)
    status = process.wait()
    if status != 2 or "Traceback" in process.text():
        raise AssertionError(f"nothing was planned: status {status}: {process.text()}")


def _check_left(session: int, *, all_processes: bool = False) -> None:
    """Checks that nothing is left of a session.

    Raises:
        AssertionError: something is.
    """
    # Where all were killed, what is left in shared memory is removed by the next run.
    before = set(SHARED_MEMORY.glob("*")) if all_processes else set()
    deadline = time.monotonic() + _LEAVING_S
    while (found := left(before, session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if found:
        raise AssertionError(f"left {', '.join(found)}")


def report(campaign: Campaign, chosen: Sequence[Crash]) -> Iterator[str]:
    """A line for each crash, then how many held."""
    head = f"{'':>3} {'run':32} {'checkpoints':12} {'killed':10} {'at':40} {'stood at':40}"
    yield f"{head} resumed"
    held = 0
    for crash in chosen:
        stood, wrong = campaign.crashed(crash)
        held += not wrong
        often = "each merge" if crash.minutes == 0 else "evaluations"
        whom = "all" if crash.all_processes else "driver"
        at = " > ".join(map(str, crash.moments))
        facts = f"{crash.number:3} {crash.cell!s:32} {often:12} {whom:10} {at:40} {stood:40}"
        yield f"{facts} {wrong or 'the same'}"
    kills = sum(len(crash.moments) for crash in chosen)
    yield f"{held} of {len(chosen)} are the uninterrupted run bit for bit, after {kills} kills"


def main() -> None:
    """Prints a line for each crash, and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, default=60, metavar="N", help="how many crashes (60)")
    parser.add_argument("--rounds", type=int, default=40, help="of the synchronous runs (40)")
    parser.add_argument("--folder", type=Path, help="keeps runs that differ in this directory")
    parser.add_argument("--out", type=Path, help="(benchmarks/results/crashes-DATE.txt)")
    given = parser.parse_args()
    today, start = dt.datetime.now(dt.UTC).date(), time.perf_counter()
    out = given.out or Path(__file__).parent / "results" / f"crashes-{today}.txt"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    lines = [
        f"{machine}, Python {platform.python_version()}; {today}",
        f"python benchmarks/crashes.py --seed {given.seed} --only {given.only} --rounds {given.rounds}",
        "",
    ]
    print(*lines, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        campaign, chosen = Campaign(folder, given.rounds), crashes(given.only, given.seed)
        for line in report(campaign, chosen):
            print(line, flush=True)
            lines.append(line)
    lines.append(f"{time.perf_counter() - start:.0f} s")
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(campaign.failed)


if __name__ == "__main__":
    main()
