"""Fresh Python processes: nothing that this one has loaded, allocated or set is in theirs.

A process gets its input as a pickle on standard input and writes its answer, pickled, to standard output.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, TypeVarTuple

from edgefl.core.errors import EdgeflError, RunError
from edgefl.core.user_code import explained

Arguments = TypeVarTuple("Arguments")
Answer = TypeVar("Answer")

_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


Caller: TypeAlias = Callable[..., Any]
"""``call``, or a stand-in."""


def call(
    function: Callable[[*Arguments], Answer],
    /,
    *arguments: *Arguments,
    threads: int = 1,
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> Answer:
    """Calls a top-level function in a fresh process; it, its arguments and its answer can be pickled.

    What it prints is dropped. ``threads`` are for numeric libraries, ``variables`` added to the environment.

    Raises:
        EdgeflError: what the function raised.
        RunError: the process failed in another way.
    """
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", f"from {__name__} import main; main()"],
        input=pickle.dumps((function, arguments)),
        env={**environment(threads), **variables},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        code = done.returncode
        ending = f"killed by signal {-code}" if code < 0 else f"exit status {code}"
        raise RunError(
            f"a measuring process failed: {lines[-1] if lines else ending}",
            where=f"{function.__module__}.{function.__qualname__}",
        )
    error: EdgeflError | None
    answer: Answer
    error, answer = pickle.loads(done.stdout)  # noqa: S301 - written by our own process
    if error is not None:
        raise error
    return answer


def main() -> None:
    """The process's side of ``call``."""
    # Standard output is for the answer alone: what anything prints goes to standard error.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    function, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our own parent
    error, answer = None, None
    try:
        answer = function(*arguments)
    except BaseException as raised:
        error = raised if isinstance(raised, EdgeflError) else explained(raised)
        if error is None:
            raise
    pickle.dump((error, answer), out)
    out.flush()


def environment(threads: int) -> dict[str, str]:
    """This process's environment and import path, and the number of threads for numeric libraries."""
    # In sys.path an empty entry is the current directory; in PYTHONPATH it would be ignored.
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    numbers = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    # Safe: without an entry for the current directory before those of this process.
    return {**os.environ, **numbers, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
