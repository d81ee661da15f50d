"""YAML files: the core schema, places of errors, and the limits of what is read."""

import math
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, SerializeAsAny

from edgefl.core.components import OfKind
from edgefl.core.errors import ScenarioError
from edgefl.core.overrides import Override, put
from edgefl.core.params import Strict
from edgefl.core.samplers import Sampler
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.validation import validate
from edgefl.core.yamls import MOST_VALUES, Document, dump, text_of


class Leaf(Strict):
    """A nested record."""

    size: int = 1
    color: Literal["green", "brown"] = "green"


class Tree(Strict):
    """The schema of the documents below."""

    age: int
    leaves: tuple[Leaf, ...] = ()
    growth: Annotated[SerializeAsAny[Sampler], OfKind("samplers")] = Fixed()
    names: dict[str, Leaf] = Field(default_factory=dict)


WRONG = """\
age: old
bark: 1
leaves:
  - {sise: 1}
  - 7
  - color: gren
growth:
  name: pareto
  tails: 4
names: {oak: {size: x},
        elm: {hue: 2}}
"""


@pytest.mark.parametrize("growth", ["{name: parto}", "{name: 2}", "{tail: 2}", "[]"])
def test_all_mistakes_are_told_at_once_with_their_places(growth):
    """The line is the key's own, a missing key's that of what encloses it; no more than ten are told."""

    def mistakes(text):
        document = Document.parse(text, "tree.yaml")
        with pytest.raises(ScenarioError) as caught:
            validate(Tree, document.data, document)
        return caught.value

    error = mistakes(WRONG)
    found = {(each.what, each.where, each.hint) for each in (error, *error.others)}
    assert found >= {
        ("age should be a whole number; got 'old'", "tree.yaml:1, key 'age'", ""),
        ("unknown key 'sise'", "tree.yaml:4, key 'leaves.0.sise'", "did you mean 'size'?"),
        ("leaves.1 should be a mapping of keys to values; got 7", "tree.yaml:5, key 'leaves.1'", ""),
        ("'tail' is missing", "tree.yaml:7, key 'growth.tail'", ""),
        ("unknown key 'tails'", "tree.yaml:9, key 'growth.tails'", "did you mean 'tail'?"),
        ("names.oak.size should be a whole number; got 'x'", "tree.yaml:10, key 'names.oak.size'", ""),
    }
    assert {where for _, where, _ in found} >= {
        "tree.yaml:2, key 'bark'",
        "tree.yaml:11, key 'names.elm.hue'",
    }
    many = mistakes("age: 1\nleaves: [" + ", ".join("{hue: 1}" for _ in range(13)) + "]\n")
    assert (len(many.others), len(many.messages())) == (12, 11)
    assert str(many).endswith("\nand 3 more mistakes")
    named = mistakes(f"age: 1\ngrowth: {growth}\n")
    says = {"{name: parto}": "unknown sampler 'parto'", "{tail: 2}": "'name' is missing"}
    assert says.get(growth, "should be a name") in named.what
    assert named.where.startswith("tree.yaml:2, key 'growth")


def _plain(text):
    return Document.value(text, "f.yaml").data


def _fails(text):
    with pytest.raises(ScenarioError) as caught:
        Document.value(text, "f.yaml")
    return caught.value


VALUES = {
    "12": 12, "-12": -12, "010": 10, "1_000": 1000, "0o17": 15, "0x1F": 31, "0b11": 3, "!!int 12": 12,
    "1.5": 1.5, "1e-3": 0.001, "1.": 1.0, ".5": 0.5, "-.INF": -math.inf, "!!float 12": 12.0,
    "true": True, "FALSE": False, "!!bool true": True, "~": None, "": None, "Null": None,
    **{each: each for each in ("on", "yes", "2020-13-45", "2020-01-01", "1:30", "12 Mbit/s", "=")},
    "'12'": "12", "!!str 12": "12", '"\\u00e9"': "\u00e9", "!!map {a: !!seq [1]}": {"a": [1]},
    "9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63),
    "{1: a, true: b, ~: c, 1.50: d}": {"1": "a", "true": "b", "~": "c", "1.50": "d"},
    "{a: &x [1, {b: 2}], c: *x}": {"a": [1, {"b": 2}], "c": [1, {"b": 2}]},
    "{&k a: 1, b: *k}": {"a": 1, "b": "a"},
    "{<<: 3}": {"<<": 3},
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_values_are_those_of_the_core_schema(text):
    """Words of YAML 1.1, dates and times of day are text; keys are as they are written."""
    found, value = _plain(text), VALUES[text]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("a: 1\nb: !!int x\n", "'x' cannot be read as !!int", 2),
        ("a: 1\nb: !!python/object/apply:os.abort []", "the tag !!python/object/apply:os.abort is not", 2),
        ("a:\n- " + "9" * 5000, "9999", 2),
        ("a: 0x" + "f" * 17, "is too large", 1),
        ("a: &a [1, *a]", "nested more than 50 levels deep", 1),
        ("a: *b", "undefined alias", 1),
        ("1: 1\n'1': 2", "duplicate key '1'", 2),
        ("a: " + "[" * 500 + "]" * 500, "nested more than 50 levels deep", 1),
        ("a: " + "[" * 5000, "exceeded maximum nesting depth", 1),
        ("a:\n" + "".join(" " * i + "- \n" for i in range(1, 60)), "nested more than 50 levels deep", 51),
        ('a: "\\ud800"', "invalid Unicode character", 1),
        ("a: 1\nb: \x07\n", "not valid YAML: control characters", 2),
        ("{b: &x [1], *x : 3}", "a key must be a single word", 1),
        ("--- {a: 1}\n--- {b: 1}\n", "another document", 2),
        ("a: 1\n\tb: 2\n", "not valid YAML", 2),
        ("a: " + "1" * 1_000_000, "more than 1,000,000 bytes of YAML", 0),
        # Aliases count all that they refer to, as they are met: a billion values in 400 bytes.
        (
            "a0: &a0 [1]\n" + "\n".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 10}]" for n in range(1, 10)),
            f"there are more than {MOST_VALUES:,} values",
            1,
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_line(text, what, line):
    error = _fails(text)
    assert what in error.what
    assert len(error.what) < 160
    assert error.where == (f"f.yaml:{line}" if line else "f.yaml")


