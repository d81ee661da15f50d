"""Every number that a page and ``edgefl compare --json`` both have is the same, for many kinds of runs."""

from __future__ import annotations

import base64
import gzip
import json
import re
from contextlib import suppress
from functools import partial
from html.parser import HTMLParser
from itertools import chain
from statistics import fmean

import pytest
import unfinished
from compared import at, rich
from paged import compared

import edgefl
from edgefl.analysis.settings import dotted
from edgefl.runs import Callbacks
from edgefl.show.page.build import page
from edgefl.show.page.html import html

# Of a run's numbers, those that a page does not have as numbers: bounds and deviations over clients, which
# are in its texts, as are the clients that figures cover, sums of what it has, details of evaluations and
# batteries, and what was planned of each device.
LEFT_OUT = re.compile(
    r"between\.(low|high)$|^energy_(known|clients)$|^turnout\.|^(jobs|client_s)$|^wasted\.|deviation_over_clients$|\.last_below\.|\.wasted\.client_s$"
    r"|^target\.(accuracy|\w+\.(round|accuracy|energy_\w+))$|^accuracy\.\w+\.(before|round|clients|untrained)$"
    r"|^path\.|^exchanges\.|^measures\.[\w-]+\.round$|^batteries\..*\.(clients|joules|capacity_j)$"
    r"|^carbon\.(.*\.(known|clients)|regions\..*|to_target\.\w+\.(?!total)\w+\.grams|emitted\.waiting\.grams)$"
)
approx = partial(pytest.approx, rel=1e-12)


class Tables(HTMLParser):
    """The tables of a page, by caption: rows of (text, raw value), the first cell of each its label.

    Attributes:
        tables: see above.
        data: the script element that holds the page's record, packed.
    """

    def __init__(self, text):
        super().__init__()
        self.tables, self.data, self._into = {}, "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Begins a caption, a row or a cell."""
        found = dict(attrs)
        if tag == "caption":
            self._caption, self._into = "", "caption"
        elif tag == "tbody":
            self._rows = self.tables[self._caption] = []
        elif tag == "tr" and self._caption in self.tables:
            self._rows.append([])
        elif tag in {"td", "th"} and self._caption in self.tables:
            self._rows[-1].append(["", found.get("data-value")])
            self._into = "cell"
        elif tag == "span" and found.get("class") == "mark":
            self._into = None
        elif tag == "script" and found.get("id") == "data":
            self._into = "data"

    def handle_endtag(self, tag):
        """Ends it."""
        if tag in {"caption", "td", "th", "script"}:
            self._into = None

    def handle_data(self, data):
        """Keeps a text."""
        if self._into == "caption":
            self._caption += data
        elif self._into == "cell":
            self._rows[-1][-1][0] += data
        elif self._into == "data":
            self.data += data

    _caption = ""


class _Stop(Callbacks):
    """Interrupts a run after its first evaluation."""

    def evaluated(self, _):
        raise KeyboardInterrupt


def _stopped(out):
    with suppress(KeyboardInterrupt):
        edgefl.run("quickstart", overrides=SMALL, callbacks=_Stop(), out=out)


SMALL = {"sweep": None, "task.clients": 4, "server.rounds": 3, "server.participants": 2}
STALE = {"participants": 3, "rounds": 4, "policy": {"name": "fedbuff", "buffer": 2}}
UNPOWERED, POWERED = (
    {"device": name, "link": "ethernet"} for name in (unfinished.UNPOWERED, "raspberry-pi-4b")
)
HIGH = {"target": 0.9999, "models": ["global", "personal"]}
SEEDS = "seeds, of which some reach the target"
KINDS = {
    SEEDS: lambda out: rich(out, sweep={"method": ["fedavg", "fedclassavg"], "seed": [1, 2, 3]}),
    "alone": rich,
    "asynchronous, target not reached": lambda out: rich(out, server=STALE, evaluate=HIGH),
    "some energies unknown": lambda out: edgefl.run(
        "quickstart", overrides={**SMALL, "fleet": {"members": [UNPOWERED, POWERED]}}, engine="null", out=out
    ),
    "no energy known": lambda out: edgefl.run(
        "quickstart",
        overrides={**SMALL, "fleet": {"members": [UNPOWERED]}, "sweep": {"seed": [1, 2]}},
        engine="null",
        out=out,
    ),
    "six runs that trained nothing": lambda out: edgefl.run(
        "quickstart",
        overrides={**SMALL, "sweep": {"server.rounds": [1, 2, 3, 4, 5, 6]}},
        engine="null",
        out=out,
    ),
    "interrupted": _stopped,
}


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """(a page's tables, its record, what compare says); the page is read from its HTML."""
    folder = tmp_path_factory.mktemp("equal")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGEFL_PATH", str(unfinished.write(folder / "devices")))
        KINDS[request.param](folder / "runs")
    told, target = compared(folder / "runs"), None
    if request.param == SEEDS:
        target = sorted(run["accuracy"]["personal"]["value"] for run in told["runs"])[3]
        told = compared(folder / "runs", target=target)
        assert {run["target"]["personal"] is None for run in told["runs"]} == {True, False}
    found = Tables(html(page([folder / "runs"], target)))
    record = json.loads(gzip.decompress(base64.b64decode(found.data)))["page"]
    return found.tables, record, told


