"""Parts of YAML texts: the data are those of the whole, whatever is in it."""

from __future__ import annotations

import pytest

from edgefl.core import parts
from edgefl.core.errors import ScenarioError
from edgefl.core.parts import plain_data
from edgefl.core.yamls import Document, dump

NESTED = {
    "scenario": {"seed": 1, "notes": "a: b\nc:\n\nd: e"},
    "fleet": ["x", {"y": "long " * 40}],
    "devices": {},
}


@pytest.mark.parametrize(
    "text",
    [
        dump(NESTED),
        "a: 1\nb: 2",
        "a:\n- 1\n- 2\nb: {c: 1}\n",
        "# first\na: 1\n",
        "a: &x {c: 1}\nb: *x\n",
        "a: 1\n'b c': 2\n",
        "a: 'two\n  lines'\nb: |\n  c: 1\n\n  d: 2\n",
    ],
)
def test_the_data_are_those_of_the_whole(text):
    """With anchors from part to part, comments and quoted keys, which are read as a whole, too."""
    assert plain_data(text, "plan.yaml") == Document.parse(text, "plan.yaml").data


def test_a_part_is_read_once_and_belongs_to_nobody(monkeypatch):
    """Another seed is another scenario with the same devices; who changes its data changes no other's."""
    read, parse = [], Document.parse

    def counting(text, *given, **named):
        read.append(text)
        return parse(text, *given, **named)

    monkeypatch.setattr(parts.Document, "parse", counting)
    first = plain_data("scenario:\n  seed: 11\ndevices:\n  pi: [1]\n", "one")
    first["devices"]["pi"].append(2)
    assert plain_data("scenario:\n  seed: 12\ndevices:\n  pi: [1]\n", "two") == {
        "scenario": {"seed": 12},
        "devices": {"pi": [1]},
    }
    assert read == ["seed: 11\n", "pi: [1]\n", "seed: 12\n"]


@pytest.mark.parametrize("text", ["a: 1\nb: [\n", "a: 1\na: 2\n", "a: *x\n", "a: 1\n---\nb: 2\n"])
def test_a_mistake_is_that_of_the_whole(text):
    """With the file and the line."""
    with pytest.raises(ScenarioError) as whole:
        Document.parse(text, "plan.yaml")
    with pytest.raises(ScenarioError) as raised:
        plain_data(text, "plan.yaml")
    assert str(raised.value) == str(whole.value)
