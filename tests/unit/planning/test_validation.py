"""Predictions held against measurements: scores, leave-one-network-out, and wrong files."""

import pytest
from commands import run_command

from edgefl.planning.benchmarks import Compared, Score
from edgefl.planning.validation import validation

BOARD = """title: Mine
category: laptop
kind: roofline
peak:
  fp32: {{value: 100 GFLOP/s, status: assumed, source: made up}}
efficiency: &efficiency
  dense: {{value: {dense}, status: derived, source: made up}}
  depthwise: {{value: 0.01, status: assumed, source: made up}}
  elementwise: {{value: 1.0, status: assumed, source: made up}}
memory_bandwidth: {{value: 10 GB/s, status: assumed, source: made up}}
launch_overhead: {{value: {launch}, status: assumed, source: made up}}
memory: {{value: 8 GB, status: assumed, source: made up}}
reserved_memory: {{value: 1 GB, status: assumed, source: made up}}
power:
  idle: {{value: {idle}, status: assumed, source: made up}}
  active: {{value: {active}, status: assumed, source: made up}}
"""
FILE = """title: steps on my board
board: {board}
measures: {measures}
source: "my own stopwatch, 2026-03-01"
status: measured
runtime: "torch 2.13 on the CPU"
library: edgefl
batch: 16
image: [3, 32, 32]
classes: 10
energy_of: {share}
{more}rows:
"""
NETWORKS = {
    "small": "network: cnn2, label: small, settings: {channels: [8, 16], hidden: 64}",
    "middle": "network: cnn2, label: middle, settings: {channels: [16, 32], hidden: 128}",
    "large": "network: cnn2, label: large, settings: {channels: [32, 64], hidden: 512}",
}
SMALL = NETWORKS["small"]
DENSE = "fitted: [efficiency.dense]"


