"""YAML text composed into plain values: the core schema, places, and the limits of what is read."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from edgefl.core import catalogue
from edgefl.core.errors import ScenarioError
from edgefl.core.yamls import MOST_VALUES, Document, dump, text_of


def _plain(text):
    return Document.value(text, "f.yaml").data


def _fails(text):
    with pytest.raises(ScenarioError) as caught:
        Document.value(text, "f.yaml")
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-12", -12),
        ("010", 10),
        ("1_000", 1000),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", 3),
        ("1.5", 1.5),
        ("1e-3", 0.001),
        ("1.", 1.0),
        (".5", 0.5),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("Null", None),
        ("on", "on"),
        ("yes", "yes"),
        ("2020-13-45", "2020-13-45"),
        ("2020-01-01", "2020-01-01"),
        ("1:30", "1:30"),
        ("12 Mbit/s", "12 Mbit/s"),
        ("'12'", "12"),
        ('"\\u00e9"', "\u00e9"),
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("!!float 12", 12.0),
        ("!!bool true", True),
        ("!!null ~", None),
        ("!!map {a: !!seq [1]}", {"a": [1]}),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("=", "="),
        ("{1: a, true: b, ~: c, 1.50: d}", {"1": "a", "true": "b", "~": "c", "1.50": "d"}),
    ],
)
def test_values_are_those_of_the_core_schema(text, value):
    """Words of YAML 1.1, dates and times of day are text; keys are as they are written."""
    found = _plain(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: &x [1, {b: 2}], c: *x}", {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}),
        ("{a: &x {k: 1, l: 2}, b: {<<: *x, k: 3}}", {"a": {"k": 1, "l": 2}, "b": {"k": 3, "l": 2}}),
        ("{a: &x {k: 1}, b: &y {k: 2, l: 3}, c: {<<: [*x, *y]}}", {"k": 1, "l": 3}),
        ("{&k a: 1, b: *k}", {"a": 1, "b": "a"}),
        ("{a: &x 1, b: &x 2, c: *x}", {"a": 1, "b": 2, "c": 2}),
        ('{"<<": 3}', {"<<": 3}),
    ],
)
def test_aliases_and_merged_keys(text, value):
    """What is referred to stands there again; a mapping's own keys, then the first merged ones, win."""
    found = _plain(text)
    assert (found["c"] if "<<: [" in text else found) == value


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("a: 1\nb: !!int x\n", "'x' cannot be read as !!int", 2),
        ("a: !!float x", "'x' cannot be read as !!float", 1),
        ("a: !!bool x", "'x' cannot be read as !!bool", 1),
        ("a: !!int 1.5", "'1.5' cannot be read as !!int", 1),
        ("a: 1\nb: !!python/object/apply:os.abort []", "the tag !!python/object/apply:os.abort is not", 2),
        ("a: !mine {}", "the tag !mine is not supported", 1),
        ("a: !!set {b}", "the tag !!set is not supported", 1),
        ("a: !!str {b: 1}", "the tag !!str is not supported", 1),
        ("a:\n- " + "9" * 5000, "cannot be read as !!int", 2),
        ("a: -" + "9" * 19, "is too large", 1),
        ("a: 0x" + "f" * 17, "is too large", 1),
        ("a: 1e999", "the number 1e999 is too large", 1),
        ("a: 1\n<<: &a {<<: *a}\n", "nested more than 50 levels deep", 2),
        ("a: &a [1, *a]", "nested more than 50 levels deep", 1),
        ("a: *b", "undefined alias", 1),
        ("<<: 3", "'<<' must have a mapping", 1),
        ("<<: [{a: 1}, 3]", "'<<' must have a mapping", 1),
        ("<<: {a: 1}\n<<: {b: 1}", "duplicate key '<<'", 2),
        ("a: 1\nb: 2\na: 3", "duplicate key 'a'", 3),
        ("1: 1\n'1': 2", "duplicate key '1'", 2),
        ("a: " + "[" * 500, "nested more than 50 levels deep", 0),
        ("{a: " * 60 + "1" + "}" * 60, "nested more than 50 levels deep", 1),
        ("a:\n" + "".join(" " * i + "- \n" for i in range(1, 60)), "nested more than 50 levels deep", 51),
        ('a: "\\ud800"', "has a character that is not valid Unicode", 1),
        ('"\\udfff": 1', "has a character that is not valid Unicode", 1),
        ('a: "\\UFFFFFFFF"', "a character that does not exist", 0),
        ("a: 1\nb: \x07\n", "not valid YAML: special characters", 2),
        ("[a]: 3", "a key must be a single word", 1),
        ("{b: &x [1], *x : 3}", "a key must be a single word", 1),
        ("--- {a: 1}\n--- {b: 1}\n", "another document", 2),
        ("a: " + "1" * 1_000_000, "more than 1,000,000 bytes of YAML", 0),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text, what, line):
    """One message, nothing is constructed, and long values are cut."""
    error = _fails(text)
    assert what in error.what
    assert len(error.what) < 160
    assert error.where == (f"f.yaml:{line}" if line else "f.yaml")


