"""A seeded campaign of what may go wrong around a run: it is killed, its workers are, its host differs.

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
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

import edgefl
from edgefl.analysis.summary import summaries
from edgefl.core.errors import EdgeflError

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
    here = {path for path in SHARED_MEMORY.glob("edgefl-*") if f"-{session}-" in path.name} - before
    return [
        *(f"process {one.pid}" for one in psutil.process_iter() if _session(one.pid) == session),
        *map(str, here),
    ]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def ended(rng: random.Random, folder: Path) -> str:
    """A run is killed, terminated or interrupted: it is readable, and nothing is left of it."""
    ways = (
        (signal.SIGKILL, 1, -9),
        (signal.SIGTERM, 1, 143),
        (signal.SIGINT, 1, 130),
        (signal.SIGINT, 5, 130),
    )
    how, engine = rng.choice(ways), rng.choice(["loop", "processes"])
    return stopped(folder, engine, how, rng.choice([0, 1, 2, 5, 20]), rng.random() * 0.3)


def stopped(folder: Path, engine: str, how: tuple[int, int, int], at: int, wait_s: float) -> str:
    """Sends a signal some times after some merges; what is wrong with what is left."""
    number, times, status = how
    what = f"{engine}, signal {number} x {times} after merge {at}"
    before = set(SHARED_MEMORY.glob("edgefl-*"))
    driver = _started(folder, engine, {}, 10**5)
    try:
        deadline = time.monotonic() + _WAIT_S
        while driver.poll() is None and time.monotonic() < deadline:
            if (folder / "run" / "run.sqlite").exists() and _merges(folder / "run") >= at:
                break
            time.sleep(0.02)
        time.sleep(wait_s)
        for _ in range(times):
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, number) if number == signal.SIGINT else driver.send_signal(number)
            time.sleep(0.05)
        found = driver.wait(_WAIT_S)
    finally:
        driver.kill()
        driver.wait()
    said = (folder / "said").read_text(encoding="utf-8", errors="replace")
    deadline = time.monotonic() + 30
    while (stays := left(before, driver.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    if found != status:
        return f"{what}: status {found}, not {status}: {said[-500:]}"
    if "Traceback" in said:
        return f"{what}: {said[-2000:]}"
    if stays:
        return f"{what}: left {stays}"
    try:
        summaries([folder / "run"])
    except EdgeflError as error:
        # Before the run has begun there is nothing to read, which is said in one message.
        return f"{what}: unreadable: {error}" if at else ""
    return ""


def killed_worker(rng: random.Random, folder: Path) -> str:
    """A worker is killed at some moment: the run has the bits that it has without."""
    engine = {"name": "processes", "workers": 2, "inner": rng.choice(["loop", "vmapped"])}
    alone = bits(ran(folder / "alone", engine["inner"], server={"participants": 5, "rounds": 6}))
    wait_s, place, over = rng.random() * 0.5, rng.randrange(2), threading.Event()

    def kill() -> None:
        while not over.is_set() and not _merges(folder / "run"):
            time.sleep(0.02)
        time.sleep(wait_s)
        with suppress(IndexError, psutil.Error):
            psutil.Process().children()[place].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = bits(ran(folder / "run", engine, server={"participants": 5, "rounds": 6}))
    finally:
        over.set()
        killer.join()
    return "" if found == alone else f"other bits after worker {place} was killed ({engine['inner']})"


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
        return f"{engine}, {environment}: {(folder / 'said').read_text(encoding='utf-8', errors='replace')}"
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
    "killed_worker": (killed_worker, 20),
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
