"""The papers' methods side by side: accuracy, and what it costs to reach a common target.

    python benchmarks/methods.py [--data-dir DIR] [--method NAME]... [--redo NAME]... [--processes N]
                                 [--out FILE]

On a part of CIFAR-10 (``method_runs.CIFAR10``); everything takes 85 minutes of processor time. Each
method's learning rate is chosen first, for each partition, from one grid, on held-out training data. FILE
(JSON) has every run and is written whenever one ends; a run that is there is not done again. Beside it are
the tables in Markdown. No figure depends on the machine's speed, but for the processor's time.
"""

import argparse
import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from pathlib import Path

from method_runs import CIFAR10, SCORED, Results, Run, Task, last, trained
from method_tables import document

_HERE = Path(__file__).parent
_OUT = _HERE / "results" / "methods-cifar10.json"


def work(
    results: Results, methods: Sequence[str], data_dir: Path | None, pool: Executor, processes: int
) -> None:
    """Does all that is missing, and prints a line for each run."""
    under_way: dict[Future[Run], Task] = {}
    while True:
        for task in results.missing(methods):
            if len(under_way) < processes and task not in under_way.values():
                under_way[pool.submit(trained, task.scenario(results.scale), data_dir)] = task
        if not under_way:
            return
        for future in wait(under_way, return_when=FIRST_COMPLETED).done:
            task, run = under_way.pop(future), future.result()
            results.add(task, run)
            done, of = results.progress(methods)
            what = "tuning" if task.tuning else f"seed {task.seed}"
            print(
                f"[{done} of {of}] {task.partition}: {task.method}, rate {task.rate:g}, {what}: "
                f"{100 * last(run):.1f}%, {run['cpu_s']:.0f} s",
                flush=True,
            )


def end_with_parent() -> None:
    """In a worker: ends it when the program that started it does, however that ends."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Does what is missing and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("EDGEFL_DATA"))
    parser.add_argument("--method", action="append", choices=SCORED, metavar="NAME", help="all by default")
    parser.add_argument(
        "--redo", action="append", choices=SCORED, default=[], metavar="NAME", help="forget its runs first"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--out", type=Path, default=_HERE / "results" / "methods-cifar10.json", metavar="FILE"
    )
    given = parser.parse_args()
    folders = str(_HERE / "components"), *filter(None, [os.environ.get("EDGEFL_PATH")])
    os.environ["EDGEFL_PATH"] = os.pathsep.join(folders)
    results = Results(CIFAR10, given.out)
    results.forget(given.redo)
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.processes, mp_context=fresh, initializer=end_with_parent) as pool:
        work(results, given.method or list(SCORED), given.data_dir, pool, given.processes)
    text = document(results)
    given.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
