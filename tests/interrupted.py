"""Runs that stop at some moment: scenarios in which much happens, and copies of a run as a kill leaves it."""

import errno
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from small import SKEWED

import edgefl
from edgefl.core import catalogue
from edgefl.store import writer

BASE: dict[str, Any] = {
    "name": "stopped",
    "task": SKEWED,
    "model": {"name": "mlp", "hidden": [12]},
    "method": "fedavg",
    "local": {"steps": 3, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
    "fleet": {"like": "home-lab", "jitter": {"name": "half-normal", "scale": 0.3}},
    "server": {"participants": 3, "rounds": 5},
    "checkpoint": {"minutes": 0},
}
POLICIES: dict[str, Any] = {
    "sync": "sync",
    "overselect": {"name": "overselect", "factor": 1.6},
    "deadline": {"name": "deadline", "quantile": 0.5},
    "late": {"name": "deadline", "quantile": 0.5, "late": "merge"},
    "partial": {"name": "deadline", "quantile": 0.5, "late": "merge", "allow_partial": True},
    "semi-sync": {"name": "semi-sync", "interval": "10 ms"},
    "fedasync": "fedasync",
    "fedbuff": {"name": "fedbuff", "buffer": 2},
}
# Those that merge stale uploads, and methods whose uploads cannot be stale.
STALE, NEVER_STALE = (
    ("late", "partial", "semi-sync", "fedasync", "fedbuff"),
    ("fedcurv", "feddyn", "fedproto"),
)
_UNSTABLE = {
    "like": "home-lab",
    "availability": {"name": "markov", "on": "2 s", "off": "500 ms"},
    "failures": {"crash": 0.2, "corrupt": 0.2, "timeout": "1 s"},
    "speed": [{"name": "load"}],
}


def merged(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with some replaced, mapping by mapping unless a mapping has a name."""
    found = dict(settings)
    for key, value in changes.items():
        before = found.get(key)
        both = isinstance(before, Mapping) and isinstance(value, Mapping) and "name" not in value
        found[key] = merged(before, value) if both else value
    return found


def _server(**changes: Any) -> dict[str, Any]:
    return {"server": changes}


def _methods() -> dict[str, dict[str, Any]]:
    """Every method, each under another policy that it allows."""
    policies, found = list(POLICIES), {}
    for place, name in enumerate(catalogue.entries("methods")):
        chosen = policies[place % len(policies)]
        if name in NEVER_STALE and chosen in STALE:
            chosen = "deadline"
        public = {"public": {"samples": 60}} if name == "ktpfl" else {}
        found[f"{name} {chosen}"] = {
            "method": name,
            "task": public,
            "server": {"policy": POLICIES[chosen]},
        }
    return found


OTHERS: dict[str, dict[str, Any]] = {
    **{
        f"{selector['name']} {policy}": _server(selector=selector, policy=POLICIES[policy], rounds=8)
        for selector, policy in (
            ({"name": "oort", "window": 2}, "late"),
            ({"name": "tiers", "tiers": 3, "interval": 1}, "sync"),
            ({"name": "power-of-choice"}, "overselect"),
            ({"name": "fastest"}, "partial"),
            ({"name": "round-robin"}, "fedbuff"),
        )
    },
    "topk up, int8 down": {
        "wire": {"up": {"name": "topk", "share": 0.3}, "down": "int8"},
        "server": {"policy": POLICIES["fedasync"]},
    },
    "measures": {
        "method": "fedavg",
        "evaluate": {
            "every": 2,
            "measures": ["gradient-diversity", "forgetting", "accuracy-drop", "weight-divergence"],
        },
    },
    "measures of clients": {
        "method": "fedclassavg",
        "evaluate": {"every": 2, "measures": ["classifier-consistency", "personal-accuracy"]},
        "server": {"policy": POLICIES["fedbuff"]},
    },
    "unstable": {"fleet": _UNSTABLE, "method": "scaffold", "server": {"policy": POLICIES["late"]}},
    "unstable, asynchronous": {"fleet": _UNSTABLE, "server": {"policy": POLICIES["fedbuff"], "rounds": 8}},
    "charging": {
        "fleet": {"like": "city-phones-at-night"},
        "server": {"selector": "energy-aware", "policy": POLICIES["overselect"]},
    },
    "holdout": {"evaluate": {"on": "holdout", "every": 2, "models": ["personal"]}, "method": "ditto"},
    "mixed models": {
        "model": [{"name": "mlp", "hidden": [16, 12]}, {"name": "mlp", "hidden": [12]}],
        "method": "fedclassavg",
        "server": {"policy": POLICIES["fedasync"]},
    },
    "few evaluations": {"evaluate": {"every": 50}, "server": {"policy": POLICIES["fedbuff"], "rounds": 12}},
    "checkpoints at evaluations": {"checkpoint": {"minutes": 5}, "evaluate": {"every": 2}},
    "until an accuracy": _server(until={"rounds": 9, "accuracy": 0.3}, rounds=None),
    "until a time": {"server": {"until": {"time": "80 ms"}, "rounds": None, "policy": POLICIES["fedbuff"]}},
}
SCENARIOS = {**_methods(), **OTHERS}


def scenario(*changes: Mapping[str, Any]) -> dict[str, Any]:
    """The base with changes, such as one of ``SCENARIOS``; None takes a server's key away."""
    found = BASE
    for one in changes:
        found = merged(found, one)
    server = {key: value for key, value in found["server"].items() if value is not None}
    return {**found, "server": server}


class Copies:
    """Copies of a run's directory, each as a kill at one of its writes would leave it."""

    def __init__(self, target: Path, most: int, seed: str) -> None:
        self.target, self.most, self.seen = target, most, 0
        self.kept: list[Path] = []
        self._rng = random.Random(seed)  # noqa: S311 - no secrets

    def take(self, folder: Path) -> None:
        """Copies the directory, or not, or in the place of another copy; not before all is planned."""
        if not any((folder / name).exists() for name in ("run.sqlite", "group.json")):
            return
        self.seen += 1
        place = self._rng.randrange(self.seen) if self.seen > self.most else len(self.kept)
        if place >= self.most:
            return
        copy = self.target / f"{self.seen:04d}"
        shutil.copytree(folder, copy)
        if place == len(self.kept):
            self.kept.append(copy)
        else:
            shutil.rmtree(self.kept[place])
            self.kept[place] = copy


@contextmanager
def copied(folder: Path, target: Path, most: int, seed: str = "") -> Iterator[Copies]:
    """While a run writes into a directory, copies it before each write and after each commit."""
    copies = Copies(target, most, seed)

    def before(method: Callable[..., Any]) -> Callable[..., Any]:
        def called(path: Path, *given: Any, **named: Any) -> Any:
            if folder in path.parents:
                copies.take(folder)
            return method(path, *given, **named)

        return called

    def committed(store: writer.Store) -> None:
        copies.take(folder)
        commit(store)
        copies.take(folder)

    commit = writer.Store.commit
    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "unlink"):
            patch.setattr(Path, name, before(getattr(Path, name)))
        patch.setattr(writer.Store, "commit", committed)
        yield copies


@contextmanager
def full_disk(folder: Path, after: int) -> Iterator[None]:
    """After so many commits and files that got their names, none is written in a directory any more."""
    seen = 0

    def full() -> bool:
        nonlocal seen
        seen += 1
        return seen > after

    def replace(path: Path, target: Path) -> Path:
        if folder in path.parents and full():
            raise OSError(errno.ENOSPC, "No space left on device")
        return rename(path, target)

    def committed(store: writer.Store) -> None:
        with store._writing():  # noqa: SLF001 - where errors are told
            if full():
                raise sqlite3.OperationalError("database or disk is full")
            commit(store)

    rename, commit = Path.replace, writer.Store.commit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        patch.setattr(writer.Store, "commit", committed)
        yield


def interrupted(
    settings: Mapping[str, Any], folder: Path, *, most: int, seed: str = "", engine: Any = "loop"
) -> tuple[Path, Copies]:
    """An uninterrupted run, and copies of it at some of its writes."""
    whole = folder / "whole"
    with copied(whole, folder / "copies", most, seed) as copies:
        (run,) = edgefl.run(settings, engine=engine, out=whole).runs
    assert run.status == "done", run.reason
    # Without copies, what is claimed of each would hold of none.
    assert copies.kept
    return whole, copies