def test_depth_counts_what_aliases_refer_to():
    """50 levels are read, and 51 refused, however they are written."""
    for first, last in (("[", "]"), ("{k: ", "}")):
        deep = first * 24 + "1" + last * 24
        assert _plain(first * 49 + "1" + last * 49)
        assert _plain(f"{{a: &a {deep}, b: {first * 24}*a{last * 24}}}")
        assert "50 levels" in _fails(f"{{a: &a {deep}, b: {first * 25}*a{last * 25}}}").what


SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)),
    st.sampled_from(["null", "Yes", "1e5", "~", "2024-01-01", "a: b", "a #b"]),
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"])),
    st.from_regex(r"[-+.0-9_eExobinfNULtru~<=: ]{1,8}", fullmatch=True),
    st.lists(st.text("a-:#'\"&*|>%@{ ,\\0\u00e4", max_size=6), max_size=5).map("\n".join),
)


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab1.~-"), inner)))
def test_what_is_dumped_is_read_back(value):
    """Whatever plan.yaml may hold: what is written without quotes is not taken for something else."""
    assert _plain(dump({"a": value})) == {"a": value}


def test_a_dump_does_not_depend_on_those_before_and_keeps_lines():
    """Texts of entries are kept; what Python takes for equal, such as 1, 1.0 and true, is not mixed up."""
    for value in (1, 1.0, True, 0, -0.0, False, "1", [1], [True], {"b": 1}, {"b": 1.0}):
        assert repr(Document.parse(dump({"a": value}), "x").data) == repr({"a": value})
    assert dump({}) == "{}\n"
    rows = "device,link\n" + "\n".join(f"pi,l{each}" for each in range(2000))
    assert "\n    device,link\n    pi,l0\n    pi,l1\n" in dump({"users": {"rows": rows}})


def test_plain_python_values_become_nodes():
    values = {"a": (1, np.float64(2.5)), "b": Path("x"), 3: None}
    assert Document.of(values, "scenario").data == {"a": [1, 2.5], "b": "x", "3": None}
    loop = []
    loop.append(loop)
    for wrong, what in ((object(), "no attribute 'item'"), (2**63, "within 64 bits"), (loop, "Circular")):
        with pytest.raises(ScenarioError, match=what) as caught:
            Document.of({"a": wrong}, "scenario")
        assert caught.value.where == "scenario"


@pytest.mark.parametrize(
    ("content", "what", "line"),
    [
        (None, "cannot read f.yaml: ", ""),
        (b"\xff\xfe\x00", "cannot read f.yaml: ", ""),
        (b"", "the file is not a mapping", ""),
        (b"- age\n", "not a mapping", ""),
        (b"# " + b"x" * 1_000_000, "is larger than 1,000,000 bytes", ""),
        # From Windows: a byte order mark, and other line ends.
        (b"\xef\xbb\xbfa: 1\r\nb: [\r\n", "not valid YAML", ":2"),
    ],
)
def test_a_file_that_is_no_document_is_named(tmp_path, content, what, line):
    path = tmp_path / "f.yaml"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        Document.read(path)
    assert what in caught.value.what
    assert caught.value.where == f"{path}{line}"
    if content and len(content) > 1_000_000:
        assert len(text_of(path)) == len(content)


def test_values_from_elsewhere_are_placed_there():
    document = Document.parse("age: 3\nshape: {name: round}\n", "tree.yaml")
    override = Override.parse("shape={name: [square]}")
    moved = put(document, override.keys, override.value)
    assert moved.place(["shape"]) == "--set shape={name: [square]}"
    assert moved.place(["shape", "name"]) == "--set shape={name: [square]}, key 'shape.name'"
    assert moved.place(["age"]) == "tree.yaml:1, key 'age'"
