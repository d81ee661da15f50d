"""Whose code raised an error, and what is said of it."""

import errno
import functools
import json
import os
from pathlib import Path

import pytest

from edgefl.core.errors import RunError
from edgefl.core.user_code import Terminated, as_run_error, explained, is_users, user_code


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
    "stop", ["KeyboardInterrupt()", "Terminated(143)", "GeneratorExit()", "RunError('ours', where='there')"]
)
def test_requests_to_stop_and_our_own_errors_are_nobodys(mine, stop):
    _, names = mine(f"def step():\n    raise {stop}\n")
    error = _raised(names["step"])
    assert explained(error) is None
    with pytest.raises(type(error)) as caught, user_code():
        names["step"]()
    assert str(caught.value) == str(error)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("can't start new thread"),
    ],
)
def test_a_machine_without_room_is_no_mistake_of_ours(error):
    told = str(as_run_error(error))
    assert told.startswith(f"no more memory or threads: {type(error).__name__}")
    assert "engine.workers" in told
    assert "report" not in told


def test_installed_packages_are_not_the_users_wherever_they_are(monkeypatch):
    """Of this environment, of the user and of the system; unless a folder of them is on EDGEFL_PATH."""
    system = "/usr/lib/python3/dist-packages"
    for folder in ("/home/ann/.local/lib/python3.12/site-packages", system):
        assert not is_users(f"{folder}/torch/nn/functional.py")
    assert not is_users(pytest.__file__)
    assert not is_users(json.__file__)
    assert is_users("/home/ann/research/mine.py")
    ours = Path(pytest.__file__).parent
    monkeypatch.setenv("EDGEFL_PATH", f"{ours}:{Path(json.__file__).parent}")
    assert is_users(f"{ours}/methods/mine.py")
    assert is_users(json.__file__)
    assert not is_users(functools.__file__)