def test_depth_counts_what_aliases_refer_to():
    """50 levels are read, and 51 refused, however they are written."""
    deep = "[" * 24 + "1" + "]" * 24
    assert _plain("[" * 49 + "1" + "]" * 49)
    assert _plain(f"{{a: &a {deep}, b: {'[' * 24}*a{']' * 24}}}")
    assert "50 levels" in _fails(f"{{a: &a {deep}, b: {'[' * 25}*a{']' * 25}}}").what
    mappings = "{k: " * 24 + "1" + "}" * 24
    assert _plain(f"{{a: &a {mappings}, b: {'{k: ' * 24}*a{'}' * 24}}}")
    assert "50 levels" in _fails(f"{{a: &a {mappings}, b: {'{k: ' * 25}*a{'}' * 25}}}").what


def test_a_bomb_of_aliases_is_refused():
    """A billion values in 400 bytes: an alias counts all that it refers to, as it is met."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    error = _fails("\n".join(lines))
    assert error.what == f"there are more than {MOST_VALUES:,} values"


def test_merged_bombs_are_refused():
    """Merging counts like any alias."""
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: 1" for n in range(100)) + "}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 100)}]}}" for n in range(1, 4)]
    assert "more than 100,000 values" in _fails("\n".join(lines)).what


def test_many_values_within_the_limit_are_read():
    """In time proportional to their number."""
    assert len(_plain(f"[{', '.join(['1.5'] * 20_000)}]")) == 20_000


@pytest.mark.parametrize("kind", ["devices", "profiles", "links", "scenarios"])
def test_shipped_files_read_as_ruamel_reads_them(kind):
    """Its safe loader constructs the same plain values."""
    for entry in catalogue.entries(kind).values():
        assert Document.read(entry.path).data == YAML(typ="safe", pure=True).load(entry.path)


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]))
    | st.from_regex(r"[-+.0-9_eExobinfNULtru~<=: ]{1,8}", fullmatch=True)
)


@given(st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab1.~"), inner)))
def test_what_is_dumped_is_read_back(value):
    """Whatever plan.yaml may hold: what ruamel writes without quotes is not taken for something else."""
    assert _plain(dump({"a": value})) == {"a": value}


def test_plain_python_values_become_nodes():
    """Numbers of NumPy, tuples and paths too; what YAML has no words for is refused."""
    values = {"a": (1, np.float64(2.5)), "b": Path("x"), 3: None}
    assert Document.of(values, "scenario").data == {"a": [1, 2.5], "b": "x", "3": None}
    loop = []
    loop.append(loop)
    for wrong, what in ((object(), "'object' object"), (loop, "Circular reference")):
        with pytest.raises(ScenarioError, match=what) as caught:
            Document.of({"a": wrong}, "scenario")
        assert caught.value.where == "scenario"


def test_a_long_file_is_not_read_whole(tmp_path):
    """The limit holds before the text is looked at."""
    path = tmp_path / "long.yaml"
    path.write_text("# " + "x" * 1_000_000, encoding="utf-8")
    with pytest.raises(ScenarioError, match="is larger than 1,000,000 bytes") as caught:
        Document.read(path)
    assert caught.value.where == str(path)
    assert len(text_of(path)) == 1_000_002


def test_a_byte_order_mark_and_other_line_ends(tmp_path):
    """Files from Windows are read, with their lines."""
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: [\r\n")
    with pytest.raises(ScenarioError) as caught:
        Document.read(path)
    assert caught.value.where == f"{path}:3"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert Document.read(path).data == {"a": 1, "b": 2}
