"""Scenario files, with overrides applied and sweeps expanded."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from pydantic import Field

from edgefl.core import inheriting
from edgefl.core.errors import ScenarioError, quoted, short
from edgefl.core.notes import note
from edgefl.core.overrides import PAIRS, SCALE, SCALES, SWEEP, Override, put, within
from edgefl.core.scenario import Scenario, Server
from edgefl.core.user_code import user_code
from edgefl.core.validation import item_at, validate
from edgefl.core.yamls import RESOLVED, Document

T = TypeVar("T")
P = ParamSpec("P")

# Of a sweep; `docs/scenarios.md` states it.
MOST_RUNS = 10_000


@dataclass(frozen=True)
class Draft:
    """A scenario with its document, so that later errors can name a line; runs of one sweep share a group."""

    scenario: Scenario
    document: Document
    group: str


def placed(function: Callable[Concatenate[Draft, P], T]) -> Callable[Concatenate[Draft, P], T]:
    """Places what a function of a draft refuses, or a user's code in it; see ``Document.placing``."""

    @wraps(function)
    def placing(draft: Draft, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with draft.document.placing(), user_code():
            return function(draft, *args, **kwargs)

    return placing


def load(
    source: Path | Document, overrides: Sequence[str | Override] = (), seeds: int | None = None
) -> list[Draft]:
    """The runs of a scenario file: one, or one for each setting of its sweep.

    Args:
        overrides: settings, or "key.path=value" texts with values in YAML; they win over the sweep's.
        seeds: repeats all runs with so many seeds, which count up from the scenario's. All runs of a seed
            come before those of the next.
    """
    document = source if isinstance(source, Document) else Document.read(source)
    given = [one if isinstance(one, Override) else Override.parse(one) for one in overrides]
    document, given = _scaled(document, given)
    for override in given:
        document = put(document, override.keys, override.value)
    runs = _without(_swept(document), [one for one in given if one.keys[0] != SWEEP])
    if seeds is not None:
        runs = _repeated(runs, document, seeds)
    name = document.data.get("name")
    label = name if isinstance(name, dict | list) else str(name or Path(document.file).stem)
    _check_size(len(runs), document)
    base = replace(document, data={**document.data, "name": label}).without(SWEEP)
    seen = Counter[str]()
    return [_one(base, run, str(label), seen) for run in runs]


def _scaled(document: Document, given: Sequence[Override]) -> tuple[Document, list[Override]]:
    """The scenario without its scales, and the overrides, after the settings of the scale that is chosen."""
    others = [one for one in given if one.key != SCALE]
    inside = document.inside()
    chosen = next((one.value for one in reversed(given) if one.key == SCALE), inside.get(SCALE))
    scales = validate(dict[str, dict[str, Any]], document.data.get(SCALES) or {}, document, [SCALES])
    rest = document.without(SCALE, SCALES)
    if chosen is None or chosen.data is None:
        return rest, others
    name = str(chosen.data)
    if name not in scales:
        what = f"the scenario has no scale {short(name)!r}"
        example = "for example scales: {small: {server.rounds: 2}}"
        known = f"it has {', '.join(scales)}" if scales else f"it has none; {example}"
        raise ScenarioError(what, where=chosen.place(), hint=known)
    settings = inside[SCALES].inside()[name].inside()
    own = [Override(key, value) for key, value in settings.items()]
    return put(rest, [SCALE], replace(chosen, data=name)), [*own, *others]


# Keys' values; null for none.
_Sweep = Annotated[dict[str, Annotated[list[Any], Field(min_length=1)] | None], Field(min_length=1)]


class _SweptRun(NamedTuple):
    """One run's settings, by key, and the keys whose values name it."""

    settings: Mapping[str, Document]
    named: Sequence[str]


def _swept(document: Document) -> list[_SweptRun]:
    """The runs of a scenario's sweep: pairs of settings that belong together, and axes, all combined."""
    sweep = document.inside().get(SWEEP)
    if sweep is None or sweep.data is None:
        return [_SweptRun({}, [])]
    validate(_Sweep, sweep.data, document, [SWEEP])
    # What is null is taken out, as by --set sweep.KEY=null.
    parts = {key: part for key, part in sweep.inside().items() if part.data is not None}
    pairs = parts.pop(PAIRS, Document.of([{}], document.file))
    validate(list[dict[str, Any]], pairs.data, document, [SWEEP, PAIRS])
    if SCALE in parts or any(SCALE in pair for pair in pairs.data):
        hint = "choose one with --set scale=NAME"
        raise ScenarioError("a scale cannot be swept", where=document.place([SWEEP]), hint=hint)
    count = len(pairs.data) * math.prod(len(axis.data) for axis in parts.values())
    _check_size(count, document)
    found, axes = [], [axis.inside().values() for axis in parts.values()]
    for pair, *values in itertools.product(pairs.inside().values(), *axes):
        own = pair.inside()
        named = ["name"] if "name" in own else list(own)
        found.append(_SweptRun({**own, **dict(zip(parts, values, strict=True))}, [*named, *parts]))
    return found


def _without(runs: Sequence[_SweptRun], overrides: Sequence[Override]) -> list[_SweptRun]:
    """Runs in which overrides win; of those that differ in nothing but a name then, the first stays."""
    found: dict[str, _SweptRun] = {}
    for run in runs:
        settings = dict(run.settings)
        for override, key in itertools.product(overrides, run.settings):
            if key == "name" or key not in settings:
                continue
            value, above = settings[key], key.count(".") + 1
            if within(key, override.key):
                del settings[key]
                note(f"{override.value.place()} replaces the sweep's {key}")
            elif within(override.key, key):
                if item_at(value.data, override.keys[above:]) is not None:
                    note(f"{override.value.place()} replaces the sweep's {override.key}")
                settings[key] = put(value, override.keys, override.value, above)
        plain = repr({key: value.data for key, value in settings.items() if key != "name"})
        if settings == run.settings:
            found[plain if plain not in found else repr(len(found))] = run
            continue
        # It was the name of what is there no more.
        named = [key for key in settings if key != "name"] if "name" in run.named else run.named
        settings.pop("name", None)
        found.setdefault(plain, _SweptRun(settings, [key for key in named if key in settings]))
    return list(found.values())


def _repeated(runs: Sequence[_SweptRun], document: Document, count: int) -> list[_SweptRun]:
    where = f"--seeds {short(str(count))}"
    if not 1 <= count <= MOST_RUNS:
        what = f"the number of seeds must be a whole number from 1 to {MOST_RUNS:,}"
        raise ScenarioError(what, where=where)
    first = document.data.get("seed", Scenario.model_fields["seed"].default)
    # What is no seed is refused where scenarios are read.
    each = range(first, first + count) if type(first) is int else ()
    seeds = [Override("seed", Document.of(seed, where)) for seed in each]
    runs = _without(runs, seeds[:1])
    return [
        _SweptRun({**run.settings, "seed": seed.value}, [*run.named, "seed"])
        for seed in seeds
        for run in runs
    ] or list(runs)


def _check_size(count: int, document: Document) -> None:
    if count > MOST_RUNS:
        what = f"a sweep of {count:,} runs; the most is {MOST_RUNS:,}"
        raise ScenarioError(what, where=document.place([SWEEP]))


def _one(document: Document, run: _SweptRun, group: str, seen: Counter[str]) -> Draft:
    """One run, named by its settings, and numbered where others have been ``seen`` with this name."""
    # What contains another setting comes first, and a component's name before its parameters.
    for key in sorted(run.settings, key=lambda key: (key.count("."), not key.endswith(".name"))):
        document = put(document, key.split("."), run.settings[key])
    name = ", ".join(setting_words(key, run.settings[key].data) for key in run.named) or group
    seen[name] += 1
    again = f" ({seen[name]})" if seen[name] > 1 else ""
    if run.named or again:
        document = replace(document, data={**document.data, "name": f"{name}{again}"})
    return _draft(document, group)


def _draft(document: Document, group: str) -> Draft:
    """The draft of a document; a fleet's profiles are read."""
    fleet = document.inside().get("fleet")
    if fleet is not None and isinstance(fleet.data, dict):
        where = document.place(["fleet", "like"])
        document = put(document, ["fleet"], inheriting.inherited("profiles", fleet, where))
    with document.placing():
        scenario = validate(Scenario, document.data, document)
    return Draft(scenario, document, group)


def redrafted(settings: Mapping[str, Any], file: str, overrides: Sequence[Override] = ()) -> Draft:
    """The draft of a run: what ``Scenario.resolved`` returned of it, read from ``file``, and a name."""
    document = replace(Document.of(settings, file), context=RESOLVED)
    for override in overrides:
        first, *rest = override.keys
        # A short form would stand beside what it is short for, which a resolved scenario has.
        longer = Server.SHORT_FORMS.get(".".join(rest)) if first == "server" else None
        document = put(document, [first, *(longer.split(".") if longer else rest)], override.value)
    return _draft(document, str(settings["name"]))


def setting_words(key: str, value: Any) -> str:
    """A setting in a run's name, by its dotted key and its value."""
    last, words = key.rsplit(".", 1)[-1], _words(value)
    is_named = last in {"name", "method", "model", "fleet"} or (isinstance(value, dict) and "name" in value)
    return words if is_named else f"{last} {words}"


def _words(value: Any) -> str:
    """A value in a run's name: a component by its name and parameters, also inside another."""
    if isinstance(value, dict):
        own = (f"{key} {_words(inner)}" for key, inner in value.items() if key != "name")
        return " ".join([*([str(value["name"])] if "name" in value else []), *own])
    if isinstance(value, list):
        return f"[{', '.join(map(_words, value))}]"
    return quoted(value) if value is None or isinstance(value, bool) else str(value)


def slug(name: str) -> str:
    """A name as a folder name: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:80] or "run"
