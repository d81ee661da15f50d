"""Tables of users as profiles."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imported import fleet, rows, table

from edgefl.core.errors import UserError
from edgefl.importing import import_traces
from edgefl.importing.table import read


def test_a_spreadsheet_of_links(tmp_path, monkeypatch):
    """Rates and latencies make a link for each kind of user."""
    users = "ann,10,.5,40,red", "ben,20,1,0,blue", "cem,10,.5,40,red"
    path = table(tmp_path, "user,Down_mbps,up_mbps,Latency_ms,colour", *users)
    done = import_traces("csv", path, tmp_path / "office")
    read_back = fleet(done, monkeypatch)
    links = [read_back.links[row["link"]] for row in rows(done)]
    numbers = [(one.down.value, one.up.value, one.latency.value) for one in links]
    assert numbers == [(10e6, 5e5, 0.04), (20e6, 1e6, 0.0), (10e6, 5e5, 0.04)]
    assert len(read_back.links) == 2
    assert {one.down.status for one in links} == {"derived"}
    assert {one.radio.status for one in links} == {"assumed"}
    assert done.dropped == ("column 'user'", "column 'colour'")


def test_latencies_alone_make_links(tmp_path, monkeypatch):
    """Rates are then the ones that are assumed."""
    done = import_traces("csv", table(tmp_path, "latency_ms", "20", "30", "40"), tmp_path / "office")
    assert [link.latency.value for link in fleet(done, monkeypatch).links.values()] == [0.02, 0.03, 0.04]


def test_intervals_are_those_of_their_numbers(tmp_path, monkeypatch):
    """A second file, in either place, has the intervals; users may share them, and have none."""
    users = table(tmp_path, "availability", "5", "2", "4", "5")
    intervals = table(tmp_path, "client,start_s,end_s", "2,0,10", "5,20,30.5", "5,40,50", name="times.csv")
    done = import_traces("csv", [intervals, users], tmp_path / "office", repeat="1 h")
    assert fleet(done, monkeypatch).availability.repeat == 3600
    found: dict[str, list[tuple[str, str]]] = {}
    for row in rows(done, "availability.csv"):
        found.setdefault(row["client"], []).append((row["start_s"], row["end_s"]))
    five = [("20.0", "30.5"), ("40.0", "50.0")]
    assert [found.get(row["availability"], []) for row in rows(done)] == [five, [("0.0", "10.0")], [], five]
    with pytest.raises(UserError, match="at least 50 s"):
        import_traces("csv", [users, intervals], tmp_path / "other", repeat="49 s")


WRONG = [
    (["colour", "red"], "one or more of", ":1"),
    (["down;up", "1;2"], "between commas", ":1"),
    (["down_mbps"], "no rows", ":1"),
    (["down_mbps", "1", "x"], "down_mbps 'x'", ":3"),
    (["down_mbps", "0"], "greater than or equal to", ":2"),
    (["latency_ms", "nan"], "latency_ms 'nan'", ":2"),
    (["slowdown", "0"], "greater than 0", ":2"),
    (["slowdown,up_mbps", "1"], "'1' must be slowdown,up_mbps", ":2"),
    (["device", "nobodys-phone"], "unknown device 'nobodys-phone'", "column device"),
    (["link,down_mbps", "4g,1"], "remove one of the columns", ":1"),
    (["availability", "1"], "need each other", "users.csv"),
]


@pytest.mark.parametrize(("lines", "what", "where"), WRONG, ids=[str(lines)[:30] for lines, *_ in WRONG])
def test_mistakes_have_a_place(lines, what, where, tmp_path):
    with pytest.raises(UserError, match=what) as raised:
        import_traces("csv", table(tmp_path, *lines), tmp_path / "office")
    assert where in raised.value.where
    assert not (tmp_path / "office").exists()


def test_files_that_do_not_go_together_are_refused(tmp_path):
    users, numbers = table(tmp_path, "slowdown", "1"), table(tmp_path, "availability", "7", name="n.csv")
    times = table(tmp_path, "client,start_s,end_s", "2,0,10", name="times.csv")
    for files, what in (
        ([users, numbers], "first line must be client,start_s,end_s"),
        ([times], "one or more of"),
        ([users, times], "need each other"),
        ([numbers, times], "no client 7"),
    ):
        with pytest.raises(UserError, match=what):
            import_traces("csv", files, tmp_path / "office")


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_garbage_is_a_users_mistake(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "garbage.csv"
    for text in (content, b"slowdown,down_mbps\n" + content):
        path.write_bytes(text)
        with suppress(UserError):
            (trace,) = read([path], None)
            assert len(trace) > 0
