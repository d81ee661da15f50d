"""Links that follow traces: files, pieces, means, who begins where, and what is written of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.core.corners import corners
from edgefl.core.csv_rows import file_rows
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.link import Link
from edgefl.core.link_traces import PACKET_BITS, LinkTrace, of_csv, of_mahimahi, series
from edgefl.core.validation import validate
from edgefl.core.yamls import Document


def from_csv(path, *, held):
    """The series of a CSV file."""
    return file_rows(str(path), of_csv, held)


def from_mahimahi(path, bin_ms):
    """The series of a file in Mahimahi's format."""
    return file_rows(str(path), of_mahimahi, bin_ms)


GAPS_S = st.lists(st.floats(0.002, 1e4), max_size=8)
PACKETS_MS = st.lists(st.integers(0, 900), max_size=40).map(sorted)


@given(GAPS_S, st.floats(0, 1e6), st.data())
def test_a_csv_file_is_its_columns(tmp_path_factory, gaps, start, data):
    """Whatever its first row's seconds: only differences count, to the microsecond."""
    t_s = np.cumsum([0.0, *gaps, 1.0])
    rates = st.lists(st.floats(1, 1e9), min_size=len(t_s), max_size=len(t_s))
    columns = {name: np.array(data.draw(rates)) for name in ("down", "up")}
    columns["latency"] = columns["up"] / 1e9
    rows = zip((start + t_s).tolist(), *(one.tolist() for one in columns.values()), strict=True)
    path = tmp_path_factory.mktemp("csv") / "trace.csv"
    path.write_text("Seconds, down,up,latency\n" + "".join(",".join(map(repr, one)) + "\n" for one in rows))
    found = from_csv(path, held=False)
    assert list(found) == ["down", "up", "latency"]
    for name, values in columns.items():
        assert series(found[name]).at(t_s + 2e-6).tolist() == values.tolist()
        assert series(found[name]).t[-1] == pytest.approx(t_s[-1], abs=2e-6)


@given(PACKETS_MS, st.integers(1, 999), st.integers(1, 300))
def test_every_packet_of_mahimahi_is_conserved(tmp_path_factory, packets, last, bin_ms):
    """The rates carry 1500 bytes a line, over all and until the end of each interval."""
    packets = [*packets, max([last, *packets])]
    path = tmp_path_factory.mktemp("mahimahi") / "trace"
    path.write_text("\n".join(map(str, packets)) + "\n")
    found = series(from_mahimahi(path, bin_ms))
    assert found.t[-1] == packets[-1] / 1000
    for end_ms in (*range(bin_ms, packets[-1], bin_ms), packets[-1]):
        so_far = np.clip(end_ms / 1000 - found.t, 0, np.append(np.diff(found.t), 0))
        carried = (found.value * so_far).sum() / PACKET_BITS
        assert carried == pytest.approx(sum(one <= end_ms for one in packets), abs=1e-6)


def test_mahimahi_by_hand(tmp_path):
    """A packet at the end of an interval is in it, one at 0 in the first; years of silence take one row."""
    (tmp_path / "trace").write_text("0\n100\n101\n\n350\n")
    assert from_mahimahi(tmp_path / "trace", 100) == "0,240000 0.1,120000 0.2,0 0.3,240000 0.35,240000"
    (tmp_path / "trace").write_text("1\n1000000000000\n")
    assert len(series(from_mahimahi(tmp_path / "trace", 1)).t) == 4


WRONG = {
    "columns": (b"time,down,up\n0,1,1\n", 1, "the first line must be seconds,down,up"),
    "one row": (b"seconds,down,up\n0,1,1\n", 2, "needs a second row"),
    "words": (b"seconds,down,up\n0,1,1\n1,fast,1\n", 3, "down 'fast': Input should be a valid number"),
    "back in time": (b"seconds,down,up\n0,1,1\n2,1,1\n1,1,1\n", 4, "seconds must ascend"),
    "nothing moves": (b"seconds,down,up\n0,1,0\n1,1,0\n2,1,5\n", 4, "all up rates are 0"),
    "not UTF-8": (b"seconds,down,up\n0,1,\xff\n", None, "it is not UTF-8 text"),
    "a fraction": (b"1\n5.5\n", 2, "'5.5': Input should be a valid integer"),
    "huge": (b"1\n" + b"9" * 5000, 2, "exceeded maximum size"),
}


