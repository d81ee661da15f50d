"""Accuracy and loss against what was spent, and what they cost in all."""

from collections.abc import Iterator, Mapping, Sequence

from edgefl.analysis.curves import AXES, Curve, axes, curves
from edgefl.analysis.groups import fronts
from edgefl.analysis.history import History, histories
from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot, Switch
from edgefl.show.page.records import Read, Section, Told, partly


def read(one: Read) -> Mapping[str, History]:
    """A run's histories."""
    return histories(one.run)


def section(told: Told, read: Sequence[Mapping[str, History]]) -> Section:
    """Curves, and the Pareto fronts of all groups."""
    of_run = {id(head.summary): mine for head, mine in zip(told.runs, read, strict=True)}
    found = curves(told.groups, lambda run: of_run[id(run)])
    return Section("curves", "Learning", [accuracy_plot(found, partly(told)), _pareto(told)])


def accuracy_plot(found: Sequence[Curve], some: str = "") -> Plot:
    """Curves over what was spent; ``some`` says of whom energies are, where not of all clients."""
    columns = {
        "model": FrameColumn("model", told=False),
        "seeds": FrameColumn("seeds"),
        **{key: FrameColumn(*axis) for key, axis in axes(found).items()},
    }
    for name, unit in {"accuracy": "share", "loss": "loss"}.items():
        columns |= {name: FrameColumn(name, unit)}
        columns |= {
            f"{name}_{end}": FrameColumn(f"{name}, {end} end", unit, told=False) for end in ("low", "high")
        }
    blocks = []
    for curve in found:
        values = {name: getattr(curve, name) for name in columns if name.startswith(("accuracy", "loss"))}
        blocks.append(
            {
                "group": curve.group,
                "model": curve.model,
                "seeds": len(curve.seeds),
                **curve.x,
                **{name: value for name, value in values.items() if value is not None},
                "left": curve.left_out,
                "notes": {"joules": some},
            }
        )
    return Plot(
        "accuracy",
        "Accuracy and loss",
        "Each evaluation of a model. A band is the 95% interval of the mean over seeds (Student's t,"
        " n\u00a0-\u00a01), at each evaluation by itself.",
        "no run has evaluated a model yet.",
        "lines",
        Frame(columns, blocks),
        x=list(AXES),
        y=["accuracy", "loss"],
        by=[Switch("model", "Model")],
        log="xy",
        missing="no such model was evaluated",
        left="evaluations are not drawn, since not all seeds of their run have them",
    )


def _pareto(told: Told) -> Plot:
    found = list(fronts(told.groups))
    gains = list(dict.fromkeys(one.accuracy for one in found))
    costs = list(dict.fromkeys(one.cost for one in found))
    figures = {one.metric.key: one for one in told.figures if one.metric.key in {*gains, *costs}}
    blocks: Iterator[Block] = (
        {
            "group": place,
            **{key: value.mean for key, one in figures.items() if (value := one.values[place]) is not None},
        }
        for place in range(len(told.groups))
    )
    columns = {
        key: FrameColumn(figures[key].metric.label, figures[key].metric.unit) for key in (*gains, *costs)
    }
    return Plot(
        "pareto",
        "Accuracy against cost (Pareto front)",
        "Each run's last accuracy and its total cost. The line joins the Pareto front: the runs that no other"
        " run beats in both.",
        "it takes two runs that have both an accuracy and a known cost.",
        "points",
        Frame(columns, list(blocks) if found else []),
        x=costs,
        y=gains,
        log="x",
        joined={f"{one.accuracy} {one.cost}": one.groups for one in found},
    )
