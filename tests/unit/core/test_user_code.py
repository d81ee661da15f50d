"""Whose code raised an error, and what is said of it."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

import pytest

from edgefl.core.drafts import load
from edgefl.core.errors import RunError, UserError
from edgefl.core.user_code import (
    Terminated,
    as_run_error,
    defined_at,
    explained,
    internal,
    is_users,
    returned,
    user_code,
)


@pytest.fixture
def mine(own):
    def make(text):
        path = own("mine.py", text)
        names = {"Terminated": Terminated, "RunError": RunError}
        exec(compile(text, str(path), "exec"), names)  # noqa: S102 - our own text
        return path, names

    return make


def _raised(function, *given):
    try:
        function(*given)
    except BaseException as error:  # noqa: BLE001 - whatever it is
        return error
    return None


@pytest.mark.parametrize(
    ("raising", "said"),
    [
        ("__import__('json').loads('{')", "JSONDecodeError: Expecting"),
        ("__import__('sys').exit(0)", "SystemExit: 0"),
        ("raise type('Odd', (Exception,), {'__module__': '', '__str__': lambda _: 1 / 0})()", "Odd"),
        ("raise ValueError('x' * 100_000)", f"ValueError: {'x' * 500}..."),
    ],
)
def test_the_innermost_line_of_the_users_is_named(mine, raising, said):
    """Below a library's frames and above those of edgefl's callers; a long message is cut."""
    path, names = mine(f"def read():\n    {raising}\ndef go():\n    read()\n")
    with pytest.raises(UserError) as caught, user_code():
        names["go"]()
    assert caught.value.where == f"{path}:2"
    assert caught.value.what.startswith(f"{path.parent.name}/mine.py failed in read: {said}")
    assert len(caught.value.what) < 1000
    assert "mine.py" in caught.value.trace
    assert ("may not end the process" in caught.value.hint) == ("exit" in raising)


@pytest.mark.parametrize(
    "stop", ["KeyboardInterrupt()", "Terminated(143)", "GeneratorExit()", "RunError('ours', where='there')"]
)
def test_requests_to_stop_and_our_own_errors_are_nobodys(mine, stop):
    _, names = mine(f"def step():\n    raise {stop}\n")
    error = _raised(names["step"])
    assert explained(error) is None
    with pytest.raises(type(error)) as caught, user_code():
        names["step"]()
    assert str(caught.value) == str(error)


def test_installed_packages_are_not_the_users_wherever_they_are(monkeypatch):
    """Of this environment, of the user and of the system; unless a folder of them is on EDGEFL_PATH."""
    system = "/usr/lib/python3/dist-packages"
    for folder in ("/home/ann/.local/lib/python3.12/site-packages", system):
        assert not is_users(f"{folder}/torch/nn/functional.py")
    assert not is_users(pytest.__file__)
    assert not is_users(json.__file__)
    assert is_users("/home/ann/research/mine.py")
    monkeypatch.setenv("EDGEFL_PATH", f"{system}/methods_of_ours:{Path(json.__file__).parent}")
    assert is_users(f"{system}/methods_of_ours/methods/mine.py")
    assert is_users(json.__file__)
    assert not is_users(functools.__file__)


def test_an_error_of_edgefls_own_asks_for_a_report():
    error = _raised(load, None)
    assert internal(error).where.startswith("edgefl/core/yamls.py:")
    # The first frame is this file's.
    error.__traceback__ = error.__traceback__.tb_next
    assert explained(error) is None
    told = internal(error)
    assert told.exit_status == 1
    assert "please report this" in told.hint
    assert str(as_run_error(error)) == str(told)


def test_a_function_is_found_through_what_wraps_it(mine):
    """Partial application and decorators keep the user's place; a library's function has none."""
    path, names = mine("def merge(a, b):\n    return a\n")

    @functools.wraps(names["merge"])
    def wrapped(*given):
        return names["merge"](*given)

    for function in (names["merge"], functools.partial(names["merge"], 1), wrapped):
        assert str(defined_at(function)) == f"{path}:1"
    assert defined_at(json.loads) is defined_at(sys.exit) is None
    with pytest.raises(RunError, match=r"merge in .+/mine\.py returned None instead of a dict") as caught:
        returned(None, dict, names["merge"], "a dict", RunError)
    assert (caught.value.where, caught.value.hint) == (f"{path}:1", "is `return` missing?")
