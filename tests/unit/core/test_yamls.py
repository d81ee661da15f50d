"""YAML files with errors that name their line."""

from __future__ import annotations

from typing import Annotated, Literal

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
from edgefl.core.yamls import Document, dump


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


def _fails(text):
    document = Document.parse(text, "tree.yaml")
    with pytest.raises(ScenarioError) as caught:
        validate(Tree, document.data, document)
    return caught.value


def test_an_unknown_key_is_found_with_its_line():
    """The line is the key's own, and the nearest key of the same record is suggested."""
    error = _fails("# a tree\nage: 3\nleafs: []\n")
    assert (error.what, error.where) == ("unknown key 'leafs'", "tree.yaml:3, key 'leafs'")
    assert error.hint == "did you mean 'leaves'?"


def test_a_wrong_type_is_found_with_its_line():
    """The line, what was expected, and what was given."""
    error = _fails("leaves: []\nage: old\n")
    assert error.where == "tree.yaml:2, key 'age'"
    assert error.what == "age should be a valid integer; got 'old'"
    assert _fails("age: 1\nleaves: [7]\n").what == "leaves.0 should be a mapping of keys to values; got 7"


def test_an_item_of_a_list_is_found_with_its_line():
    """Inside a list it is the item's own line, in block and in flow style."""
    block = _fails("age: 3\nleaves:\n  - size: 1\n  - size: 2\n    hue: red\n")
    assert (block.what, block.where) == ("unknown key 'hue'", "tree.yaml:5, key 'leaves.1.hue'")
    flow = _fails("age: 3\nleaves: [{size: 1},\n  {size: big}]\n")
    assert flow.where == "tree.yaml:3, key 'leaves.1.size'"


def test_a_key_inside_a_mapping_is_found_with_its_line():
    """The nearest key is that of the nested record, not of the outermost."""
    error = _fails("age: 3\nnames:\n  oak:\n    color: green\n    sise: 4\n")
    assert error.where == "tree.yaml:5, key 'names.oak.sise'"
    assert error.hint == "did you mean 'size'?"


def test_a_missing_key_is_placed_at_what_encloses_it():
    """A missing key has no line of its own: that of the nearest enclosing key is given."""
    error = _fails("leaves: []\nage: 1\ngrowth:\n  name: pareto\n")
    assert error.what == "'tail' is missing"
    assert error.where == "tree.yaml:3, key 'growth.tail'"


def test_an_unknown_name_of_a_record_suggests_the_nearest():
    """The given name, its location, and the nearest known name."""
    error = _fails("age: 1\ngrowth: {name: parto, tail: 2}\n")
    assert error.what == "unknown sampler 'parto'"
    assert error.where == "tree.yaml:2, key 'growth.name'"
    assert error.hint == "did you mean 'pareto'?"
    assert "known: fixed, half-normal" in _fails("age: 1\ngrowth: {name: xyz}\n").hint


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{}", "'name' is missing"),
        ("{tail: 2}", "'name' is missing"),
        ("{name: 2}", "growth.name should be a name; got 2"),
        ("[]", "growth should be a name, or a mapping with a name and parameters; got []"),
        ("2", "growth should be a name, or a mapping with a name and parameters; got 2"),
    ],
)
def test_a_record_found_by_name_needs_one(text, what):
    """Without a name, or with something that cannot be a name, nothing is guessed."""
    error = _fails(f"age: 1\ngrowth: {text}\n")
    assert error.what == what
    assert error.where.startswith("tree.yaml:2, key 'growth")


def test_keys_of_a_record_found_by_name_are_its_own():
    """The location has the key as written, and the suggestion is a key of the named record."""
    error = _fails("age: 1\ngrowth:\n  name: pareto\n  tail: wide\n")
    assert error.where == "tree.yaml:4, key 'growth.tail'"
    unknown = _fails("age: 1\ngrowth:\n  name: pareto\n  tail: 1\n  tails: 4\n")
    assert unknown.where == "tree.yaml:5, key 'growth.tails'"
    assert unknown.hint == "did you mean 'tail'?"


def test_a_wrong_word_lists_the_right_ones():
    """A literal's choices are listed, and the nearest is suggested."""
    error = _fails("age: 1\nleaves: [{color: gren}]\n")
    assert error.what == "leaves.0.color should be 'green' or 'brown'; got 'gren'"
    assert error.hint == "did you mean 'green'?"


def test_all_mistakes_are_told_at_once():
    """Each with its own place and hint."""
    error = _fails("age: old\nbark: 1\nleaves: [{sise: 1}, 7]\n")
    assert [(each.what, each.where) for each in (error, *error.others)] == [
        ("age should be a valid integer; got 'old'", "tree.yaml:1, key 'age'"),
        ("unknown key 'sise'", "tree.yaml:3, key 'leaves.0.sise'"),
        ("leaves.1 should be a mapping of keys to values; got 7", "tree.yaml:3, key 'leaves.1'"),
        ("unknown key 'bark'", "tree.yaml:2, key 'bark'"),
    ]
    assert (
        "unknown key 'sise'\n  where: tree.yaml:3, key 'leaves.0.sise'\n  hint:  did you mean 'size'?"
        in str(error)
    )


