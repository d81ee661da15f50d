"""Files of link traces: CSV and Mahimahi's format, what is kept of them, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.core.csv_rows import RowError, file_rows
from edgefl.core.errors import UserError
from edgefl.core.link_traces import PACKET_BITS, of_csv, of_mahimahi, series, written


def from_csv(path, *, held):
    """The series of a CSV file."""
    return file_rows(str(path), of_csv, held)


def from_mahimahi(path, bin_ms):
    """The series of a file in Mahimahi's format."""
    return file_rows(str(path), of_mahimahi, bin_ms)


RATE = st.floats(0, 1e9) | st.just(0.0)
GAPS_S = st.lists(st.floats(0.002, 1e4), max_size=8)
PACKETS_MS = st.lists(st.integers(0, 900), max_size=40).map(sorted)


def refusal(read, path, *args, **options):
    """The message of a file that is refused."""
    with pytest.raises(UserError) as caught:
        read(path, *args, **options)
    return caught.value


@given(GAPS_S, st.data())
def test_what_is_written_is_read_back(gaps, data):
    """A series holds the same value at every time once written and read, in as few rows as that takes."""
    t_s = np.cumsum([0.0, *gaps])
    value = np.array(data.draw(st.lists(RATE, min_size=len(t_s), max_size=len(t_s))))
    text = written(t_s, value)
    found = series(text)
    assert found.at(t_s).tolist() == value.tolist()
    assert (found.t_s[0], found.t_s[-1]) == (0.0, t_s[-1])
    assert all(one != other for one, other in pairwise(found.value[:-1].tolist()))
    assert written(*found) == text


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
        assert series(found[name]).t_s[-1] == pytest.approx(t_s[-1], abs=2e-6)


@given(PACKETS_MS, st.integers(1, 999), st.integers(1, 300))
def test_every_packet_of_mahimahi_is_conserved(tmp_path_factory, packets, last, bin_ms):
    """The rates carry 1500 bytes a line, over all and until the end of each interval."""
    packets = [*packets, max([last, *packets])]
    path = tmp_path_factory.mktemp("mahimahi") / "trace"
    path.write_text("\n".join(map(str, packets)) + "\n")
    found = series(from_mahimahi(path, bin_ms))
    assert found.t_s[-1] == packets[-1] / 1000
    for end_ms in (*range(bin_ms, packets[-1], bin_ms), packets[-1]):
        so_far = np.clip(end_ms / 1000 - found.t_s, 0, np.append(np.diff(found.t_s), 0))
        carried = (found.value * so_far).sum() / PACKET_BITS
        assert carried == pytest.approx(sum(one <= end_ms for one in packets), abs=1e-6)


def test_mahimahi_by_hand(tmp_path):
    """A packet at the end of an interval is in it, one at 0 in the first; the last interval may be short."""
    (tmp_path / "trace").write_text("0\n100\n101\n\n350\n")
    assert from_mahimahi(tmp_path / "trace", 100) == "0,240000 0.1,120000 0.2,0 0.3,240000 0.35,240000"


HEADER = "seconds,down,up\n"
WRONG_CSV = {
    "empty": (b"", 1, "the first line must be seconds,down,up"),
    "other columns": (b"time,down,up\n0,1,1\n", 1, "the first line must be seconds,down,up"),
    "header only": (b"seconds,down,up\n", 1, "there are no rows"),
    "one row": (b"seconds,down,up\n0,1,1\n", 2, "needs a second row"),
    "too few": (b"seconds,down,up\n0,1,1\n\n1,1\n", 4, "'1,1' must be seconds,down,up"),
    "too many": (b"seconds,down,up\n0,1,1,1\n", 2, "must be seconds,down,up"),
    "words": (b"seconds,down,up\n0,1,1\n1,fast,1\n", 3, "down 'fast': Input should be a valid number"),
    "NaN": (b"seconds,down,up\n0,1,1\n1,nan,1\n", 3, "down 'nan': Input should be a finite number"),
    "infinite": (b"seconds,down,up\n0,1,1\n1,1,inf\n", 3, "up 'inf': Input should be a finite"),
    "negative": (b"seconds,down,up\n0,1,1\n1,-1,1\n", 3, "down '-1': Input should be greater"),
    "negative time": (b"seconds,down,up\n-1,1,1\n1,1,1\n", 2, "seconds '-1': Input should be greater"),
    "endless": (b"seconds,down,up\n0,1,1\n1e300,1,1\n", 3, "at most 1,000,000,000 seconds"),
    "a huge rate": (b"seconds,down,up\n0,1,1\n1,1e300,1\n", 3, "down '1e300': Input should be less"),
    "a huge integer": (b"seconds,down,up\n0,1," + b"9" * 5000 + b"\n1,1,1\n", 2, "Input should be a finite"),
    "a long delay": (
        b"seconds,down,up,latency\n0,1,1,50\n1,1,1,5000\n",
        3,
        "latency '5000': Input should be less than or equal to 3600",
    ),
    "back in time": (b"seconds,down,up\n0,1,1\n2,1,1\n1,1,1\n", 4, "seconds must ascend"),
    "twice": (b"seconds,down,up\r\n0,1,1\r\n0,1,1\r\n", 3, "by at least 1 ms"),
    "nothing moves": (b"seconds,down,up\n0,1,0\n1,1,0\n2,1,5\n", 4, "all up rates are 0"),
    "binary": (bytes(range(128)) * 9, 1, "the first line must be"),
    "a zero byte": (b"seconds,down,up\n0,1,1\n1,\x00,1\n", 3, "should be a valid number"),
    "an open quote": (b'seconds,down,up\n0,1,"' + b"1" * 200_000, 2, "not valid CSV: field larger"),
    "not UTF-8": (b"seconds,down,up\n0,1,\xff\n", None, "not UTF-8 text"),
}


