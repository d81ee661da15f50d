"""Links that follow traces: their pieces, their means, who begins where, and what is written of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.core.corners import corners
from edgefl.core.drafts import load
from edgefl.core.errors import ScenarioError
from edgefl.core.link import Link
from edgefl.core.link_traces import LinkTrace
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document, dump
from edgefl.planning.assumed import assumptions, recorded_assumptions

PLAIN = """\
title: a trace
latency: {value: 50 ms, status: measured, source: s}
radio: {value: {base: 1 W}, status: measured, source: s}
"""
RATES = """\
down: {value: 8 Mbit/s, status: measured, source: s}
up: {value: 1 Mbit/s, status: measured, source: s}
"""
ROWS = "rows: [{down: '0,10e6 10,0 40,0', up: '0,2e6 40,0'}]"
NO_LATENCY = "".join(line for line in PLAIN.splitlines(keepends=True) if "latency" not in line)
CSV = "seconds,down,up,latency\n5,4e6,2e6,0.1\n7,0,1e6,0.2\n10,9e9,9e9,9\n"


def link(trace, plain=PLAIN):
    """A link with a trace, of its YAML text."""
    document = Document.parse(f"{plain}trace: {{{trace}}}\n", "link.yaml")
    return validate(Link, document.data, document)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a CSV file, and Mahimahi's with 12 and 24 Mbit/s at most."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bus.csv").write_text(CSV)
    (tmp_path / "steady").write_text("1\n")
    (tmp_path / "halved").write_text("".join(f"{ms}\n" for ms in range(1, 101)) + "102\n200\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_trace_gives_the_rates_and_the_handshakes():
    """Of each piece: its rate or what TCP reaches at its latency and the link's loss, and its round trips."""
    extra = "".join(
        f"{name}: {{value: {value}, status: measured, source: s}}\n"
        for name, value in {"loss": 0.01, "handshakes": 2}.items()
    )
    bus = link("csv: bus.csv", NO_LATENCY + extra)
    reached = [1.22 * 8 * 1460 / (latency * 0.1) for latency in (0.1, 0.2)]
    for way, rates in {"down": (4e6, 0), "up": (2e6, 1e6)}.items():
        found = bus.rates(0, way)
        assert found.t_s.tolist() == [0, 2]
        assert found.bps.tolist() == pytest.approx(np.minimum(rates, reached))
        assert found.delay_s.tolist() == [0.2, 0.4]
        assert found.length_s == 5
    assert bus.trace.range("down") == (0, 4e6)
    of_held = link("csv: bus.csv, end: hold", NO_LATENCY)
    assert of_held.trace.range("down") == (0, 9e9)
    held = of_held.rates(0, "down")
    assert (held.t_s.tolist(), held.bps.tolist(), held.length_s) == ([0, 2, 5], [4e6, 0, 9e9], math.inf)
    assert held.delay_s.tolist() == [0.1, 0.2, 9]


def test_a_link_without_a_trace_is_one_piece():
    """With the rate that the closed form takes, for everybody, for ever."""
    document = Document.parse(PLAIN + RATES, "link.yaml")
    still = validate(Link, document.data, document)
    found = still.rates(0, "up")
    assert (found.t_s.tolist(), found.bps.tolist(), found.length_s) == ([0], [still.up_bps], math.inf)
    assert found.delay_s.tolist() == [still.delay_s]
    assert [one.tolist() for one in still.dealt(3, np.arange(2))] == [[0, 0], [0, 0]]
    assert "trace" not in still.model_dump()


@pytest.mark.usefixtures("folder")
def test_what_never_changes_has_no_end():
    """Mahimahi's usual file of a constant rate is one piece, and not one each millisecond."""
    one = link("mahimahi: {down: steady, up: halved}")
    assert one.rates(0, "down").length_s == math.inf
    assert one.rates(0, "down").bps.tolist() == [12e6]
    assert (one.rates(0, "up").t_s.tolist(), one.rates(0, "up").length_s) == ([0, 0.1], 0.2)
    assert one.dealt(0, np.arange(99)).offset_s.max() < 0.2
    finer = link("mahimahi: {down: steady, up: halved, bin: 25 ms}").rates(0, "up")
    assert (finer.t_s.tolist(), finer.bps.tolist()) == ([0, 0.1, 0.125, 0.175], [12e6, 0.48e6, 0, 0.48e6])


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 9999), st.floats(1, 1e9)), min_size=1, max_size=6),
        min_size=1,
        max_size=3,
    )
)
def test_means_are_over_the_time_of_all_traces(traces):
    """What is carried in all of them, over how long all of them are."""
    texts = []
    for pieces in traces:
        starts = np.cumsum([0, *(gap for gap, _ in pieces)]).tolist()
        rates = [rate for _, rate in pieces]
        texts.append(" ".join(f"{t},{rate!r}" for t, rate in zip(starts, [*rates, 7.0], strict=True)))
    rows = [{"down": text, "up": texts[0]} for text in texts]
    trace = LinkTrace.model_validate({"rows": rows})
    bits = sum(gap * rate for pieces in traces for gap, rate in pieces)
    assert trace.mean("down") == pytest.approx(bits / sum(gap for pieces in traces for gap, _ in pieces))
    once = sum(gap * rate for gap, rate in traces[0]) / sum(gap for gap, _ in traces[0])
    assert trace.mean("up") == pytest.approx(once)


