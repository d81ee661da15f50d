"""Mistakes in our own words: what a value must be, which key was meant, and none of pydantic's phrases."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field
from pydantic_core._pydantic_core import list_all_errors

from edgefl.core.drafts import load
from edgefl.core.errors import Mistakes, RunError, ScenarioError, UserError, nearest
from edgefl.core.params import Strict
from edgefl.core.sourced import Sourced
from edgefl.core.units import Seconds
from edgefl.core.validation import validate
from edgefl.core.wording import must, quoted
from edgefl.core.yamls import Document

BASE = """\
task: {dataset: digits, clients: 4}
model: mlp
method: {name: fedprox, mu: 0.1}
local: {optimizer: {name: sgd, lr: 0.01}}
fleet: home-lab
"""

# Those whose message is the record's own.
OURS = {"value_error", "assertion_error"}


@pytest.mark.parametrize("error", list_all_errors(), ids=lambda error: error["type"])
def test_every_error_of_pydantic_has_words_of_ours(error):
    """None is told in pydantic's words, which speak of inputs, tuples and dictionaries."""
    if error["type"] in OURS:
        return
    words = must(error["type"], error.get("example_context") or {})
    assert words
    assert words.startswith(("be ", "have ", "not ", "match "))
    for theirs in ("Input", "input", "valid str", "integer", "dict", "tuple", "instance", "frozen", "{"):
        assert theirs not in words


class Sub(Strict):
    """A nested record."""

    size: int = 1


class Record(Strict):
    """A field of each kind."""

    share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    ratio: Annotated[float, Field(gt=0, le=1)] = 1.0
    level: Annotated[float, Field(ge=0, le=1)] | None = None
    open_: Annotated[float, Field(gt=0, lt=1)] = 0.5
    count: Annotated[int, Field(gt=0)] = 1
    betas: tuple[Annotated[float, Field(ge=0)], ...] = ()
    time: Annotated[Seconds, Field(gt=0)] = 1.0
    on: bool = True
    text: str = ""
    kind: Literal["one", "two"] = "one"
    sub: Sub = Sub()
    either: int | Sub = 1
    many: Annotated[int, Field(gt=0)] | Sub = 1
    some: dict[str, int] = Field(default_factory=dict)
    named: Annotated[str, Field(min_length=1)] = "name"
    sourced: Sourced[float] | None = None
    keyed: dict[Literal["fp32", "int8"], int] = Field(default_factory=dict)
    few: Annotated[tuple[Sub, ...], Field(min_length=1)] = (Sub(),)


def _fails(text):
    document = Document.parse(text, "r.yaml")
    with pytest.raises(ScenarioError) as caught:
        validate(Record, document.data, document)
    return caught.value


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("share: 1", "share must be a number of at least 0 and less than 1; got 1"),
        ("share: 'x'", "share must be a number of at least 0 and less than 1; got 'x'"),
        ("share: .nan", "share must be a finite number of at least 0 and less than 1; got nan"),
        ("ratio: 0", "ratio must be a number greater than 0 and at most 1; got 0"),
        ("level: 2", "level must be a number between 0 and 1; got 2"),
        ("open_: 1.5", "open_ must be a number between 0 and 1, neither included; got 1.5"),
        ("count: 2.5", "count must be a whole number greater than 0; got 2.5"),
        ("count: 0", "count must be a whole number greater than 0; got 0"),
        ("count: true", "count must be a whole number greater than 0; got true"),
        ("count: null", "count must be a whole number greater than 0; got null"),
        ("betas: 0.5", "betas must be a list; got 0.5"),
        ("betas: [0.5, -1]", "betas.1 must be a number of at least 0; got -1"),
        ("time: 0 s", "time must be a time greater than 0; got '0 s'"),
        ("on: 'yes'", "on must be true or false; got 'yes'"),
        ("text: 5", "text must be text; got 5"),
        ("kind: three", "kind must be 'one' or 'two'; got 'three'"),
        ("sub: [1]", "sub must be a mapping of keys to values; got [1]"),
        ("either: x", "either must be a whole number or a mapping of keys to values; got 'x'"),
        ("either: {size: x}", "either.size must be a whole number; got 'x'"),
        ("many: 0", "many must be greater than 0; got 0"),
        ("some: {a: x}", "some.a must be a whole number; got 'x'"),
        ("some: [1]", "some must be a mapping of keys to values; got [1]"),
        ("few: []", "few must have at least 1 item; got []"),
        ("named: ''", "named must not be empty; got ''"),
        ("sourced: 80 us", "sourced must be a number; got '80 us'"),
        ("sourced: [80]", "sourced must be a number, or {value: ..., status: ..., source: ...}; got [80]"),
        ("few: [3]", "few.0 must be a mapping of keys to values; got 3"),
    ],
)
def test_a_wrong_value_is_told_in_one_sentence(text, what):
    """The key, what its value must be, limits included, and what it is; one mistake only."""
    error = _fails(text)
    assert error.messages() == [f"{what}\n  where: r.yaml:1, key {what.split(' ')[0]!r}"]


