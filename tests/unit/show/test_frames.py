"""One table of several runs as data frames and files: types, what is missing, types of settings, messages."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from importlib import import_module

import pandas as pd
import pyarrow as pa
import pytest
from commands import run_command
from compared import rich
from damage import rewritten
from pyarrow import parquet

import edgefl
from edgefl.show.frames import sources, to_arrow, to_csv, to_pandas
from edgefl.store import COLUMNS, TABLES, read

ARROW = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs with late jobs, measures and evaluations; a text in their settings differs."""
    folder = tmp_path_factory.mktemp("frames")
    return rich(folder / "rich", name="=1+1", sweep={"method": ["fedavg", {"name": "fedprox", "mu": 0.1}]})


@pytest.fixture(scope="module")
def found(runs):
    """They as sources."""
    return sources([(run.name, run.folder, run.settings) for run in runs.runs])


@pytest.mark.parametrize("table", TABLES)
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


def test_settings_of_several_types_are_text_in_arrow(found):
    """A column of Arrow has one type; one that holds a number in each run has numbers."""
    mixed = [source._replace(own={"run": "a", "seed": 1, "x": value, "y": number})
             for source, value, number in zip(found, ["all", 3], [1, 0.5], strict=True)]  # fmt: skip
    table = to_arrow(mixed, "merges")
    assert set(table.column("x").to_pylist()) == {"all", "3"}
    assert set(table.column("y").to_pylist()) == {1.0, 0.5}
    assert set(to_pandas(mixed, "merges")["x"]) == {"all", 3}


def test_files_hold_the_table(runs, tmp_path, capsys):
    """CSV as on standard output, Parquet as the frame; before one run's stand its name and its seed."""
    _, out, _ = run_command(capsys, "table", runs.folder, "evaluations")
    status, said, _ = run_command(capsys, "table", runs.folder, "evaluations", "--out", tmp_path / "e.CSV")
    assert (status, said.split(" (")[0]) == (0, f"saved {tmp_path / 'e.CSV'}")
    assert (tmp_path / "e.CSV").read_bytes().decode() == out
    run_command(capsys, "table", *(run.folder for run in runs.runs), "jobs", "--out", tmp_path / "j.parquet")
    assert parquet.read_table(tmp_path / "j.parquet").equals(runs.frame("jobs", kind="arrow"))
    run_command(capsys, "table", runs.runs[0].folder, "jobs", "--out", tmp_path / "one.parquet")
    assert parquet.read_schema(tmp_path / "one.parquet").names[:3] == ["run", "seed", "job"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.CSV", "j.parquet", "one.parquet"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jbos"], "did you mean 'jobs'?"),
        (["nothing-like-it"], "known: cells, checkpoints, class_counts, client_evaluations"),
        (["jobs", "--out", "jobs.json"], "jobs.json must end in .csv or .parquet"),
        (["jobs", "--out", "there.csv"], "there.csv exists"),
        (["jobs", "--out", "none/jobs.csv"], "the folder none does not exist"),
        (["jobs", "--out", "there.csv/jobs.csv"], "there.csv is not a folder"),
        (["jobs", "--out", "."], "try --out jobs.csv"),
        (["jobs", "--out", "folder.csv"], "folder.csv is a folder"),
    ],
)
def test_what_cannot_be_written_is_one_message(runs, tmp_path, monkeypatch, capsys, arguments, message):
    """Before anything is; what was there stays."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    status, out, err = run_command(capsys, "table", runs.folder, *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_a_file_is_overwritten_on_demand_alone(runs, tmp_path, monkeypatch, capsys):
    """And stays as it was where the new one cannot be written."""
    file = tmp_path / "there.csv"
    file.write_text("mine")
    status, _, _ = run_command(capsys, "table", runs.folder, "merges", "--out", file, "--force")
    assert status == 0
    assert file.read_text().startswith("run,seed,")
    before = file.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(import_module("edgefl.show.frames"), "to_csv", full)
    status, _, err = run_command(capsys, "table", runs.folder, "jobs", "--out", file, "--force")
    assert (status, file.read_bytes()) == (1, before)
    assert "cannot write there.csv: No space left on device" in err


def test_parquet_without_pyarrow_is_one_message(runs, tmp_path, monkeypatch, capsys):
    """With what to install; CSV does without, and without pandas."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    status, _, err = run_command(capsys, "table", runs.folder, "jobs", "--out", tmp_path / "jobs.parquet")
    assert status == 2
    assert "pip install 'edgefl-emulator[parquet]'" in err
    assert list(tmp_path.iterdir()) == []
    status, out, _ = run_command(capsys, "table", runs.folder, "jobs")
    assert status == 0
    assert out


def test_a_run_that_cannot_be_read_is_left_out_with_a_note(runs, tmp_path, capsys):
    """As by ``compare``; one that is named is refused."""
    (tmp_path / "01-done").symlink_to(runs.runs[0].folder)
    (tmp_path / "02-broken").mkdir()
    (tmp_path / "02-broken" / "run.sqlite").write_bytes(b"nothing" * 200)
    status, out, err = run_command(capsys, "table", tmp_path, "jobs")
    assert (status, "02-broken" in err, "02-broken is left out: run.sqlite cannot be read" in err) == (
        0,
        True,
        True,
    )
    assert len(out.splitlines()) == 1 + len(runs.runs[0].table("jobs"))
    status, out, _ = run_command(capsys, "table", tmp_path / "02-broken", "jobs")
    assert (status, out) == (2, "")


def test_lists_are_json_texts(tmp_path):
    """In frames as in ``RunResult.settings``."""
    (one, other) = sources(
        [("a", tmp_path, {"seed": 1, "x": [1, 2]}), ("b", tmp_path, {"seed": 1, "x": [3]})]
    )
    assert (one.own["x"], other.own["x"]) == (json.dumps([1, 2]), "[3]")
    with pytest.raises(edgefl.UserError, match="unknown table 'jbos'"):
        to_arrow([], "jbos")


def test_runs_of_one_name_are_told_apart_by_their_folders(runs, tmp_path, capsys):
    """Of two groups, or of two copies: what is joined by ``run`` must not mix them."""
    first, copied = runs.runs[0], tmp_path / "copied"
    shutil.copytree(first.folder, copied)
    _, out, _ = run_command(capsys, "table", first.folder, copied, "clients")
    named = {row["run"] for row in csv.DictReader(out.splitlines())}
    assert named == {f"{first.name}, {first.folder}", f"{first.name}, {copied}"}
