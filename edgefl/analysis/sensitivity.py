"""What the figures of runs depend on, and whether their order holds over all that their numbers may be."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from edgefl.analysis.groups import Judged, SeedGroup, runs_of
from edgefl.analysis.metrics import MODELS
from edgefl.analysis.run import Run as Opened
from edgefl.analysis.summary import Summary
from edgefl.core.errors import UserError
from edgefl.planning.fleets import recorded_devices
from edgefl.planning.repricing import Repricer
from edgefl.planning.sensitivity import Records, Sensitivity, Side, Verdict, check_factor, study
from edgefl.store.plans import read_plan
from edgefl.store.reader import read


def of_groups(groups: Sequence[SeedGroup], factor: float, *, whole: bool = False) -> Sensitivity:
    """The sensitivity of groups' energies, and of their times where all runs are blind to time.

    Of runs that all reached their targets it is what they took to reach them.

    Args:
        groups: a side each; the runs are read from their directories.
        factor: by which assumed numbers are changed; 1 for intervals alone.
        whole: whether it is that of the whole runs too, and of what those took to reach their targets that
            did, where not all have.

    Raises:
        UserError: the factor is below 1, a run is damaged, two have devices or links of one name with other
            numbers, or there is no number to sweep.
    """
    check_factor(factor)
    runs = runs_of(groups)
    model = _reached(runs, any if whole else all)
    found = [[_Run(run, model) for run in one.runs] for one in groups]
    records: dict[str, Any] = {}
    for run in (run for each in found for run in each):
        for owner, record in run.records.items():
            if records.setdefault(owner, record) != record:
                raise UserError(
                    f"{run.name}: {owner} has other numbers than in the runs before",
                    where="--sensitivity",
                    hint="compare runs on the same devices and links, or run them again",
                )
    ends = [*([f" to the {model} target"] if model else []), *([""] if whole or not model else [])]
    blind = all(run.blind for each in found for run in each)
    names = [kind + end for end in ends for kind in ("energy", *(["time"] if blind else []))]
    sides = [Side(title(one), partial(_mean, each, names)) for one, each in zip(groups, found, strict=True)]
    return study(sides, names, records, factor)


def _mean(runs: "Sequence[_Run]", names: Sequence[str], records: Records) -> dict[str, float]:
    found = [run.figures(records) for run in runs]
    return {name: fmean(one.get(name, math.nan) for one in found) for name in names}


def quantity(key: str) -> str:
    """What a metric is called here; empty for one that is not studied."""
    model = next((model for model in MODELS if key.startswith(f"target.{model}.")), "")
    kind = _KINDS.get(key.removeprefix(f"target.{model}."), "")
    return f"{kind} to the {model} target" if kind and model else kind


_KINDS = {"joules": "energy", "virtual_s": "time", "t_s": "time"}


def title(one: SeedGroup) -> str:
    """What a group is called as a side."""
    return one.name.replace("\n", " ")


def _reached(runs: Sequence[Summary], which: Callable[[Iterable[bool]], bool]) -> str:
    """The model that reached its target in all runs, else in ``which`` of them; empty for none."""
    found = {model: [bool(run.target and run.target.of(model)) for run in runs] for model in MODELS}
    return next((model for test in (all, which) for model in MODELS if test(found[model])), "")


class _Run:
    """A run that can be priced again."""

    def __init__(self, run: Summary, model: str) -> None:
        """Reads it; ``model`` is the one whose target counts, empty for the whole run."""
        # Until when, and at which version of the server, by what the names of figures end with.
        self.name = run.name
        self._ends: dict[str, tuple[float, int | None]] = {"": (run.virtual_s, None)}
        with read(Path(run.run_dir)) as reader:
            plan, self._devices, opened = read_plan(reader), recorded_devices(reader), Opened(reader)
            self._repriced_at, self.blind = opened.repriced_at, opened.is_blind
            if model and run.target and (reached := run.target.of(model)):
                sql = "SELECT MIN(version) AS version FROM evaluations WHERE model = ? AND accuracy >= ?"
                version = reader.query(sql, model, run.target.accuracy)[0]["version"]
                self._ends[f" to the {model} target"] = reached.t_s, version
        self._repricer, self._links, clients = Repricer(plan), plan.fleet.links, plan.clients
        devices, links = (
            sorted({names[one] for one in column[clients.admitted].tolist()})
            for names, column in ((clients.devices, clients.device), (clients.links, clients.link))
        )
        self.records: Records = {
            **{name: self._devices[name] for name in devices},
            **{f"link {name}": self._links[name] for name in links},
        }

    def figures(self, records: Records) -> dict[str, float]:
        """The energies and the times on other numbers, by quantity; NaN for unknown ones."""
        devices = {name: records.get(name, one) for name, one in self._devices.items()}
        links = {name: records.get(f"link {name}", one) for name, one in self._links.items()}
        found = self._repriced_at([one.demand for one in self._repricer.prices(devices, links)])
        figures = {}
        for end, (t_s, version) in self._ends.items():
            seconds = found.seconds(version)
            figures[f"energy{end}"] = found.joules(t_s, version)
            figures[f"time{end}"] = t_s if seconds is None else seconds
        return figures


@dataclass(frozen=True)
class Dependence:
    """What times and energies of groups whose runs are all done depend on; None and ``why``, if unknown."""

    found: Sensitivity | None
    why: str = ""

    def verdicts(self, key: str, ahead: SeedGroup) -> dict[str, Verdict]:
        """Those of a metric, by its key, in which a group has less, by the ``title`` of who has more."""
        studied, own = quantity(key), title(ahead)
        every = self.found.verdicts if self.found and studied else ()
        return {one.more: one for one in every if one.quantity == studied and one.less == own}


def dependence(groups: Sequence[SeedGroup], factor: float) -> Dependence:
    """What times and energies depend on; the arguments are those of ``of_groups``."""
    done = [one for one in groups if one.is_done]
    if len(done) < 2:  # noqa: PLR2004 - an order is one of two
        return Dependence(None, "fewer than two runs are done")
    try:
        return Dependence(of_groups(done, factor, whole=True))
    except UserError as error:
        return Dependence(None, error.what)


def ordered(one: Judged, groups: Sequence[SeedGroup], found: Dependence | None) -> Judged:
    """A judged figure, and whether its winner is ahead on other numbers of the devices too.

    Intervals that have nothing in common prove it. Those that overlap prove nothing: groups on the same
    devices share the errors of their numbers.

    ``found`` is None where nobody asked what times and energies depend on.
    """
    # Times, energies and what these cost are made of the devices' numbers.
    on_numbers = one.metric.unit in {"s", "J"} or one.metric.key.startswith("costs.")
    on_intervals = on_numbers and any(run.joules_between is not None for run in runs_of(groups))
    if one.winner is None or one.close_seeds is not None or not on_intervals:
        return one
    tested = found.verdicts(one.metric.key, groups[one.winner]) if found else {}
    others = [
        place for place, value in enumerate(one.values) if place != one.winner and groups[place].is_done
    ]
    others = [place for place in others if one.values[place] is not None]
    against = [tested.get(title(groups[place])) for place in others]
    turned = [each for each in against if each and not each.robust]
    if turned:
        numbers = dict.fromkeys(turn.number for each in turned for turn in each.turns)
        return replace(one, order="depends", depends_on=list(numbers))
    proven = (_is_below(one, place) for place in others)
    known = all(each or is_below for each, is_below in zip(against, proven, strict=True))
    return replace(one, order="holds" if known else "open")


def _is_below(one: Judged, place: int) -> bool:
    """Whether the winner's interval lies below another's."""
    own, other = (one.values[at] for at in (one.winner or 0, place))
    if own is None or other is None or own.between is None or own.between.high is None:
        return False
    if not other.reached:
        return True
    return other.between is not None and own.between.high < other.between.low