def test_a_wrong_key_among_a_few_is_unknown():
    """The hint has those that are known."""
    error = _fails("keyed: {float32: 3}")
    assert (error.what, error.hint) == ("unknown key 'float32'", "use 'fp32' or 'int8'")
    assert error.where == "r.yaml:1, key 'keyed.float32'"


def test_the_word_that_was_meant():
    """The nearest one, if one is near."""
    assert [_fails(f"kind: {word}").hint for word in ("twoo", "three")] == ["did you mean 'two'?", ""]


def test_a_bare_word_in_place_of_a_list():
    """The hint is how to write the list; a number is no likely mistake."""
    assert [_fails(f"few: {given}").hint for given in ("one", "5")] == ["write [one]", ""]


def test_words_for_a_choice_are_read_without_regard_to_case():
    """As they are spelled in the record."""
    assert Record.model_validate({"kind": "TWO"}).kind == "two"
    (draft,) = load(Document.parse(BASE, "s.yaml"), ["evaluate={models: [Global], on: HOLDOUT}"])
    assert (draft.scenario.evaluate.models, draft.scenario.evaluate.on) == (("global",), "holdout")


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("server.round=3", "did you mean 'rounds'?"),
        ("Server.rounds=3", "did you mean 'server'?"),
        ("lr=0.1", "'lr' is a key of 'local.optimizer'"),
        ("local.clients=3", "'clients' is a key of 'task'"),
        ("server.momentum=0.5", "'momentum' is a key of 'local.optimizer'"),
        ("mu=3", "'mu' is a key of 'method'"),
        ("MU=3", "'mu' is a key of 'method'"),
        ("task.server={}", "'server' is a key of the file itself"),
        # Each of several records has it.
        ("rounds=3", "known: checkpoint, costs, engine, evaluate, "),
    ],
)
def test_the_key_that_was_meant(override, hint):
    """The nearest of the record, also one that is short for another; else where the key belongs."""
    with pytest.raises(ScenarioError, match="unknown key") as caught:
        load(Document.parse(BASE, "s.yaml"), [override])
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("given", ["0", "2.5"])
def test_a_short_form_is_told_as_it_is_written(given):
    """``server.rounds`` is read as ``server.until.rounds``, which the user did not write."""
    with pytest.raises(ScenarioError) as caught:
        load(Document.parse(BASE + "server:\n  until: {time: 5 s}\n  rounds: " + given, "s.yaml"))
    assert caught.value.what == f"server.rounds must be a whole number greater than 0; got {given}"
    assert caught.value.where == "s.yaml:8, key 'server.rounds'"


@pytest.mark.parametrize(
    "value",
    ["x" * 200, list(range(500)), 10**5000, {"a": "b" * 100}],
    ids=["text", "list", "number", "mapping"],
)
def test_a_long_value_is_cut(value):
    """A message stays readable, whatever was given."""
    assert len(quoted(value)) <= 60


def test_mistakes_are_collected_once_each():
    """Checks go on after one; a failed run is not bad input and ends them."""
    mistakes = Mistakes()
    for what in ("a", "b", "a"):
        with mistakes.collected():
            raise UserError(what, where="x")
    with pytest.raises(UserError) as caught:
        mistakes.check()
    assert [error.what for error in (caught.value, *caught.value.others)] == ["a", "b"]
    with pytest.raises(RunError), mistakes.collected():
        raise RunError("c")
    Mistakes().check()


def test_names_are_suggested_without_regard_to_case():
    """A name in capitals is near the same in small letters."""
    assert nearest("FEDAVGG", ["fedavg", "fedprox"]) == "did you mean 'fedavg'?"