def test_no_more_than_ten_mistakes_are_told():
    """The others are counted."""
    error = _fails("age: 1\nleaves: [" + ", ".join("{hue: 1}" for _ in range(13)) + "]\n")
    assert len(error.others) == 12
    assert len(error.messages()) == 11
    assert str(error).endswith("\nand 3 more mistakes")


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("age: 1\nage: 2\n", "duplicate key 'age'", "tree.yaml:2"),
        ("age: 1\nleaves: [1,\n", "not valid YAML", "tree.yaml:3"),
        ("age: 1\n\tb: 2\n", "not valid YAML", "tree.yaml:2"),
        ("- age\n", "not a mapping", "tree.yaml"),
        ("", "the file is empty", "tree.yaml"),
        ("just words\n", "not a mapping", "tree.yaml"),
    ],
)
def test_what_is_no_mapping_is_refused_with_its_line(text, what, where):
    """Duplicate keys, invalid YAML and files that are not a mapping."""
    with pytest.raises(ScenarioError) as caught:
        Document.parse(text, "tree.yaml")
    assert what in caught.value.what
    assert caught.value.where == where


def test_a_file_that_cannot_be_read(tmp_path):
    """A missing file, a folder and bytes that are not text are user errors."""
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "a.yaml", tmp_path, tmp_path / "b.yaml"):
        with pytest.raises(ScenarioError, match=f"cannot read {path.name}: [^\\[]"):
            Document.read(path)


def test_values_from_elsewhere_are_placed_there():
    """A value set on the command line, and the keys below it, are not searched for in the file."""
    document = Document.parse("age: 3\nshape: {name: round}\n", "tree.yaml")
    override = Override.parse("shape={name: [square]}")
    moved = put(document, override.keys, override.value)
    assert str(moved.place(["shape"])) == "--set shape={name: [square]}"
    assert str(moved.place(["shape", "name"])) == "--set shape={name: [square]}, key 'shape.name'"
    assert str(moved.place(["age"])) == "tree.yaml:1, key 'age'"


def test_yaml_is_1_2():
    """``on``, ``no`` and ``off`` are words, ``1e-3`` is a number, and leading zeros do not make octals."""
    data = Document.parse("a: on\nb: no\nc: 1e-3\nd: 010\ne: true\nf: 1_0\n", "x").data
    assert (data["a"], data["b"], data["c"], data["d"], data["e"]) == ("on", "no", 0.001, 10, True)


def test_plain_and_dump_round_trip():
    """Ruamel's types become plain ones, whose text reads back as the same."""
    document = Document.parse("b: [1, 2.5, {c: 'x'}] # why\na: {k: true, n: null}\n", "x")
    data = document.data
    assert data == {"b": [1, 2.5, {"c": "x"}], "a": {"k": True, "n": None}}
    assert {type(data), type(data["b"]), type(data["b"][1]), type(data["a"]["k"])} == {
        dict,
        list,
        float,
        bool,
    }
    text = dump(data)
    assert Document.parse(text, "y").data == data
    assert text.index("b:") < text.index("a:")


def test_a_dump_does_not_depend_on_those_before():
    """Texts of entries are kept; what Python takes for equal, such as 1, 1.0 and true, is not mixed up."""
    for value in (1, 1.0, True, 0, 0.0, -0.0, False, None, "1", [1], [True], {"b": 1}, {"b": 1.0}):
        assert repr(Document.parse(dump({"a": value}), "x").data) == repr({"a": value})
    assert dump({}) == "{}\n"


WORDS = st.sampled_from(
    ["null", "Yes", "1e5", "0x1", ".5", "1:30", "~", "2024-01-01", "a: b", "a #b", "a\tb"]
)
LINES = WORDS | st.lists(st.text("a-:#'\"&*|>%@{ ,\\0\u00e4", max_size=6), max_size=5).map("\n".join)
KEYS = st.sampled_from(["a", "b", "a-b", "-a"])
DATA = st.recursive(
    LINES | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, DATA, max_size=2))
def test_texts_are_read_back(data):
    """Of several lines, with signs of YAML's own, or taken for something else without quotes."""
    assert Document.value(dump(data), "x").data == data


def test_a_long_text_keeps_its_lines():
    """A table is found in plan.yaml as it is in its file."""
    rows = "device,link\n" + "\n".join(f"pi,l{each}" for each in range(2000))
    assert "\n    device,link\n    pi,l0\n    pi,l1\n" in dump({"users": {"rows": rows}})
