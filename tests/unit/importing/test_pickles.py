"""Pickles of plain data, and of anything else."""

import os
import pickle
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.core.errors import UserError
from edgefl.importing.fedscale import unpickled as load

KEYS = st.text(max_size=3) | st.integers(-(2**63), 2**63 - 1)
ATOMS = KEYS | st.none() | st.booleans() | st.floats(allow_nan=False)
PLAIN = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


@given(PLAIN, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_data_are_read_from_every_protocol(data, protocol):
    """What the standard library pickles of dict, list, text and numbers is what is read."""
    assert load(pickle.dumps(data, protocol)) == data


class _Calls:
    def __init__(self, function, *arguments):
        self.asked = function, arguments

    def __reduce__(self):
        return self.asked


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_function_is_refused_by_name_and_not_called(protocol, tmp_path):
    mark = tmp_path / "ran"
    hostile = pickle.dumps({1: _Calls(os.system, f"touch {mark}")}, protocol)
    with pytest.raises(UserError, match=r"asks for (posix|nt)\.system"):
        load(hostile)
    assert not mark.exists()


@pytest.mark.parametrize("program", [b"cos\nsystem\n", b"(ios\nsystem\n", b"\x8c\x02os\x8c\x06system\x93"])
def test_every_spelling_of_a_name_is_refused(program):
    with pytest.raises(UserError, match=r"os\.system"):
        load(b"\x80\x05" + program + b".")


@pytest.mark.parametrize(
    "program", [b"Pid\n", b"}Q", b"\x82\x01", b"}}b", b"}]R", b"}]\x81", b"(}o", b"\x97"]
)
def test_calls_without_a_name_call_nothing(program):
    """Persistent identifiers, the extension registry and calls of plain data are no valid pickle."""
    with pytest.raises(UserError, match="damaged"):
        load(b"\x80\x05" + program + b".")


def test_nesting_and_cycles_are_no_danger():
    """Lists in lists in lists, and a list that contains itself, are read without recursion."""
    depth = 50_000
    nested = load(b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b".")
    assert isinstance(nested, list)
    cyclic = load(b"\x80\x02]q\x00h\x00a.")
    assert cyclic[0] is cyclic


def test_a_pickle_that_is_cut_off_is_refused():
    whole = pickle.dumps({1: {"a": 1.5, "b": [1, 2]}})
    for length in range(len(whole)):
        with pytest.raises(UserError, match="cut off"):
            load(whole[:length])


@given(st.binary(max_size=60), st.integers(0, 40), PLAIN)
def test_garbage_is_a_users_mistake(garbage, place, data):
    whole = pickle.dumps(data)
    for content in (garbage, whole[:place] + garbage + whole[place + 1 :]):
        with suppress(UserError):
            load(content)
