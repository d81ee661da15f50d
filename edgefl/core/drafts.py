"""Scenario files, with overrides applied and sweeps expanded."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from pydantic import ConfigDict

from edgefl.core import inheriting
from edgefl.core.errors import Place, ScenarioError, quoted, short
from edgefl.core.nodes import Node, written
from edgefl.core.notes import note
from edgefl.core.overrides import PAIRS, SCALE, SCALES, SWEEP, Override, meet, put, within
from edgefl.core.params import Strict
from edgefl.core.scenario import Scenario, Server
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document

T = TypeVar("T")
P = ParamSpec("P")

# Limits of a sweep; `docs/scenarios.md` states them.
MOST_RUNS = 10_000
MOST_VALUES = 10**7
_SEED = "seed"


class Draft(Strict):
    """A scenario with its document, so that later errors can name a line.

    Attributes:
        scenario: the settings.
        document: their source.
        group: the name of the scenario, shared by all runs of its sweep.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, frozen=True)

    scenario: Scenario
    document: Document
    group: str


def placed(function: Callable[Concatenate[Draft, P], T]) -> Callable[Concatenate[Draft, P], T]:
    """Places what a function of a draft refuses; see ``Document.placing``."""

    @wraps(function)
    def placing(draft: Draft, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with draft.document.placing():
            return function(draft, *args, **kwargs)

    return placing


def load(
    source: Path | Document, overrides: Sequence[str | Override] = (), seeds: int | None = None
) -> list[Draft]:
    """The runs of a scenario file: one, or one for each setting of its sweep.

    Args:
        source: the file, or a parsed document.
        overrides: settings, or "key.path=value" texts with values in YAML, applied before the sweep.
        seeds: repeats all runs with so many seeds, which count up from the scenario's. All runs of a seed
            come before those of the next.

    Raises:
        ScenarioError: the file, an override or the number of seeds is wrong.
    """
    document = source if isinstance(source, Document) else Document.read(source)
    given = [one if isinstance(one, Override) else Override.parse(one) for one in overrides]
    root, given = _scaled(document.nodes, given)
    for override in given:
        root = _overridden(root, override)
    sweep = _Sweep.read(Document.of(root, document.file))
    sweep.check_apart()
    if seeds is not None:
        sweep = sweep._replace(seeds=_seeds(root, given, sweep, seeds))
    base = root._replace(value={key: node for key, node in root.value.items() if key != SWEEP})
    sweep.check_size(base)
    name = base.value.get("name") or Node(Path(document.file).stem, document.file)
    base = base._replace(value={**base.value, "name": name._replace(value=_label(name.value))})
    return _named_apart([_one(base, run, document.file, str(name.value)) for run in sweep.runs()])


def _scaled(root: Node, given: Sequence[Override]) -> tuple[Node, list[Override]]:
    """The scenario without its scales, and the overrides, after the settings of the scale that is chosen.

    Raises:
        ScenarioError: there is no such scale, or one is no mapping.
    """
    others = [one for one in given if one.key != SCALE]
    chosen = next((one.node for one in reversed(given) if one.key == SCALE), root.child(SCALE))
    every = root.child(SCALES)
    scales = (every and every.value) or {}
    if not isinstance(scales, dict) or not all(isinstance(one.value, dict) for one in scales.values()):
        where = str(Document.of(root, root.file).place([SCALES]))
        raise ScenarioError("'scales' must map names to settings", where=where, hint=_SCALES)
    rest = {key: node for key, node in root.value.items() if key not in {SCALE, SCALES}}
    if chosen is None or chosen.value is None:
        return root._replace(value=rest), others
    name = str(chosen.plain)
    if name not in scales:
        what, where = f"the scenario has no scale {short(name)!r}", str(Place(chosen.file, chosen.line))
        known = f"it has {', '.join(scales)}" if scales else f"it has none; {_SCALES}"
        raise ScenarioError(what, where=where, hint=known)
    own = [Override(key, node) for key, node in scales[name].value.items()]
    return root._replace(value={**rest, SCALE: chosen._replace(value=name)}), [*own, *others]


_SCALES = "for example scales: {small: {server.rounds: 2}}"


def _label(name: Any) -> Any:
    """A name, also one that YAML reads as a number or as a truth value."""
    return name if isinstance(name, dict | list) else str(name)


def _overridden(root: Node, override: Override) -> Node:
    """The scenario with one override, which replaces what the sweep sets of its key."""
    keys, sweep = override.keys, root.child(SWEEP)
    axes = sweep.value if sweep and isinstance(sweep.value, dict) else {}
    if axes and keys[0] != SWEEP:
        root = _swept(root, _replaced(axes, override))
    elif override.node.value is None and len(keys) == 2 and keys[1] in axes:  # noqa: PLR2004 - sweep and its key
        return _swept(root, {key: node for key, node in axes.items() if key != keys[1]})
    return put(root, keys, override.node)


def _swept(root: Node, axes: dict[str, Node]) -> Node:
    """A scenario with another sweep, or without one if nothing is left of it."""
    kept = {key: node for key, node in root.value.items() if key != SWEEP}
    return root._replace(value={**kept, SWEEP: root.value[SWEEP]._replace(value=axes)} if axes else kept)


def _replaced(axes: Mapping[str, Node], override: Override) -> dict[str, Node]:
    """A sweep with an override in it; of settings that differ in nothing but a name then, the first stay."""
    lost: dict[str, list[Node]] = {}
    found = dict(axes)
    for axis, node in axes.items():
        if not isinstance(node.value, list):
            continue
        each = [one.value if axis == PAIRS else {axis: one} for one in node.value]
        after = [_changed(one, override, lost) if isinstance(one, dict) else one for one in each]
        if after == each:
            continue
        apart: dict[str, Node] = {}
        for one, settings in zip(node.value, after, strict=True):
            plain = repr({key: value.plain for key, value in settings.items() if key != "name"})
            apart.setdefault(
                plain, one._replace(value=settings) if axis == PAIRS else settings.get(axis, one)
            )
        found[axis] = node._replace(value=list(apart.values()))
        if list(apart) == ["{}"]:
            del found[axis]
    for key, values in lost.items():
        words = short(", ".join(_words(value.plain) for value in values))
        note(
            f"{override.where} replaces the sweep's {key}: {words} "
            f"({len(values)} value{'s' * (len(values) > 1)})"
        )
    return found


def _changed(
    settings: Mapping[str, Node], override: Override, lost: dict[str, list[Node]]
) -> dict[str, Node]:
    """A run's settings with an override in them; ``lost`` takes what it replaces, by key."""
    found = {}
    for key, value in settings.items():
        depth = key.count(".") + 1
        if key != "name" and within(key, override.key):
            lost.setdefault(key, []).append(value)
        elif within(override.key, key):
            before: Node | None = value
            for part in override.keys[depth:]:
                before = before.child(part) if before else None
            if before:
                lost.setdefault(override.key, []).append(before)
            found[key] = put(value, override.keys, override.node, depth)
        else:
            found[key] = value
    if found != settings:
        # It was the name of what is there no more.
        found.pop("name", None)
    return found


def _seeds(root: Node, given: Sequence[Override], sweep: _Sweep, count: int) -> list[Node]:
    """The seeds of repetitions."""
    where = f"--seeds {short(str(count))}"
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_RUNS:
        what = f"the number of seeds must be a whole number from 1 to {MOST_RUNS:,}"
        raise ScenarioError(what, where=where)
    if _SEED in sweep.axes or any(_SEED in pair for pair in sweep.pairs):
        raise ScenarioError(
            "the scenario's sweep sets 'seed' already",
            where=where,
            hint=f"leave --seeds out, or remove them with --set sweep.{_SEED}=null"
            if _SEED in sweep.axes
            else f"leave --seeds out, or remove 'seed' from sweep.{PAIRS}",
        )
    if sum(override.key == _SEED for override in given) > 1:
        what = "'seed' is set more than once; seeds are counted up from one"
        raise ScenarioError(what, where=where, hint="give the first seed alone, as in --seed 1")
    first = (root.child(_SEED) or written(Scenario.model_fields[_SEED].default, where)).plain
    # What is no seed is refused where scenarios are read.
    if isinstance(first, bool) or not isinstance(first, int):
        return [root.value[_SEED]]
    return [written(first + number, where) for number in range(count)]


class _Run(NamedTuple):
    """One run's settings, by key, and the keys whose values name it."""

    settings: dict[str, Node]
    named: list[str]


class _Sweep(NamedTuple):
    """A sweep: axes, and pairs of settings that belong together, which are combined with each other.

    Attributes:
        axes: lists of values, by key.
        pairs: settings by key; without any, one that sets nothing.
        document: their source.
        seeds: with which all of that is repeated; empty for the scenario's own.
    """

    axes: dict[str, list[Node]]
    pairs: list[dict[str, Node]]
    document: Document
    seeds: Sequence[Node] = ()

    @classmethod
    def read(cls, document: Document) -> _Sweep:
        """The sweep of a scenario; without one there is one run with no settings.

        Raises:
            ScenarioError: it is no mapping of lists, or sets a key twice.
        """
        sweep = document.nodes.child(SWEEP)
        if sweep is None or sweep.value is None:
            return cls({}, [{}], document)

        def wrong(what: str, *keys: str | int, hint: str = "") -> ScenarioError:
            return ScenarioError(what, where=str(document.place([SWEEP, *keys])), hint=hint)

        if not isinstance(sweep.value, dict) or not sweep.value:
            raise wrong("a sweep must map keys to lists, or 'runs' to a list of settings")
        found = sweep.value.get(PAIRS)
        pairs = found.value if found else [Node({}, document.file)]
        if not isinstance(pairs, list) or not pairs:
            raise wrong("'runs' must be a list of mappings of keys to values", PAIRS)
        for place, pair in enumerate(pairs):
            if not isinstance(pair.value, dict):
                raise wrong("'runs' must be a list of mappings of keys to values", PAIRS, place)
        axes = {key: node.value for key, node in sweep.value.items() if key != PAIRS}
        for key, values in axes.items():
            if not isinstance(values, list) or not values:
                what = "an empty list" if values == [] else "not a list of values"
                raise wrong(f"the sweep's {key!r} is {what}", key, hint=f"write {key}: [a, b]")
        return cls(axes, [pair.value for pair in pairs], document)

    def check_apart(self) -> None:
        """Refuses a pair's setting that an axis would silently replace, and a scale, which may be of axes."""
        if SCALE in self.axes or any(SCALE in pair for pair in self.pairs):
            hint = "choose one with --set scale=NAME"
            raise ScenarioError("a scale cannot be swept", where=str(self.document.place([SWEEP])), hint=hint)
        for place, pair in enumerate(self.pairs):
            for other, axis in itertools.product(pair, self.axes):
                if not meet(axis, other):
                    continue
                # At the one that was typed, if one was.
                both = [self.document.place([SWEEP, axis]), self.document.place([SWEEP, PAIRS, place, other])]
                where = next((one for one in both if one.file != self.document.file), both[1])
                raise ScenarioError(
                    f"sweep.runs sets {other!r}, which the sweep also sets as {axis!r}",
                    where=str(where),
                    hint=f"remove one of them: --set sweep.{axis}=null or --set sweep.{PAIRS}=null",
                )

    def check_size(self, base: Node) -> None:
        """Refuses more runs than anybody waits for."""
        count = len(self.pairs) * math.prod(map(len, self.axes.values())) * max(len(self.seeds), 1)
        where = str(self.document.place([SWEEP]))
        if count > MOST_RUNS:
            raise ScenarioError(f"a sweep of {count:,} runs; the most is {MOST_RUNS:,}", where=where)
        if count > 1 and count * base.size() > MOST_VALUES:
            what = f"a sweep of {count:,} runs with {base.size():,} values each"
            raise ScenarioError(f"{what}; the most is {MOST_VALUES:,} in all", where=where)

    def runs(self) -> Iterator[_Run]:
        """Each run; a pair with its own name is named by it."""
        repeated = [{_SEED: seed} for seed in self.seeds] or [{}]
        for seed, pair, values in itertools.product(
            repeated, self.pairs, itertools.product(*self.axes.values())
        ):
            named = ["name"] if "name" in pair else list(pair)
            settings = {**pair, **dict(zip(self.axes, values, strict=True)), **seed}
            yield _Run(settings, [*named, *self.axes, *seed])


def _one(base: Node, run: _Run, file: str, group: str) -> Draft:
    """One run, named by its settings."""
    root = base
    # What contains another setting comes first, and a component's name before its parameters.
    for key in sorted(run.settings, key=lambda key: (key.count("."), not key.endswith(".name"))):
        root = put(root, key.split("."), run.settings[key])
    name = ", ".join(setting_words(key, node.plain) for key, node in run.settings.items() if key in run.named)
    if name:
        root = root._replace(value={**root.value, "name": Node(name, root.file, root.line)})
    return _draft(root, Document.of(root, file), group)


def _draft(root: Node, document: Document, group: str) -> Draft:
    """The draft of a mapping that ``document`` places; a fleet's profiles are read."""
    fleet = root.child("fleet")
    if fleet and isinstance(fleet.value, dict):
        where = str(document.place(["fleet"]))
        root = root._replace(value={**root.value, "fleet": inheriting.fleet(fleet, where)})
    document = replace(document, data=root.plain, root=root)
    with document.placing():
        scenario = validate(Scenario, document.data, document)
    return Draft(scenario=scenario, document=document, group=group)


def redrafted(settings: Mapping[str, Any], file: str, overrides: Sequence[Override] = ()) -> Draft:
    """The draft of a run, from its resolved settings.

    Args:
        settings: what ``Scenario.resolved`` returned, and a name.
        file: where they come from, for messages.
        overrides: settings that replace them.

    Raises:
        ScenarioError: an override is wrong.
    """
    root = written(dict(settings), file)
    for override in overrides:
        first, *rest = override.keys
        # A short form would stand beside what it is short for, which a resolved scenario has.
        longer = Server.SHORT_FORMS.get(".".join(rest)) if first == "server" else None
        root = put(root, [first, *(longer.split(".") if longer else rest)], override.node)
    return _draft(root, Document(file, {}, RESOLVED, root), str(settings["name"]))


def setting_words(key: str, value: Any) -> str:
    """A setting in a run's name, by its dotted key and its value."""
    last = key.rsplit(".", 1)[-1]
    if isinstance(value, dict) and "name" in value:
        return _words(value)
    return _words(value) if last in {"name", "method", "model", "fleet"} else f"{last} {_words(value)}"


def _words(value: Any) -> str:
    """A value in a run's name: a component by its name and parameters, also inside another."""
    if isinstance(value, dict):
        own = (f"{key} {_words(inner)}" for key, inner in value.items() if key != "name")
        return " ".join([*([str(value["name"])] if "name" in value else []), *own])
    if isinstance(value, list):
        return f"[{', '.join(map(_words, value))}]"
    return quoted(value) if value is None or isinstance(value, bool) else str(value)


def _named_apart(runs: list[Draft]) -> list[Draft]:
    seen: Counter[str] = Counter()
    for place, run in enumerate(runs):
        name = run.scenario.name
        seen[name] += 1
        if seen[name] > 1:
            renamed = run.scenario.model_copy(update={"name": f"{name} ({seen[name]})"})
            runs[place] = run.model_copy(update={"scenario": renamed})
    return runs


def slug(name: str) -> str:
    """A name as a folder name: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:80] or "run"