def terms(key):
    """The keys of which one is the sum or the difference."""
    return re.split(r" [+-] ", key)


def expected(told, runs, key):
    """What compare says of some runs, which are a group's: the number there, or their mean."""
    each = [at(one, key) if set(terms(key)) <= dotted(one).keys() else None for one in runs]
    known = [value for value in each if value is not None]
    averages = [one["figures"] for one in told["averages"] if one["runs"] == [run["run_dir"] for run in runs]]
    if averages and key in averages[0]:
        assert averages[0][key]["mean"] == fmean(known)
    return fmean(known) if known else None


def of_groups(record):
    """(group, key, number) of all that is by group."""
    for row in (*record["verdict"], *record["figures"]):
        yield from ((group, row["key"], mean) for group, mean in enumerate(row["means"]) if row["key"])
    for row in record["sweep"]["figures"]:
        yield from ((group, row["key"], value) for group, value in enumerate(row["values"]))
    for one in record["costs"]:
        yield from ((one["group"], *found) for found in of_costs(one))
    for one in record["devices"]:
        yield from ((one["group"], *found) for found in of_device(one))


def of_costs(one):
    """(key, number) of a group's costs."""
    yield "waiting_joules", one["waiting_joules"]
    for part, moved in one["bytes_by_part"].items():
        yield from ((f"bytes_by_part.{part}.{way}", value) for way, value in moved.items())
    for phase, value in one["joules_by_phase"].items():
        yield f"joules_by_phase.{phase}", value
    for ending, spent in one["endings"].items():
        yield f"spent.{ending}.down_bytes + spent.{ending}.up_bytes", spent["bytes"]
        for key in ("jobs", "flops", "client_s", "joules"):
            yield f"spent.{ending}.{key}", spent[key]


def of_device(one):
    """(key, number) of a group's clients with one device."""
    for key in ("clients", "joules", "joules_per_round"):
        yield f"devices.{one['device']}.{key}", one[key]
    battery = f"batteries.{one['device']}.per_"
    for key in ("round", "day"):
        yield f"{battery}{key}", one[f"battery_share_per_{key}"]
    for key, value in (one["battery_share_between"] or {}).items():
        yield f"{battery}round_between.{key}", value


def of_runs(record):
    """(run, key, number) of all that is by run."""
    for place, one in enumerate(record["runs"]):
        yield from ((place, key, one[key]) for key in ("seed", "rounds", "clients", "refused"))
    for one in record["participation"]:
        yield one["run"], "merged_clients", one["distinct"][-1]
        yield one["run"], "fairness", one["fairness"][-1]
    for one in record["measures"]:
        if one["quantile"] is None and one["labels"][0] == "":
            figure = f"{one['model']} {one['figure']}".strip()
            yield one["run"], f"measures.{one['measure']}.figures.{figure}", one["values"][-1][0]
    for run in {one["run"] for one in record["memory"]}:
        needs = [one["admitted_bytes"] for one in record["memory"] if one["run"] == run]
        yield run, "peak_bytes", max((need for need in needs if need is not None), default=None)