@pytest.mark.parametrize(("content", "line", "what"), WRONG_CSV.values(), ids=WRONG_CSV)
def test_a_wrong_csv_file_has_one_message(content, line, what, tmp_path):
    """What is wrong, and in which line of which file; it is short whatever the file has."""
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    error = refusal(from_csv, path, held=False)
    assert what in error.what
    assert len(error.what) < 150
    assert error.where == (str(path) if line is None else f"{path}:{line}")


WRONG_MAHIMAHI = {
    "empty": (b"\n\n", 1, "the last line must be 1 millisecond or more"),
    "at once": (b"0\n0\n", 2, "the last line must be 1 millisecond or more"),
    "falling": (b"1\n\n5\n4\n", 4, "milliseconds must not fall"),
    "negative": (b"1\n-5\n", 2, "milliseconds '-5': Input should be greater than or equal to 0"),
    "a fraction": (b"1\n5.5\n", 2, "milliseconds '5.5': Input should be a valid integer"),
    "two numbers": (b"1\n2 3\n", 2, "milliseconds '2 3': Input should be a valid integer"),
    "huge": (b"1\n" + b"9" * 5000, 2, "exceeded maximum size"),
    "too long": (b"1\n1000000000001", 2, "Input should be less than or equal to 1000000000000"),
    "binary": (bytes(range(128)), 1, "Input should be a valid integer"),
    "not UTF-8": (b"1\n\xff\n", None, "not UTF-8 text"),
}


@pytest.mark.parametrize(("content", "line", "what"), WRONG_MAHIMAHI.values(), ids=WRONG_MAHIMAHI)
def test_a_wrong_mahimahi_file_has_one_message(content, line, what, tmp_path):
    """What is wrong, and in which line of which file."""
    path = tmp_path / "trace"
    path.write_bytes(content)
    error = refusal(from_mahimahi, path, 100)
    assert what in error.what
    assert len(error.what) < 150
    assert error.where == (str(path) if line is None else f"{path}:{line}")


def test_a_trace_of_years_takes_no_memory_for_its_silence(tmp_path):
    """Intervals without packets are one row, however many they are."""
    (tmp_path / "trace").write_text("1\n1000000000000\n")
    assert len(series(from_mahimahi(tmp_path / "trace", 1)).t_s) == 4


def test_a_rate_that_holds_must_move_something(tmp_path):
    """The last row of a trace that is held may be its only one, but no outage."""
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "0,5,5\n")
    assert from_csv(path, held=True) == {"down": "0,5", "up": "0,5"}
    path.write_text(HEADER + "0,5,5\n9,5,0\n")
    error = refusal(from_csv, path, held=True)
    assert error.what == "the last up rate must be at least 1 bit/s with 'end: hold': it never ends"
    assert error.where == f"{path}:3"


def error_of(read):
    """What a read raises on purpose; None if it succeeds."""
    try:
        read()
    except (UserError, RowError) as error:
        return error
    return None


@given(st.binary(max_size=60))
def test_any_bytes_are_a_trace_or_a_message(tmp_path_factory, content):
    """Nothing but a message, with its place, comes of a file that is none."""
    path = tmp_path_factory.mktemp("any") / "trace"
    path.write_bytes(content)
    errors = [error_of(lambda: from_mahimahi(path, 100))]
    path.write_bytes(HEADER.encode() + content)
    errors.append(error_of(lambda: from_csv(path, held=False)))
    assert all(error.where.startswith(str(path)) for error in errors if error)


@given(st.text(max_size=30) | st.from_regex(r"([0-9]{1,3}(,[0-9.]{1,3}){0,2} ?){0,4}", fullmatch=True))
def test_any_text_is_a_series_or_a_message(text):
    """Rows that are given in place of a file are checked as a file's are."""
    if error := error_of(lambda: series(text)):
        assert 0 <= error.line <= len(text)
    else:
        assert series(text).t_s[0] == 0
        assert (np.diff(series(text).t_s) > 0).all()
