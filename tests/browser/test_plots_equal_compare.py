"""What Plotly is given, after each switch, are the numbers of ``edgefl compare --json``."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from paged import compared, means

from edgefl.core.documents import document

SIZES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "u": 1e-6, "min": 60, "h": 3600, "d": 86400}
ENDINGS = {"bytes": ("down_bytes", "up_bytes"), "energy": ("joules",), "client-seconds": ("client_s",),
           "operations": ("flops",), "jobs": ("jobs",)}  # fmt: skip
COSTS = {"virtual time": ["virtual_s"], "bytes": ["down_bytes", "up_bytes"], "energy": ["joules"],
         "client-seconds": ["client_s"]}  # fmt: skip
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


def choices(page, plot, name, only=""):
    """Chooses each of a switch's options in turn, and gives its label; ``only`` without a switch."""
    switch = page.page.locator(f"#plot-{plot} [name={plot}-{name}]")
    if not switch.count():
        yield only
    elif switch.first.evaluate("one => one.tagName") == "SELECT":
        for label in switch.locator("option").all_inner_texts():
            switch.select_option(label)
            yield label
    else:
        for place in range(switch.count()):
            switch.nth(place).check()
            yield switch.nth(place).evaluate("one => one.labels[0].textContent")


def cost_keys(what, part):
    """The keys whose sum a bar of costs is."""
    if what == "bytes by part":
        return [f"bytes_by_part.{part.replace(', ', '.')}"]
    if what == "energy by phase":
        return [f"joules_by_phase.{part}"]
    return [f"spent.{part.split(' (')[0]}.{key}" for key in ENDINGS[what.removesuffix(" by ending")]]


def costs(page, found):
    """Each bar of each choice; as shares, they are of the sum of the bars."""
    seen = set()
    for what in choices(page, "costs", "what"):
        data, size = drawn(page, "costs")
        for trace in data:
            keys = cost_keys(what, trace["name"].strip("\u2068\u2069"))
            assert [size * x for x in trace["x"]] == equal([sum(one[key] for key in keys) for one in found])
            seen |= set(keys)
        totals = [sum(trace["x"][group] for trace in data) for group in range(len(found))]
        page.page.check("#plot-costs [name=costs-share]")
        for trace, share in zip(data, drawn(page, "costs")[0], strict=True):
            assert [x / 100 * total for x, total in zip(share["x"], totals, strict=True)] == equal(trace["x"])
        page.page.uncheck("#plot-costs [name=costs-share]")
    costs = {key for one in found for key in one if re.match(r"bytes_by_part|joules_by_phase|spent", key)}
    assert all(one[key] == 0 for one in found for key in costs - seen)


def devices(page, found):
    """Each device's energy and share of its battery."""
    devices = sorted({key.split(".")[1] for one in found for key in one if key.startswith("devices.")})
    keys = {"energy of a client a round": "joules_per_round", "energy of all its clients": "joules"}
    seen = []
    for what in choices(page, "devices", "what"):
        data, size = drawn(page, "devices")
        for trace in data:
            one = found[trace["meta"]["group"]]
            told = [one[f"devices.{devices[round(y)]}.{keys[what]}"] for y in trace["y"]]
            assert [size * x for x in trace["x"]] == equal(told)
        seen.append(what)
    assert seen == list(keys)


def curves(page, found):
    """Lines of accuracies end in the last accuracy, and at what the runs took in all."""
    seen = []
    for model in choices(page, "accuracy", "model", "global"):
        for axis in choices(page, "accuracy", "x"):
            data, size = drawn(page, "accuracy")
            for trace in (one for one in data if one["name"]):
                one = found[trace["meta"]["group"]]
                assert trace["y"][-1] / 100 == equal(one[f"accuracy.{model}.value"])
                took = COSTS.get(axis.split(",")[0].split(" of ")[0], [f"accuracy.{model}.round"])
                assert size * trace["x"][-1] == equal(sum(one[key] for key in took))
                seen.append((model, axis))
    assert {axis for _, axis in seen} > {"round", *COSTS} - {"bytes", "energy"}
    assert len(set(seen)) == 5


def participation(page, found):
    """Lines of several seeds end in numbers whose mean is that of the group."""
    for what, key in zip(choices(page, "participation", "what"), ["fairness", "merged_clients"], strict=True):
        ends = {}
        for trace in drawn(page, "participation")[0]:
            ends.setdefault(trace["meta"]["group"], []).append(trace["y"][-1])
        for group, values in ends.items():
            assert sum(values) / len(values) == equal(found[group][key]), what


def pareto(page, found):
    """Each point of each accuracy and each cost."""
    seen = 0
    for accuracy in choices(page, "pareto", "accuracy", "accuracy, global"):
        for cost in choices(page, "pareto", "cost"):
            data, size = drawn(page, "pareto")
            for trace in (one for one in data if one["meta"]):
                one = found[trace["meta"]["group"]]
                assert trace["y"][0] / 100 == equal(one[f"accuracy.{accuracy.split(', ')[1]}.value"])
                took = COSTS[re.split(r",| of ", cost)[0]]
                assert size * trace["x"][0] == equal(sum(one[key] for key in took))
                seen += 1
    assert seen == 3 * len(found)


def test_plots_are_given_what_compare_says(visit, found):
    """Costs, devices, curves, participation and the Pareto plot, whatever is chosen."""
    page = visit()
    page.draw_all()
    for check in (costs, devices, curves, participation, pareto):
        check(page, found)
