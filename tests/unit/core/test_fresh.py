"""Functions called in fresh processes, and what the system reports of this one."""

import os
import signal
import sys
from pathlib import Path

import pytest

from edgefl.core import fresh
from edgefl.core.errors import RunError, UserError


def surroundings(number: int) -> tuple[int, int, str | None, list[str]]:
    """Prints, and answers with its process and what that was given."""
    print("not an answer")  # noqa: T201
    return number, os.getpid(), os.environ.get("OMP_NUM_THREADS"), sys.path


def refuse() -> None:
    raise UserError("too large", where="--batch", hint="take less")


def fail() -> None:
    raise ValueError("no luck")


def die() -> None:
    """Ends as an interpreter does that is out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_answer_comes_from_another_process_with_this_ones_imports():
    """What it prints is no answer; threads are its own; imports are found where they are found here."""
    number, pid, threads, path = fresh.call(surroundings, 7, threads=3)
    assert (number, threads) == (7, "3")
    assert pid != os.getpid()
    assert {entry or str(Path.cwd()) for entry in sys.path} <= set(path)
    assert fresh.call(surroundings, 0, variables={"OMP_NUM_THREADS": "5"})[2] == "5"


def test_errors_keep_their_place():
    with pytest.raises(UserError, match="too large") as raised:
        fresh.call(refuse)
    assert (raised.value.where, raised.value.hint) == ("--batch", "take less")
    with pytest.raises(UserError, match="failed in fail: ValueError: no luck") as raised:
        fresh.call(fail)
    assert raised.value.where.startswith(f"{__file__}:")


@pytest.mark.parametrize(
    ("function", "given", "says"),
    [(signal.raise_signal, ("no number",), "TypeError: "), (die, (), "The exit codes.*SIGKILL")],
)
def test_other_failures_say_what_happened_where(function, given, says):
    with pytest.raises(RunError, match=f"measuring process failed: {says}") as raised:
        fresh.call(function, *given)
    assert raised.value.where == f"{function.__module__}.{function.__qualname__}"
