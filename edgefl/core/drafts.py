"""Scenario files, with overrides applied and sweeps expanded."""

from __future__ import annotations

import copy
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from edgefl.core.errors import ScenarioError
from edgefl.core.fleet import inherited
from edgefl.core.params import Strict
from edgefl.core.scenario import Scenario
from edgefl.core.validation import validate
from edgefl.core.yamls import Document, plain


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


def load(source: Path | Document, overrides: Sequence[str] = ()) -> list[Draft]:
    """The runs of a scenario file: one, or one for each setting of its sweep.

    Args:
        source: the file, or a parsed document.
        overrides: "key.path=value" texts, values in YAML, applied before the sweep.

    Raises:
        ScenarioError: the file or an override is wrong.
    """
    document = source if isinstance(source, Document) else Document.read(source)
    data = copy.deepcopy(document.data)
    elsewhere = dict(document.elsewhere)
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator or not key.strip():
            raise ScenarioError(
                f"{override!r} is not KEY=VALUE", where="--set", hint="for example --set server.rounds=5"
            )
        _put(data, key.strip(), _value(text, override), "--set")
        elsewhere[key.strip()] = "--set"
    sweep = data.pop("sweep", None)
    changed = Document(document.file, data, elsewhere)
    written = Document(document.file, document.data, elsewhere)
    _check_apart(sweep, overrides, written)
    name = str(data.get("name", Path(document.file).stem))
    runs = [_one(changed, settings, named, name) for settings, named in _settings(sweep, written)]
    return _named_apart(runs)


def _check_apart(sweep: Any, overrides: Sequence[str], document: Document) -> None:
    """Refuses an override, or a setting of ``sweep.runs``, that a key of the sweep would silently replace."""
    if not isinstance(sweep, dict):
        return
    pairs = sweep.get("runs")
    axes = [str(key) for key in sweep if key != "runs"]
    paired = (
        {str(key) for pair in pairs if isinstance(pair, dict) for key in pair}
        if isinstance(pairs, list)
        else set()
    )
    for override in overrides:
        key = override.partition("=")[0].strip()
        for other in (*axes, *paired):
            if _meet(key, other):
                raise ScenarioError(
                    f"{key!r} is also set by the scenario's sweep"
                    + (f", as {other!r}" if other != key else ""),
                    where="--set",
                    hint="change the sweep (--set sweep.KEY=...), or remove it with --set sweep=null",
                )
    for key in axes:
        for other in sorted(paired):
            if _meet(key, other):
                raise ScenarioError(
                    f"sweep.runs sets {other!r}, which the sweep also sets as {key!r}",
                    where=str(document.place(["sweep"])),
                    hint="remove one of them, for example with --set 'sweep={runs: [...]}'",
                )


def _meet(key: str, other: str) -> bool:
    """Whether one of two dotted keys equals or contains the other."""
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def _value(text: str, override: str) -> Any:
    try:
        return YAML(typ="rt", pure=True).load(text)
    except YAMLError as error:
        raise ScenarioError(f"the value in {override!r} is not valid YAML", where="--set") from error


def _one(document: Document, settings: dict[str, Any], named: Sequence[str], name: str) -> Draft:
    """One run: ``settings`` override the document, and those in ``named`` form the run's name."""
    data = copy.deepcopy(document.data)
    if isinstance(data.get("method"), str):
        data["method"] = {"name": data["method"]}
    data.setdefault("name", name)
    sweep = f"{document.file}, in the sweep"
    for key, value in settings.items():
        _put(data, key, value, sweep)
    data["name"] = ", ".join(
        [_setting(key, value) for key, value in settings.items() if key in named]
    ) or str(data["name"])
    changed = Document(document.file, data, {**document.elsewhere, **dict.fromkeys(settings, sweep)})
    if isinstance(data.get("fleet"), dict):
        data["fleet"] = inherited(data["fleet"], str(changed.place(["fleet"])))
    return Draft(scenario=validate(Scenario, plain(data), changed), document=changed, group=name)


def _setting(key: str, value: Any) -> str:
    last = key.rsplit(".", 1)[-1]
    value = plain(value)
    if isinstance(value, dict) and "name" in value:
        return " ".join([str(value["name"]), *(f"{k} {v}" for k, v in value.items() if k != "name")])
    return str(value) if last in {"name", "method", "model", "fleet"} else f"{last} {value}"


def _named_apart(runs: list[Draft]) -> list[Draft]:
    seen: Counter[str] = Counter()
    for place, run in enumerate(runs):
        name = run.scenario.name
        seen[name] += 1
        if seen[name] > 1:
            renamed = run.scenario.model_copy(update={"name": f"{name} ({seen[name]})"})
            runs[place] = run.model_copy(update={"scenario": renamed})
    return runs


def _settings(sweep: Any, document: Document) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Each run's overrides: the product of the axes, the paired list under "runs", or the product of both.

    Each comes with the keys that name the run; a pair with its own name is named by it.
    """
    if sweep is None:
        yield {}, []
        return
    where = str(document.place(["sweep"]))
    if not isinstance(sweep, dict) or not sweep:
        raise ScenarioError("a sweep must map keys to lists, or 'runs' to a list of settings", where=where)
    pairs = sweep.get("runs", [{}])
    axes = {str(key): values for key, values in sweep.items() if key != "runs"}
    if not isinstance(pairs, list) or not pairs or not all(isinstance(pair, dict) for pair in pairs):
        raise ScenarioError("'runs' must be a list of mappings of keys to values", where=where)
    for key, values in axes.items():
        if not isinstance(values, list) or not values:
            raise ScenarioError(
                f"the sweep's {key!r} is {'an empty list' if values == [] else 'not a list of values'}",
                where=where,
                hint=f"write {key}: [a, b]",
            )
    for pair in pairs:
        for values in itertools.product(*axes.values()):
            paired = {str(key): value for key, value in pair.items()}
            named = ["name"] if "name" in paired else list(paired)
            yield {**paired, **dict(zip(axes, values, strict=True))}, [*named, *axes]


def _put(data: Any, key: str, value: Any, where: str) -> None:
    *folders, last = key.split(".")
    node = data
    for folder in folders:
        if isinstance(node.get(folder), str):
            node[folder] = {"like" if folder == "fleet" else "name": node[folder]}
        node = node.setdefault(folder, {})
        if not isinstance(node, dict):
            raise ScenarioError(f"{key!r}: {folder!r} is not a mapping", where=where)
    if last == "name" and folders and isinstance(node.get("name"), str) and node["name"] != value:
        # Another component has other parameters: drop the old ones with the old name.
        node.clear()
    node[last] = value


def slug(name: str) -> str:
    """A name as a folder name: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:80] or "run"
