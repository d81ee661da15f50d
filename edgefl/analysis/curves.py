"""Accuracy and loss against what was spent: one curve a model, with bands over seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from edgefl.analysis.groups import SeedGroup
from edgefl.analysis.history import History
from edgefl.analysis.summary import Summary
from edgefl.analysis.values import deviations
from edgefl.core.arrays import Floats, Ints


class Axis(NamedTuple):
    """What a curve is drawn against, in words, and its unit: "s", "B", "J" or empty."""

    label: str
    unit: str


AXES: Mapping[str, Axis] = {
    "time": Axis("virtual time", "s"),
    "round": Axis("round", ""),
    "epochs": Axis("epochs of all clients' data", ""),
    "bytes": Axis("bytes of all clients", "B"),
    "joules": Axis("energy of all clients", "J"),
    "client_seconds": Axis("client-seconds", "s"),
}
# The columns of a history, where they have other names.
_COLUMNS = {"time": "t_s", "client_seconds": "client_s"}
_DRAWN = ["round"] + [f"{what}{end}" for what in ("accuracy", "loss") for end in ("", "_low", "_high")]


@dataclass(frozen=True, eq=False)
class Curve:
    """One model's evaluations in a run, or their means over runs that differ in nothing but their seeds.

    Of several runs, evaluations after the same round are taken together, and so are the last ones of all:
    runs of unlike length, as with a target or a limit of time, also end in their mean. The last point is what
    ``compare`` shows. A run of one client beside those of several is centralised: two points, the line that
    it ended at.

    Attributes:
        group: the runs' place among those that are compared.
        round: the round that each point was evaluated after, from 0; a mean where the last ones differ.
        x: each point's place on the ``AXES``, (n,) ascending, means over the runs: ``round``, and what was
            spent until then. "joules" is left out unless all runs know an energy at each point.
        accuracy, loss: (n,), means over the runs.
        accuracy_low, accuracy_high, loss_low, loss_high: the ends of the 95% interval of each point's mean
            over seeds; None for one run.
        energy_known, energy_clients: at the last point of the first run, how many clients took part, and of
            how many the energy is known: the energy is of these alone.
        left_out: how many evaluations of the runs have no counterpart in all others.
    """

    group: int
    model: str
    seeds: Sequence[int]
    round: Floats
    x: Mapping[str, Floats]
    accuracy: Floats
    accuracy_low: Floats | None
    accuracy_high: Floats | None
    loss: Floats
    loss_low: Floats | None
    loss_high: Floats | None
    energy_known: int
    energy_clients: int
    left_out: int

    def __len__(self) -> int:
        return len(self.accuracy)


def curves(groups: Sequence[SeedGroup], histories: Callable[[Summary], Mapping[str, History]]) -> list[Curve]:
    """The curves of all models of all groups, given histories by model; a group without any has none."""
    found = []
    for group, one in enumerate(groups):
        each = [histories(run) for run in one.runs]
        seeds = [run.seed for run in one.runs]
        models = [model for model in each[0] if all(model in run for run in each)]
        found += [_curve(group, seeds, [run[model] for run in each]) for model in models]
    alone = {group for group, one in enumerate(groups) if all(run.clients == 1 for run in one.runs)}
    federated = [curve for curve in found if curve.group not in alone]
    if not federated:
        return found
    return [_reference(curve, federated) if curve.group in alone else curve for curve in found]


def _reference(curve: Curve, among: Sequence[Curve]) -> Curve:
    """A centralised run beside federated ones: what it ended with, as a line as long as their curves."""
    ends = {axis: [one.x[axis][-1] for one in among if axis in one.x] for axis in AXES}
    changes: dict[str, Any] = {
        name: None if (values := getattr(curve, name)) is None else values[[-1, -1]] for name in _DRAWN
    }
    x = {axis: np.array([0.0, max(found)]) for axis, found in ends.items() if found}
    return replace(curve, x=x, **changes)


def axes(found: Sequence[Curve]) -> dict[str, Axis]:
    """``AXES`` of some curves: that of energies says of how many clients these are."""
    counts = {(curve.energy_known, curve.energy_clients) for curve in found if "joules" in curve.x}
    known, clients = counts.pop() if len(counts) == 1 else (0, 0)
    if known == clients and all(some == every for some, every in counts):
        return dict(AXES)
    whose = f"{known} of {clients} clients" if known else "the clients where it is known"
    return {**AXES, "joules": Axis(f"energy of {whose}", "J")}


def _curve(group: int, seeds: Sequence[int], runs: Sequence[History]) -> Curve:
    places = _paired(runs)
    columns = {axis: _together(runs, places, _COLUMNS.get(axis, axis)) for axis in AXES}
    accuracy, loss = (_together(runs, places, name) for name in ("accuracy", "loss"))
    return Curve(
        group=group,
        model=runs[0].model,
        seeds=seeds,
        round=columns["round"].mean(axis=0),
        x={axis: rows.mean(axis=0) for axis, rows in columns.items() if not np.isnan(rows).any()},
        accuracy=accuracy.mean(axis=0),
        **_band("accuracy", accuracy),
        loss=loss.mean(axis=0),
        **_band("loss", loss),
        energy_known=int(runs[0].energy_known[-1]),
        energy_clients=int(runs[0].energy_clients[-1]),
        left_out=sum(len(run) - len(mine) for run, mine in zip(runs, places, strict=True)),
    )


def _paired(runs: Sequence[History]) -> list[Ints]:
    """The places of each run's evaluations that all have; as many of each run, its last one among them."""
    if len(runs) == 1:
        return [np.arange(len(runs[0]))]
    rounds = set.intersection(*(set(run.round[:-1].tolist()) for run in runs))
    return [np.append(np.flatnonzero(np.isin(run.round[:-1], list(rounds))), len(run) - 1) for run in runs]


def _together(runs: Sequence[History], places: Sequence[Ints], name: str) -> Floats:
    """A column of the evaluations that are taken together, (runs, n)."""
    return np.stack([getattr(run, name)[mine] for run, mine in zip(runs, places, strict=True)]).astype(float)


def _band(name: str, rows: Floats) -> dict[str, Floats | None]:
    """The edges of the band around the mean of (runs, n)."""
    if len(rows) == 1:
        return {f"{name}_low": None, f"{name}_high": None}
    mean, half = rows.mean(axis=0), deviations(len(rows)) * rows.std(axis=0, ddof=1)
    return {f"{name}_low": mean - half, f"{name}_high": mean + half}