def test_every_number_of_the_record_is_compares(both):
    """Of groups and of runs; and no number of a run is left out, other than bounds and details."""
    _, record, told = both
    runs = [[told["runs"][run] for run in group["runs"]] for group in record["groups"]]
    seen = set()
    for group, key, value in of_groups(record):
        partly = any(run["energy_known"] < run["energy_clients"] for run in runs[group])
        if value is not None or not (partly and "joules" in key):
            assert value == expected(told, runs[group], key), key
        seen |= {(run["run_dir"], term) for run in runs[group] for term in terms(key)}
    for run, key, value in of_runs(record):
        assert value == expected(told, [told["runs"][run]], key), key
        seen.add((told["runs"][run]["run_dir"], key))
    numbers = {
        (run["run_dir"], key)
        for run in told["runs"]
        for key, value in dotted({**run, "settings": {}}).items()
        if isinstance(value, (int, float)) and not LEFT_OUT.search(key)
    }
    assert {key for _, key in numbers - seen} == set()


def test_every_table_has_the_records_numbers(both):
    """Each cell has its text, and beside it the number in full; every run is listed."""
    tables, record, told = both
    count = len(record["groups"])

    def cells(rows):
        """Of each figure, each group's cells: a column each, or a row each where there are many groups."""
        return (
            [row[1 : 1 + count] for row in rows]
            if count <= 4
            else zip(*(row[1:] for row in rows), strict=True)
        )

    shown = [
        cells(rows)
        for caption, rows in tables.items()
        if caption.startswith("Verdict") and (count <= 4 or caption.endswith("all runs"))
    ]
    (every,) = [cells(rows) for caption, rows in tables.items() if caption.startswith("All figures")]
    judged = sorted(record["verdict"], key=lambda row: row["aside"])
    found = [*chain(*shown), *every]
    for row, own in zip([*judged, *record["figures"]], found, strict=True):
        assert [None if value is None else float(value) for _, value in own] == row["means"]
        for (text, _), whole in zip(own, row["texts"], strict=True):
            assert text.strip().startswith(whole.partition(" (")[0])
    for run, row in zip(told["runs"], tables["The runs"], strict=True):
        assert [row[place][0] for place in (0, 1, 3, 9)] == [
            run["name"], run["method"], str(run["seed"]), run["run_dir"],
        ]  # fmt: skip
        values = [None if row[place][1] is None else int(row[place][1]) for place in (4, 5, 6)]
        assert values == [run["clients"], run["refused"], run["rounds"]]


def test_differences_over_seeds_are_compares(both, request):
    """The same pairs of groups; its table has all texts, and there is none without repeated groups."""
    tables, record, told = both
    found = record["pairs"]
    assert found["heads"] == [f"{one['name']}\nagainst {one['against']}" for one in told["pairs"]]
    rows = tables.get("Differences over seeds, with 95% intervals", [])
    assert [row[0][0] for row in rows] == found["labels"]
    assert [["".join(cell.split()) for cell, _ in row[1:]] for row in rows] == [
        ["".join(text.split()) for text in texts] for texts in found["texts"]
    ]
    repeated = request.node.callspec.params["both"] == SEEDS
    assert bool(rows) == bool(told["pairs"]) == repeated


def test_curves_end_in_what_compare_says(both):
    """The last point of a curve is the accuracy that compare has, after its round."""
    _, record, told = both
    for one in record["curves"]:
        runs = [told["runs"][run] for run in record["groups"][one["group"]]["runs"]]
        for key, found in (("value", one["accuracy"]), ("round", one["x"]["round"])):
            assert found[-1] == approx(expected(told, runs, f"accuracy.{one['model']}.{key}"))


def test_jobs_add_up_to_compares(both):
    """Rounds list as many jobs as there were; whom a merge waited for adds up; so do client-seconds."""
    _, record, told = both
    for one in record["rounds"]:
        run = told["runs"][one["run"]]
        assert len(one["client"]) + sum(one["omitted"]) == run["jobs"]
        for ending, spent in run["spent"].items():
            assert one["ending"].count(ending) == spent["jobs"]
        device_of, waited = dict(zip(one["client"], one["device"], strict=True)), {}
        for client, waited_s in zip(one["waited_client"], one["waited_s"], strict=True):
            if waited_s:
                device = one["device_names"][device_of[client]]
                waited[device] = waited.get(device, 0.0) + waited_s
        assert waited == {device: approx(path["seconds"]) for device, path in run["path"].items()}
    for one in record["durations"]:
        if (one["device"], one["what"]) == ("", "job"):
            assert one["count"] <= told["runs"][one["run"]]["spent"]["merged"]["jobs"]
