"""What Plotly is given, after each switch, are the numbers of ``edgefl compare --json``."""

from __future__ import annotations

import json
import re
from functools import partial

import numpy as np
import pytest
from paged import compared, means

from edgefl.core.documents import document

SIZES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "u": 1e-6, "min": 60, "h": 3600, "d": 86400}
AXES = {"time": ["virtual_s"], "bytes": ["down_bytes", "up_bytes"], "joules": ["joules"],
        "client_seconds": ["client_s"]}  # fmt: skip
CHOSEN = "([id, name]) => edgefl.state.figures.find(({plot}) => plot.id === id).choice[name]"
equal = partial(pytest.approx, rel=1e-12)


@pytest.fixture(scope="module")
def found(folders, record):
    """The figures of each of the page's groups by dotted key, as compare has them."""
    told = compared(*folders, target=0.5)
    return [means(told, group) for group in json.loads(json.dumps(document(record.groups)))]


def drawn(page, plot):
    """A plot's traces, and the unit of its x axis in base units."""
    shown = page.drawn(plot)
    unit = re.search(r"\((\w+)\)$", shown["title"])
    name = unit[1] if unit else ""
    size = SIZES.get(name, 1 if len(name) < 2 or name == "FLOP" else SIZES.get(name[0]))
    return shown["data"], size


def choices(page, plot, name):
    """Chooses each of a switch's options in turn, and gives its value; the only one without a switch."""
    switch = page.page.locator(f"#plot-{plot} [name={plot}-{name}]")
    options = switch.locator("option").count()
    for place in range(options or switch.count() or 1):
        if options:
            switch.select_option(index=place)
        elif switch.count():
            switch.nth(place).check()
        yield page.page.evaluate(CHOSEN, [plot, name])


def cost_keys(plot, what, part):
    """The keys whose sum a bar of costs is."""
    if plot == "waste":
        keys = ["down_bytes", "up_bytes"] if what == "bytes" else [what]
        return [f"spent.{part.split(' (')[0]}.{key}" for key in keys]
    return [f"bytes_by_part.{part.replace(', ', '.')}" if what == "bytes" else f"joules_by_phase.{part}"]


def costs(page, found, _):
    """Each bar of each choice; as shares, they are of the sum of the bars."""
    seen = set()
    for plot in ("costs", "waste"):
        for what in choices(page, plot, "what"):
            data, size = drawn(page, plot)
            for trace in data:
                keys = cost_keys(plot, what, trace["name"].strip("\u2068\u2069"))
                told = [sum(one[key] for key in keys) for one in found]
                assert [size * x for x in trace["x"]] == equal(told)
                seen |= set(keys)
            page.page.check(f"#plot-{plot} [name={plot}-share]")
            totals = np.sum([trace["x"] for trace in data], axis=0)
            shares = [np.array(trace["x"]) / 100 for trace in drawn(page, plot)[0]]
            assert np.allclose(shares * totals, [trace["x"] for trace in data], rtol=1e-12)
            page.page.uncheck(f"#plot-{plot} [name={plot}-share]")
    every = {
        key
        for one in found
        for key in one
        if re.match(r"bytes_by_part|joules_by_phase|spent\.\w+\.(?!bytes$)", key)
    }
    assert {key for one in found for key in every - seen if one[key]} == set()
    assert "spent.late.joules" in seen


def devices(page, found, _):
    """Each device's energy and share of its battery."""
    names = sorted({key.split(".")[1] for one in found for key in one if key.startswith("devices.")})
    for what in choices(page, "devices", "what"):
        data, size = drawn(page, "devices")
        for trace in data:
            one = found[trace["meta"]["group"]]
            own = [names[round(y)] for y in trace["y"]]
            start = "batteries" if what.startswith("per_") else "devices"
            told = [one[f"{start}.{name}.{what}"] for name in own]
            assert [size * x for x in trace["x"]] == equal(told)


def curves(page, found, _):
    """Lines of accuracies end in the last accuracy, and at what the runs took in all."""
    for axis in choices(page, "accuracy", "x"):
        data, size = drawn(page, "accuracy")
        for trace in (one for one in data if one["name"]):
            one = found[trace["meta"]["group"]]
            assert trace["y"][-1] / 100 == equal(one["accuracy.global.value"])
            if axis == "epochs":  # ``compare`` has none; see tests/laws/test_history_laws.py
                continue
            took = AXES.get(axis, ["accuracy.global.round"])
            assert size * trace["x"][-1] == equal(sum(one[key] for key in took))


def participation(page, found, _):
    """Lines of several seeds end in numbers whose mean is that of the group."""
    assert "all" in choices(page, "participation", "run")
    for what in choices(page, "participation", "what"):
        ends = {}
        for trace in page.drawn("participation")["data"]:
            ends.setdefault(trace["meta"]["group"], []).append(trace["y"][-1])
        for group, values in ends.items():
            told = found[group]["merged_clients" if what == "distinct" else what]
            assert sum(values) / len(values) == equal(told)


def pareto(page, found, _):
    """Each point of each cost."""
    for cost in choices(page, "pareto", "cost"):
        data, size = drawn(page, "pareto")
        for trace in (one for one in data if one["meta"]):
            one = found[trace["meta"]["group"]]
            assert trace["y"][0] / 100 == equal(one["accuracy.global.value"])
            assert size * trace["x"][0] == equal(one[cost])


def test_plots_are_given_what_compare_says(visit, found, record):
    """Costs, devices, curves, participation and the Pareto plot, whatever is chosen."""
    page = visit()
    page.draw_all()
    for check in (costs, devices, curves, participation, pareto):
        check(page, found, record)
