"""What stands around figures of runs side by side; see golden/results for whole comparisons."""

from dataclasses import replace

from commands import shown
from compared import cells, every, lines_of, run_of, seeds, tables_of, to_target, took

from edgefl.show.compare import comparison


def test_more_than_three_runs_have_a_row_each():
    """In 100 characters at most nine columns; the best of each is marked, and ~ where seeds leave it open."""
    runs = [
        run_of(0.9 + place / 100, name=f"run {place}, of a name", virtual_s=1.0 + place, bytes=1000 * place)
        for place in range(5)
    ]
    runs = [to_target(run, took(run.virtual_s / 2), 0.8) for run in runs]
    for width, columns in ((100, (7, 9)), (60, (3, 5))):
        lines = shown(comparison(runs), width).splitlines()
        rows = [line.split("│") for line in lines if "│" in line]
        assert len(rows) == 5
        assert columns[0] <= len(rows[0]) <= columns[1]
        assert max(map(len, lines)) <= width
        accuracies, times = ([row[place].strip().endswith("*") for row in rows] for place in (1, 2))
        assert (accuracies, times) == ([False] * 4 + [True], [True] + [False] * 4)
    close = [*seeds("a", [0.8, 0.9]), *seeds("b", [0.81, 0.88]), run_of(0.1, name="c"), run_of(0.2, name="d")]
    (table,) = tables_of(comparison(close))
    assert [row[1] for row in table.rows] == ["2", "2", "1", "1"]
    assert [str(row[2])[-1] for row in table.rows] == ["~", " ", " ", " "]
    assert "~ best, but not separable from all others over seeds" in lines_of(comparison(close))


def test_seeds_and_targets_say_what_they_are():
    told = lines_of(every(seeds("a", [0.5, 0.6])))
    assert any(line.endswith("; of 2 seeds it is 9 times the standard deviation") for line in told)
    # Where targets differ, they have a row, and the rows below are of each run's own.
    runs = [to_target(run_of(0.9, name=name), took(2.0), at) for name, at in (("a", 0.9), ("b", 0.8))]
    found = cells(every(runs))
    assert (found["target"], found["time to its target"]) == (["90%", "80%"], ["2 s", "2 s"])
    assert "target" not in cells(every(runs[:1]))
    assert "scale: small, as the scenario stands" in lines_of(
        every([run_of(0.5, scale="small"), run_of(0.5)])
    )


def test_what_became_of_a_run_is_told():
    """`run` has told the reason already when a run failed; `compare` has nobody else to tell it."""
    so_far = "these are its figures so far"
    words = {"killed": f"was killed: {so_far}", "interrupted": f"was interrupted: {so_far}"}
    words |= {"running": f"is still running: {so_far}", "failed": "failed: a loss of [/] nan"}
    for status, told in words.items():
        run = run_of(0.5, name="a", status=status, reason="a loss of [/] nan")
        assert f"a {told}" in lines_of(every([run]))
    assert "a failed" in lines_of(comparison([replace(run, status="failed")], reasons=False))
    assert not any(line.startswith("a ") for line in lines_of(every([run_of(0.5, name="a")])))