@pytest.mark.usefixtures("folder")
def test_the_links_numbers_are_the_means():
    """They are derived, say so, and are priced; they have no corners of their own."""
    bus = link("csv: bus.csv", NO_LATENCY)
    assert (bus.down.value, bus.up.value) == (4e6 * 2 / 5, (2e6 * 2 + 1e6 * 3) / 5)
    assert bus.latency.value == pytest.approx((0.1 * 2 + 0.2 * 3) / 5)
    assert {one.status for one in (bus.down, bus.up, bus.latency)} == {"derived"}
    assert bus.up.source == "mean over time of the link's trace"
    assert bus.up_bps == bus.up.value
    assert corners(bus) is None
    spread = PLAIN.replace(
        "value: 50 ms, status: measured", "low: 10 ms, value: 50 ms, high: 90 ms, status: assumed"
    )
    cheap, costly = corners(link(ROWS, spread))
    assert [one.rates(0, "up").delay_s[0] for one in (cheap, costly)] == [0.01, 0.09]


@pytest.mark.parametrize("end", ["repeat", "hold"])
@given(st.integers(0, 2**32), st.lists(st.integers(0, 10**6), min_size=1, max_size=20, unique=True))
def test_a_clients_trace_is_its_own(end, root, clients):
    """It does not depend on who else there is, and lies within the trace; one that is held begins at 0."""
    rows = [{"down": f"0,5 {length},5 {length + 1},6", "up": "0,1 1,2 2,3"} for length in (1, 10, 100)]
    trace = LinkTrace.model_validate({"rows": rows, "end": end})
    which, offset_s = trace.dealt(root, np.array(clients))
    for place, client in enumerate(clients):
        alone = trace.dealt(root, np.array([client]))
        assert (alone.which[0], alone.offset_s[0]) == (which[place], offset_s[place])
    ends_s = np.array([2, 11, 101])[which]
    assert ((offset_s >= 0) & (offset_s < ends_s)).all()
    assert end == "repeat" or not offset_s.any()


def test_traces_are_dealt_out_evenly():
    """Each is as likely as the others, and so is each time in the longer of its directions."""
    lengths_s = np.array([10, 20, 1, 5])
    rows = [{"down": f"0,5 {length},0", "up": f"0,1 {length / 2},0"} for length in lengths_s]
    which, offset_s = LinkTrace.model_validate({"rows": rows}).dealt(1, np.arange(40_000))
    assert np.bincount(which) / 10_000 == pytest.approx(1, abs=0.04)
    for place, length_s in enumerate(lengths_s):
        found = np.histogram(offset_s[which == place], 10, (0, length_s))[0]
        assert found / 1000 == pytest.approx(1, abs=0.12)
        assert found.sum() == (which == place).sum()


def test_what_was_written_out_is_read_back_without_the_file(folder):
    """Through YAML with plain amounts; the means follow from the rows again."""
    for bus in (
        link("csv: [bus.csv, bus.csv], end: hold", NO_LATENCY),
        link("mahimahi: {down: [steady, halved], up: [halved, steady]}"),
        link(ROWS),
    ):
        data = bus.model_dump(mode="json")
        assert not {"down", "up"} & data.keys()
        assert set(data["trace"]) == {"rows", "end"}
        for path in folder.iterdir():
            path.write_text("")
        document = Document.parse(dump(data), "plan.yaml")
        again = validate(Link, document.data, Document("plan.yaml", document.data, context=RESOLVED))
        assert again == bus
        folder.joinpath("bus.csv").write_text(CSV)


SCENARIO = """\
task: {{dataset: digits, clients: 4}}
model: {{name: mlp, hidden: [4]}}
method: fedavg
fleet: {{like: home-lab, members: [{{device: raspberry-pi-4b, link: mine}}], links: {{mine: {0}}}}}
"""


def resolved(text):
    """What a scenario is whose clients are on a link of this YAML text."""
    (draft,) = load(Document.parse(SCENARIO.format(text), "s.yaml"))
    return draft.scenario.resolved()