class Folder:
    """A folder on EDGEFL_PATH with boards and files of measurements."""

    def __init__(self, path):
        self.path = path
        for kind in ("devices", "validation"):
            (path / kind).mkdir()

    def board(self, name="my-board", *, dense="0.11", launch="10 us", idle="2 W", active="10 W", more=""):
        """Writes a board."""
        text = BOARD.format(dense=dense, launch=launch, idle=idle, active=active) + more
        (self.path / "devices" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def measured(
        self,
        *rows,
        name="mine",
        board="my-board",
        measures="training step",
        share="whole device",
        more="",
    ):
        """Writes a file of measurements; its path."""
        path = self.path / "validation" / f"{name}.yaml"
        lines = "".join(f"  - {{{row}}}\n" for row in rows)
        text = FILE.format(board=board, measures=measures, share=share, more=more)
        path.write_text(text + lines, encoding="utf-8")
        return str(path)

    def truth(self, quantity="time", **board):
        """What the networks take on a board as it really is: the predictions for it."""
        self.board("true-board", **board)
        rows = [f"{line}, time: 1 s, energy: 1 J" for line in NETWORKS.values()]
        found = validation([self.measured(*rows, name="truth", board="true-board")])
        (self.path / "validation" / "truth.yaml").unlink()
        return {name: row.predicted for name, row in rows_of(found, quantity).items()}

    def held(self, times, more=DENSE, **file):
        """The rows of a file in which networks take these times."""
        rows = [f"{NETWORKS[name]}, time: {time} s, {more}" for name, time in times.items()]
        return rows_of(validation([self.measured(*rows, **file)]))


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder on EDGEFL_PATH with a board."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    folder = Folder(tmp_path)
    folder.board()
    return folder


def rows_of(found, quantity="time"):
    """The rows of the only file, by network."""
    (one,) = (one for one in found.comparisons if one.quantity == quantity)
    return {row.network: row for row in one.rows}


def compared(measured, predicted, low=None, high=None, *, counted=True):
    between = {"low": low, "high": high, "counted": counted}
    about = {"network": "x", "batch": 1, "status": "measured", "source": "here"}
    return Compared(measured=measured, predicted=predicted, **between, **about)


def test_a_score_is_the_median_error_and_the_order():
    """Errors of 50%, 10%, 0 and 100%: the median is 30%; one of six pairs is in the wrong order."""
    score = Score.of(
        [compared(1, 0.5), compared(10, 11), compared(3, 3), compared(2, 4), compared(9, 1, counted=False)]
    )
    assert (score.rows, score.left_out) == (4, 1)
    assert score.median_error == pytest.approx(0.3)
    # Ranks 1 4 3 2 and 1 4 2 3: 1 - 6 * 2 / (4 * 15); 5 pairs agree and 1 does not.
    assert score.spearman == pytest.approx(0.8)
    assert score.kendall == pytest.approx(4 / 6)
    score = Score.of([compared(3, 3, 3, 3), compared(3, 3, high=4), compared(3, 3, 2, 4, counted=False)])
    assert (score.inside, score.bounded, score.spearman) == (1, 1, None)
    assert Score.of([compared(1, 2), compared(2, 2), compared(3, 2)]).kendall is None
    nothing = Score.of([compared(1, None), compared(1, 1, counted=False)])
    assert (nothing.rows, nothing.left_out, nothing.median_error, nothing.spearman) == (0, 2, None, None)


def test_a_prediction_is_held_against_a_measurement(own):
    """The board predicts what it predicts everywhere; the error is relative to what was measured."""
    truth = own.truth()
    for name, row in own.held({name: 2 * time for name, time in truth.items()}, "").items():
        assert row.counted
        assert (row.predicted, row.error) == (pytest.approx(truth[name]), pytest.approx(-0.5))


@pytest.mark.parametrize("numbers", [{"dense": 0.3}, {"dense": 0.3, "launch": "80 us"}])
def test_numbers_fitted_to_a_network_are_fitted_again_without_it(own, numbers):
    """The board's numbers are wrong, and the measurements know better: the other two predict each exactly."""
    fitted = ["efficiency.dense", "launch_overhead"][: len(numbers)]
    for row in own.held(own.truth(**numbers), f"fitted: [{', '.join(fitted)}]").values():
        assert (row.counted, row.remark, row.error) == (True, "refitted", pytest.approx(0, abs=1e-3))


def test_a_networks_own_measurement_has_no_part_in_its_prediction(own):
    """However wrong it is, what is predicted for it stays; the others' predictions move."""
    truth = own.truth(dense=0.3)
    right, wrong = (own.held({**truth, "large": factor * truth["large"]}) for factor in (1, 3))
    assert right["large"].predicted == wrong["large"].predicted
    assert wrong["small"].predicted > 1.05 * right["small"].predicted


@pytest.mark.parametrize("dense", [0.5, 1])
def test_a_share_is_at_most_1(own, dense):
    """Also where the measurements would have more, and where it is 1 before it is fitted."""
    own.board(dense=dense)
    most = own.truth(dense=1)
    for name, row in own.held(dict.fromkeys(NETWORKS, 1e-6)).items():
        assert row.predicted == pytest.approx(most[name])


def test_a_number_fitted_to_one_network_alone_leaves_it_out(own):
    """Its row does not count, nor does the same network's at another batch size, or in another file."""
    rows = [
        f"{SMALL}, time: 1 s, {DENSE}",
        f"{SMALL}, batch: 4, time: 1 s",
        f"{NETWORKS['large']}, time: 1 s",
    ]
    (found,) = validation([own.measured(*rows, name="first")]).comparisons
    assert [row.counted for row in found.rows] == [False, False, True]
    assert found.rows[0].remark == "not counted: efficiency.dense fitted to it"
    assert (found.score.rows, found.score.left_out) == (1, 2)
    other = own.held(dict.fromkeys(NETWORKS, 1), "", name="second")
    assert [name for name, row in other.items() if not row.counted] == ["small"]


def test_bounds_are_those_of_the_boards_numbers(own):
    """With an efficiency between 0.1 and 0.4, times lie between what the two ends predict."""
    own.board(dense="0.2, low: 0.1, high: 0.4")
    quick, slow = own.truth(dense=0.4), own.truth(dense=0.1)
    times = quick["small"] * 1.01, slow["middle"] * 0.99, slow["large"] * 1.01
    rows = [f"{line}, time: {time} s" for line, time in zip(NETWORKS.values(), times, strict=True)]
    found = validation([own.measured(*rows)])
    for name, row in rows_of(found).items():
        assert (row.low, row.high) == (pytest.approx(quick[name]), pytest.approx(slow[name]))
    (score,) = (one.score for one in found.comparisons)
    assert (score.inside, score.bounded) == (2, 3)


@pytest.mark.parametrize(
    ("share", "idle", "active", "expected", "remark"),
    [
        ("whole device", "2 W", "10 W", (None, 10, None), ""),
        ("above idle", "2 W", "10 W", (None, 8, None), ""),
        ("whole device", "2 W, low: 1 W, high: 3 W", "bounded", (6, None, 10), "a power is only bounded"),
        (
            "above idle",
            "2 W, low: 1 W, high: 3 W",
            "bounded",
            (6 - 3, None, 10 - 1),
            "a power is only bounded",
        ),
        ("above idle", "2 W, low: 1 W, high: 7 W", "bounded", (0, None, 10 - 1), "a power is only bounded"),
    ],
)
def test_energies_and_their_bounds(own, share, idle, active, expected, remark):
    """In watts: above idle, the whole device's less the idle power, the one's least less the other's most."""
    own.board(idle=idle, active=active)
    board = own.path / "devices" / "my-board.yaml"
    board.write_text(board.read_text("utf-8").replace("value: bounded", "low: 6 W, high: 10 W"), "utf-8")
    found = validation([own.measured(f"{SMALL}, time: 1 s, energy: 1 J", share=share)])
    seconds, row = rows_of(found)["small"].predicted, rows_of(found, "energy")["small"]
    for figure, watts in zip((row.low, row.predicted, row.high), expected, strict=True):
        assert figure == (None if watts is None else pytest.approx(watts * seconds))
    assert row.remark == remark


def test_own_files_on_the_path_are_found_by_name(own, capsys):
    """``list``, ``show`` and ``validate`` know them; --device narrows; a wrong one among others is a note."""
    own.measured(f"{SMALL}, time: 1 s, energy: 1 J")
    own.measured("network: cnn3, time: 1 s", name="wrong")
    assert "\nmine " in run_command(capsys, "list", "validation")[1]
    assert "my own stopwatch" in run_command(capsys, "show", "validation", "mine")[1]
    status, out, err = run_command(capsys, "validate", "--device", "my-board")
    assert status == 0
    titles = [line for line in out.splitlines() if line.startswith("mine")][:2]
    assert titles == ["mine: steps on my board", "mine, energy: steps on my board"]
    assert "note: wrong is left out: unknown model 'cnn3'" in err


@pytest.mark.parametrize(
    ("old", "new", "words", "line"),
    [
        (", time: 1 s", "", "give a time, an energy, or both", ":13"),
        ("time: 1 s", "time: 1 s, fitted: [efficiency.dens]", "has no known number 'efficiency.dens'", ":13"),
        ("[8, 16]", "[8, 16], hiden: 5", "unknown key 'hiden'", ":13"),
        ("[8, 16], hidden: 64}", "[8, 16]}, image: [3, 4, 4]", "needs images of at least 16x16", ":13"),
        (SMALL, "network: resnet18, library: torchvision, image: [1, 8, 8]", "traced on 1x8x8", ":13"),
        ("batch: 16\n", "", "row 1 has no 'batch'", ""),
        ("energy_of: whole device\n", "", "'energy_of' must say whose it is", ""),
    ],
)
def test_a_wrong_file_has_one_message(own, capsys, old, new, words, line):
    """Exit status 2, what is wrong, and the file's line; no traceback."""
    path = own.measured(f"{SMALL}, time: 1 s{', energy: 1 J' if 'energy_of' in old else ''}")
    file = own.path / "validation" / "mine.yaml"
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
    status, out, err = run_command(capsys, "validate", path)
    assert (status, out, err.count("error:")) == (2, "", 1)
    assert words in err
    assert f"mine.yaml{line}" in err
