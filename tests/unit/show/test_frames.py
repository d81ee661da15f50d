"""One table of several runs as data frames and files: types, what is missing, types of settings, messages."""

import csv
import io
import shutil
import sys

import pandas as pd
import pyarrow as pa
import pytest
from commands import run_command
from compared import rich
from damage import rewritten
from pyarrow import parquet

from edgefl.show.frames import sources, to_arrow, to_csv, to_pandas
from edgefl.store.reader import read
from edgefl.store.schema import COLUMNS

ARROW = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    return rich(folder / "rich", name="=1+1", sweep={"method": ["fedavg", {"name": "fedprox", "mu": 0.1}]})


@pytest.fixture(scope="module")
def found(runs):
    return sources([(run.name, run.folder, run.settings) for run in runs.runs])


@pytest.mark.parametrize("table", COLUMNS)
def test_every_table_is_what_its_rows_are(runs, found, table):
    """In pandas and in Arrow: each value, with NULL as missing, and each column of its declared type."""
    rows = [row for run in runs.runs for row in run.table(table)]
    arrow, frame = to_arrow(found, table), to_pandas(found, table)
    assert [{name: row[name] for name in COLUMNS[table]} for row in arrow.to_pylist()] == rows
    assert {name: arrow.schema.field(name).type for name in COLUMNS[table]} == {
        name: ARROW[kind] for name, kind in COLUMNS[table].items()
    }
    assert len(frame) == len(rows)
    for name, kind in COLUMNS[table].items():
        values = [row[name] for row in rows]
        missing = None in values
        if kind == "TEXT":
            assert frame[name].dtype == object or str(frame[name].dtype) == "str"
        else:
            whole = "Int64" if missing else "int64"
            assert str(frame[name].dtype) == (whole if kind == "INTEGER" else "float64")
        assert [None if pd.isna(value) else value for value in frame[name]] == values


LARGE, ODD = 2**53 + 1, "=ä\"'\U0001f600,\r\n\t"


def test_awkward_values_are_the_stores(runs, tmp_path, capsys):
    """Integers beyond 2^53, alone and beside NULLs, a text like a formula, a boolean; in each form."""
    folder = tmp_path / "run"
    shutil.copytree(runs.runs[0].folder, folder)
    rewritten(
        folder,
        f"UPDATE jobs SET flops = {LARGE}, into_version = NULL WHERE job = 1",  # noqa: S608 - our own numbers
        f"UPDATE jobs SET into_version = {LARGE} WHERE job = 2",  # noqa: S608 - our own numbers
        "UPDATE measures SET label = '{}' WHERE rowid = 1".format(ODD.replace("'", "''")),  # noqa: S608 - our own text
    )
    one = sources([("-x", folder, {"seed": LARGE})])
    own = [one[0]._replace(own={**one[0].own, "x": value}) for value in (True, None)]
    for table in ("jobs", "measures"):
        with read(folder) as reader:
            rows = list(reader.rows(table))
        run_command(capsys, "table", folder, table, "--out", tmp_path / f"{table}.parquet")
        for found in (to_arrow(one, table), parquet.read_table(tmp_path / f"{table}.parquet")):
            assert found.select(list(COLUMNS[table])).to_pylist() == rows
        frame = to_pandas(one, table)
        for name in COLUMNS[table]:
            assert [None if pd.isna(value) else value for value in frame[name]] == [row[name] for row in rows]
        stream = io.StringIO(newline="")
        to_csv(own, table, stream)
        written = list(csv.DictReader(io.StringIO(stream.getvalue(), newline="")))
        for row, found in zip([*rows, *rows], written, strict=True):
            assert {name: found[name] for name in row} == {
                name: "" if value is None else f"'{value}" if value == ODD else str(value)
                for name, value in row.items()
            }
        assert {(row["run"], row["seed"]) for row in written} == {("'-x", str(LARGE))}
        assert [row["x"] for row in written[:: len(rows)]] == ["true", ""]


def test_files_hold_the_table(runs, tmp_path, capsys, monkeypatch):
    """CSV as on standard output, Parquet as the frame; before one run's stand its name and its seed."""
    _, out, _ = run_command(capsys, "table", runs.folder, "evaluations")
    status, said, _ = run_command(capsys, "table", runs.folder, "evaluations", "--out", tmp_path / "e.CSV")
    assert (status, said.split(" (")[0]) == (0, f"saved {tmp_path / 'e.CSV'}")
    assert (tmp_path / "e.CSV").read_bytes().decode() == out
    run_command(capsys, "table", *(run.folder for run in runs.runs), "jobs", "--out", tmp_path / "j.parquet")
    assert parquet.read_table(tmp_path / "j.parquet").equals(runs.frame("jobs", kind="arrow"))
    run_command(capsys, "table", runs.runs[0].folder, "jobs", "--out", tmp_path / "one.parquet")
    assert parquet.read_schema(tmp_path / "one.parquet").names[:3] == ["run", "seed", "job"]
    status, _, err = run_command(capsys, "table", runs.folder, "jobs", "--out", "jobs.json")
    assert (status, "jobs.json must end in .csv or .parquet" in err) == (2, True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    status, _, err = run_command(capsys, "table", runs.folder, "jobs", "--out", tmp_path / "n.parquet")
    assert (status, "pip install 'edgefl-emulator[parquet]'" in err) == (2, True)
    assert run_command(capsys, "table", runs.folder, "jobs")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.CSV", "j.parquet", "one.parquet"]


def test_runs_of_one_name_are_told_apart_by_their_folders(runs, tmp_path, capsys):
    """Of two groups, or of two copies: what is joined by ``run`` must not mix them."""
    first, copied = runs.runs[0], tmp_path / "copied"
    shutil.copytree(first.folder, copied)
    _, out, _ = run_command(capsys, "table", first.folder, copied, "clients")
    named = {row["run"] for row in csv.DictReader(out.splitlines())}
    assert named == {f"{first.name}, {first.folder}", f"{first.name}, {copied}"}