def test_a_run_is_known_by_what_its_traces_have(folder):
    """Its identity follows the files' content and what happens at the end, not their names."""
    inline = "{" + ", ".join(NO_LATENCY.splitlines()) + ", trace: {%s}}"
    (folder / "other.csv").write_text(CSV.replace("5,4e6", "5.0,4000000"))
    (folder / "third.csv").write_text(CSV.replace("1e6", "2e6"))
    texts = ("csv: bus.csv", "csv: [other.csv]", "csv: third.csv", "csv: bus.csv, end: hold")
    one, same, *others = [resolved(inline % text) for text in texts]
    assert one == same
    assert one not in others
    assert others[0] != others[1]


@pytest.mark.usefixtures("folder")
def test_a_plan_says_what_its_links_follow():
    """How many traces, how long, from where and until when; and that prices are those of the means."""
    lines = list(assumptions({}, {"mine": link(ROWS)}))
    line = "link mine: follows a trace of 40 s, which repeats, from a random time on; "
    line += "profile prices its means over time"
    assert line in lines
    assert line in recorded_assumptions(lines, (), ["mine"])
    both = link("mahimahi: {down: [steady, halved], up: [steady, steady]}, end: hold")
    assert both.trace.in_words() == (
        "one of 2 traces of 1 ms to 200 ms, which hold their last rates, from their beginning on"
    )


def test_editors_know_what_a_trace_stands_for():
    """A link needs its rates and its latency, or a trace."""
    schema = Link.model_json_schema()
    assert schema["required"] == ["title", "radio"]
    assert schema["anyOf"] == [{"required": ["down", "up", "latency"]}, {"required": ["trace"]}]


MISTAKES = {
    "nothing": ("end: hold", "give one of 'csv', 'mahimahi' and 'rows'", "trace"),
    "both": (f"csv: bus.csv, {ROWS}", "give one of 'csv', 'mahimahi' and 'rows'", "trace"),
    "no file": ("csv: nowhere.csv", "no file 'nowhere.csv'", "trace"),
    "a folder": ("csv: .", "no file '.'", "trace"),
    "no name": ("csv: ''", "no file ''", "trace"),
    "no files": ("csv: []", "trace.csv should", "trace.csv"),
    "an end": ("csv: bus.csv, end: holds", "should be 'repeat' or 'hold'; got 'holds'", "trace.end"),
    "a key": ("csv: bus.csv, ends: hold", "unknown key 'ends'", "trace.ends"),
    "one way": ("mahimahi: {down: steady}", "'up' is missing", "trace.mahimahi.up"),
    "uneven": (
        "mahimahi: {down: [steady, steady], up: steady}",
        "as many files for 'down'",
        "trace.mahimahi",
    ),
    "a bin": ("mahimahi: {down: steady, up: steady, bin: 1.5 ms}", "whole number of mill", "trace.mahimahi"),
    "rows": ("rows: [{down: 'x', up: '0,1'}]", "'x' must be seconds,value", "trace.rows.0.down"),
    "late rows": (
        "rows: [{down: '1,1 2,2', up: '0,1'}]",
        "the first row must be at 0 s",
        "trace.rows.0.down",
    ),
    "endless rows": ("rows: [{down: '0,1', up: '0,1 1,1'}]", "trace 0: a trace that repeats needs", "trace"),
    "outage": ("rows: [{down: '0,1 1,1', up: '0,0 1,1'}]", "trace 0: all up rates are 0", "trace"),
    "little": (
        "rows: [{down: '0,0.1 1,1', up: '0,1 1,1'}]",
        "'down' must be at least 1 bit/s in the mean",
        "",
    ),
    "unequal ends": (
        "rows: [{down: '0,1 1,1', up: '0,1 1,1', latency: '0,1 2,1'}]",
        "with a latency, all three must end at the same time",
        "trace",
    ),
    "no rows": ("rows: []", "trace.rows should", "trace.rows"),
}


@pytest.mark.parametrize(("trace", "what", "where"), MISTAKES.values(), ids=MISTAKES)
@pytest.mark.usefixtures("folder")
def test_mistakes_have_one_message(trace, what, where):
    """What is wrong, and at which key."""
    with pytest.raises(ScenarioError) as caught:
        link(trace)
    assert what in caught.value.what
    assert not caught.value.others
    assert caught.value.where == ("link.yaml" + (f":4, key '{where}'" if where else ""))


@pytest.mark.usefixtures("folder")
def test_a_number_comes_from_the_link_or_from_its_trace():
    """Not from both, and where the trace has none, the link must."""
    with pytest.raises(ScenarioError, match="'latency' comes from the trace: leave it out"):
        link("csv: bus.csv")
    with pytest.raises(ScenarioError, match="'down' and 'up' come from the trace: leave them out"):
        link(ROWS, PLAIN + RATES)
    with pytest.raises(ScenarioError, match="'latency' is missing"):
        link(ROWS, NO_LATENCY)