@pytest.mark.parametrize(("content", "line", "what"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_has_one_message(content, line, what, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        from_csv(path, held=False) if b"down" in content else from_mahimahi(path, 100)
    assert what in caught.value.what
    assert len(caught.value.what) < 150
    assert caught.value.where == (str(path) if line is None else f"{path}:{line}")


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
    document = Document.parse(f"{plain}trace: {{{trace}}}\n" if trace else plain, "link.yaml")
    return validate(Link, document.data, document)


@pytest.fixture(autouse=True)
def files(own):
    own("bus.csv", CSV)
    own("steady", "1\n")
    own("halved", "".join(f"{ms}\n" for ms in range(1, 101)) + "102\n200\n")


def test_a_trace_gives_the_rates_and_the_handshakes():
    extra = ("loss: {value: 0.01, ", "handshakes: {value: 2, ")
    bus = link(
        "csv: bus.csv", NO_LATENCY + "".join(f"{each}status: measured, source: s}}\n" for each in extra)
    )
    reached = [1.22 * 8 * 1460 / (latency * 0.1) for latency in (0.1, 0.2)]
    for way, rates in {"down": (4e6, 0), "up": (2e6, 1e6)}.items():
        found = bus.rates(0, way)
        assert (found.bps.t.tolist(), found.delay_s.value.tolist(), found.bps.period) == (
            [0, 2],
            [0.2, 0.4],
            5,
        )
        assert found.bps.value.tolist() == pytest.approx(np.minimum(rates, reached))
    held = link("csv: bus.csv, end: hold", NO_LATENCY)
    assert (bus.trace.range("down"), held.trace.range("down")) == ((0, 4e6), (0, 9e9))
    found, delay_s = held.rates(0, "down")
    assert (found.t.tolist(), found.value.tolist(), found.period) == ([0, 2, 5], [4e6, 0, 9e9], math.inf)
    assert delay_s.value.tolist() == [0.1, 0.2, 9]


def test_what_never_changes_has_no_end():
    one = link("mahimahi: {down: steady, up: halved}")
    down, up = one.rates(0, "down").bps, one.rates(0, "up").bps
    assert (down.value.tolist(), down.period, up.t.tolist(), up.period) == ([12e6], math.inf, [0, 0.1], 0.2)
    assert one.trace.dealt(0, np.arange(99))[1].max() < 0.2
    finer = link("mahimahi: {down: steady, up: halved, bin: 25 ms}").rates(0, "up").bps
    assert finer.t.tolist() == [0, 0.1, 0.125, 0.175]
    assert finer.value.tolist() == [12e6, 0.48e6, 0, 0.48e6]


def test_the_links_numbers_are_the_means_over_time():
    """Of all traces; they are derived, say so, and are priced; they have no corners of their own."""
    bus = link("csv: bus.csv", NO_LATENCY)
    assert (bus.down.value, bus.up.value) == (4e6 * 2 / 5, (2e6 * 2 + 1e6 * 3) / 5)
    assert bus.latency.value == pytest.approx((0.1 * 2 + 0.2 * 3) / 5)
    assert {one.status for one in (bus.down, bus.up, bus.latency)} == {"derived"}
    assert bus.up.source == "mean over time of the link's trace"
    assert bus.up_bps == bus.up.value
    assert corners(bus) is None
    two = [{"down": "0,6 10,0 20,0", "up": "0,1 1,2 2,3"}, {"down": "0,1 10,9", "up": "0,4 2,2 6,0"}]
    trace = LinkTrace.model_validate({"rows": two})
    assert (trace.mean("down"), trace.mean("up")) == pytest.approx((70 / 30, 19 / 8))
    spread = PLAIN.replace(
        "value: 50 ms, status: measured", "low: 10 ms, value: 50 ms, high: 90 ms, status: assumed"
    )
    cheap, costly = corners(link(ROWS, spread))
    assert [one.rates(0, "up").delay_s.value[0] for one in (cheap, costly)] == [0.01, 0.09]


def test_traces_are_dealt_out_evenly():
    """Each is as likely as the others, and so is each time in the longer of its directions.

    A client's does not depend on who else there is; one that is held begins at 0.
    """
    lengths_s = np.array([10, 20, 1, 5])
    rows = [{"down": f"0,5 {length},7", "up": f"0,1 {length / 2},7"} for length in lengths_s]
    trace = LinkTrace.model_validate({"rows": rows})
    which, offset_s = trace.dealt(1, np.arange(40_000))
    assert np.bincount(which) / 10_000 == pytest.approx(1, abs=0.04)
    for place, length_s in enumerate(lengths_s):
        found = np.histogram(offset_s[which == place], 10, (0, length_s))[0]
        assert found / 1000 == pytest.approx(1, abs=0.12)
        assert found.sum() == (which == place).sum()
    alone = trace.dealt(1, np.array([33, 7]))
    assert [one.tolist() for one in alone] == [one[[33, 7]].tolist() for one in (which, offset_s)]
    assert trace.dealt(2, np.arange(99))[1].tolist() != offset_s[:99].tolist()
    held = LinkTrace.model_validate({"rows": rows, "end": "hold"}).dealt(1, np.arange(99))
    assert [set(one) for one in held] == [{0, 1, 2, 3}, {0.0}]


def test_a_link_is_known_by_what_its_traces_have(own):
    """A run's identity follows the files' content and what happens at the end, not their names."""
    own("other.csv", CSV.replace("5,4e6", "5.0,4000000"))
    own("third.csv", CSV.replace("1e6", "2e6"))
    texts = ("csv: bus.csv", "csv: [other.csv]", "csv: third.csv", "csv: bus.csv, end: hold")
    one, same, third, held = (link(text, NO_LATENCY).model_dump() for text in texts)
    assert one == same
    assert one != third != held != one
    assert not {"down", "up", "latency"} & one.keys()


@pytest.mark.parametrize(
    ("trace", "plain", "what"),
    [
        (f"csv: bus.csv, {ROWS}", PLAIN, "give one of 'csv', 'mahimahi' and 'rows'"),
        ("csv: nowhere.csv", PLAIN, "no file 'nowhere.csv'"),
        ("mahimahi: {down: [steady], up: [steady, halved]}", PLAIN, "as many files for"),
        ("mahimahi: {down: steady, up: steady, bin: 1.5 ms}", PLAIN, "whole number of mill"),
        ("rows: [{down: 'x', up: '0,1'}]", PLAIN, "'x' must be seconds,value"),
        (
            "rows: [{down: '0,1 1,0', up: '0,1'}], end: hold",
            PLAIN,
            "the last down rate must be at least 1 bit/s",
        ),
        ("csv: bus.csv", PLAIN, "the trace gives 'latency': leave that out"),
        (ROWS, PLAIN + RATES, "the trace gives 'down' and 'up': leave that out"),
        (ROWS, NO_LATENCY, "'latency' is missing"),
    ],
)
def test_mistakes_have_one_message(trace, plain, what):
    with pytest.raises(ScenarioError, match=what) as caught:
        link(trace, plain)
    assert not caught.value.others
    assert "link.yaml" in caught.value.where
