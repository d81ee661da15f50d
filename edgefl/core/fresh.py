"""Fresh Python processes: nothing that this one has loaded, allocated or set is in theirs."""

import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from loky import ProcessPoolExecutor

from edgefl.core.errors import EdgeflError, RunError, in_one_line
from edgefl.core.user_code import user_code

Arguments = TypeVarTuple("Arguments")
Answer = TypeVar("Answer")


def call(
    function: Callable[[*Arguments], Answer],
    /,
    *arguments: *Arguments,
    threads: int = 1,
    variables: Mapping[str, str] | None = None,
) -> Answer:
    """Calls a top-level function in a fresh process; it, its arguments and its answer can be pickled.

    What it prints is dropped, and what it raises raised. ``threads`` are for numeric libraries, ``variables``
    added to the environment.
    """
    env = {**environment(threads), **(variables or {})}
    with ProcessPoolExecutor(1, initializer=_silent, env=env) as executor:
        try:
            answer: Answer = executor.submit(_called, function, arguments).result()
        except EdgeflError:
            raise
        except Exception as failed:
            where = f"{function.__module__}.{function.__qualname__}"
            what = died(failed) if isinstance(failed, BrokenExecutor) else in_one_line(failed)
            raise RunError(f"a measuring process failed: {what}", where=where) from failed
    return answer


def died(error: Exception) -> str:
    """How loky's or Ray's processes ended: the last line, or the one with exit codes, without advice."""
    told = str(error).strip().splitlines() or [type(error).__name__]
    line = next((line for line in told if "exit codes" in line), told[-1])
    return line.strip().partition(" Some common causes")[0]


def _silent() -> None:
    """Standard output and standard error are the caller's."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


@user_code()
def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


def environment(threads: int) -> dict[str, str]:
    """This process's environment and import path, and the number of threads for numeric libraries."""
    # In sys.path an empty entry is the current directory; in PYTHONPATH it would be ignored.
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    numbers = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    # Safe: without an entry for the current directory before those of this process.
    return {**os.environ, **numbers, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
