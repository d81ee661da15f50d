"""Predictions held against measurements: scores, leave-one-network-out, and wrong files."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run_command

from edgefl.core.errors import UserError
from edgefl.planning.benchmarks import Compared, Score
from edgefl.planning.validation import validation

BOARD = """title: Mine
category: laptop
kind: roofline
peak:
  fp32: {{value: 100 GFLOP/s, status: assumed, source: made up}}
efficiency:
  dense: {{value: {dense}, status: derived, source: made up}}
  depthwise: {{value: 0.01, status: assumed, source: made up}}
  elementwise: {{value: 1.0, status: assumed, source: made up}}
memory_bandwidth: {{value: 10 GB/s, status: assumed, source: made up}}
launch_overhead: {{value: {launch}, status: assumed, source: made up}}
memory: {{value: 8 GB, status: assumed, source: made up}}
reserved_memory: {{value: 1 GB, status: assumed, source: made up}}
power:
  idle: {{value: 2 W, status: assumed, source: made up}}
  active: {{value: {active}, status: assumed, source: made up}}
"""
FILE = """title: steps on my board
board: {board}
measures: training step
source: "my own stopwatch, 2026-03-01"
status: measured
runtime: "torch 2.13 on the CPU"
library: edgefl
batch: 16
image: [3, 32, 32]
classes: 10
energy_of: whole device
rows:
"""
NETWORKS = {
    "small": "network: cnn2, label: small, settings: {channels: [8, 16], hidden: 64}",
    "middle": "network: cnn2, label: middle, settings: {channels: [16, 32], hidden: 128}",
    "large": "network: cnn2, label: large, settings: {channels: [32, 64], hidden: 512}",
}


class Folder:
    """A folder on EDGEFL_PATH with boards and files of measurements."""

    def __init__(self, path):
        self.path = path
        for kind in ("devices", "validation"):
            (path / kind).mkdir()

    def board(self, name="my-board", dense=0.11, launch="10 us", active="10 W"):
        """Writes a board."""
        text = BOARD.format(dense=dense, launch=launch, active=active)
        (self.path / "devices" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def measured(self, *rows, name="mine", board="my-board"):
        """Writes a file of measurements; its path."""
        path = self.path / "validation" / f"{name}.yaml"
        lines = "".join(f"  - {{{row}}}\n" for row in rows)
        path.write_text(FILE.format(board=board) + lines, encoding="utf-8")
        return str(path)

    def truth(self, quantity="time", **board):
        """What the networks take on a board as it really is: the predictions for it."""
        self.board("true-board", **board)
        rows = [f"{line}, time: 1 s, energy: 1 J" for line in NETWORKS.values()]
        found = validation([self.measured(*rows, name="truth", board="true-board")]).comparisons
        (self.path / "validation" / "truth.yaml").unlink()
        (one,) = (one for one in found if one.quantity == quantity)
        return {row.network: row.predicted for row in one.rows}


def yaml_of_inference(board, launch):
    """A board's text with a runtime for inference, which differs in its launch overhead."""
    lines = board.splitlines()
    first, last = (
        lines.index("efficiency:"),
        lines.index("memory_bandwidth: {value: 10 GB/s, status: assumed, source: made up}"),
    )
    inner = "\n".join(f"  {line}" for line in lines[first:last])
    source = "status: assumed, source: made up"
    return (
        f"{board}inference:\n  runtime: made up\n{inner}\n  launch_overhead: {{value: {launch}, {source}}}\n"
    )


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder on EDGEFL_PATH."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    return Folder(tmp_path)


def rows_of(found, quantity="time"):
    """The rows of the only file, by network."""
    (one,) = (one for one in found.comparisons if one.quantity == quantity)
    return {row.network: row for row in one.rows}


def compared(measured, predicted, *, low=None, high=None, counted=True):
    return Compared(
        network="x",
        batch=1,
        measured=measured,
        predicted=predicted,
        low=low,
        high=high,
        status="measured",
        source="here",
        counted=counted,
    )


def test_a_score_is_the_median_error_and_the_order():
    """Errors of 50%, 10%, 0 and 100%: the median is 30%; one of six pairs is in the wrong order."""
    exact = compared(3, 3, low=3, high=3)
    others = [compared(3, 3, high=4), compared(3, 3, low=2, high=4, counted=False)]
    assert (Score.of([exact, *others]).inside, Score.of([exact, *others]).bounded) == (1, 1)
    score = Score.of(
        [compared(1, 0.5), compared(10, 11), compared(3, 3), compared(2, 4), compared(9, 1, counted=False)]
    )
    assert (score.rows, score.left_out) == (4, 1)
    assert score.median_error == pytest.approx(0.3)
    # Ranks 1 4 3 2 and 1 4 2 3: 1 - 6 * 2 / (4 * 15); 5 pairs agree and 1 does not.
    assert score.spearman == pytest.approx(0.8)
    assert score.kendall == pytest.approx(4 / 6)


def test_a_score_without_an_order():
    """Two rows, or equal predictions, have no rank correlation; no rows have no error either."""
    assert Score.of([compared(1, 2), compared(2, 3)]).spearman is None
    assert Score.of([compared(1, 2), compared(2, 2), compared(3, 2)]).kendall is None
    assert Score.of([compared(1, 2), compared(2, 3), compared(3, 4)]).spearman == pytest.approx(1)
    nothing = Score.of([compared(1, None), compared(1, 1, counted=False)])
    assert (nothing.rows, nothing.left_out, nothing.median_error, nothing.spearman) == (0, 2, None, None)


def test_a_prediction_is_held_against_a_measurement(own):
    """The board predicts what it predicts everywhere; the error is relative to what was measured."""
    own.board()
    truth = own.truth(dense=0.11)
    path = own.measured(*(f"{NETWORKS[name]}, time: {2 * truth[name]} s" for name in NETWORKS))
    rows = rows_of(validation([path]))
    for name, row in rows.items():
        assert row.predicted == pytest.approx(truth[name])
        assert row.error == pytest.approx(-0.5)
        assert row.counted


def test_numbers_fitted_to_a_network_are_fitted_again_without_it(own):
    """The board's dense efficiency is wrong, and the measurements know better.

    Each network is predicted from the other two, exactly, though the board's file has another number.
    """
    own.board(dense=0.11)
    truth = own.truth(dense=0.3)
    path = own.measured(*(f"{NETWORKS[n]}, time: {truth[n]} s, fitted: [efficiency.dense]" for n in NETWORKS))
    for row in rows_of(validation([path])).values():
        assert row.counted
        assert row.remark == "refitted"
        assert row.error == pytest.approx(0, abs=1e-3)


def test_a_networks_own_measurement_has_no_part_in_its_prediction(own):
    """However wrong it is, what is predicted for it stays; the others' predictions move."""
    own.board(dense=0.11)
    truth = own.truth(dense=0.3)
    found = []
    for factor in (1, 3):
        rows = [
            f"{line}, time: {truth[name] * (factor if name == 'large' else 1)} s, fitted: [efficiency.dense]"
            for name, line in NETWORKS.items()
        ]
        found.append(rows_of(validation([own.measured(*rows)])))
    assert found[0]["large"].predicted == found[1]["large"].predicted
    assert found[1]["small"].predicted > 1.05 * found[0]["small"].predicted


def test_two_numbers_are_fitted_again_together(own):
    """Efficiency and launch overhead, at two batch sizes."""
    own.board(dense=0.11, launch="10 us")
    truth = own.truth(dense=0.3, launch="80 us")
    rows = [
        f"{NETWORKS[n]}, time: {truth[n]} s, fitted: [efficiency.dense, launch_overhead]" for n in NETWORKS
    ]
    for row in rows_of(validation([own.measured(*rows)])).values():
        assert row.error == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("dense", [0.5, 1])
def test_a_share_is_at_most_1(own, dense):
    """Also where the measurements would have more, and where it is 1 before it is fitted."""
    own.board(dense=dense)
    most = own.truth(dense=1)
    path = own.measured(*(f"{NETWORKS[n]}, time: 1 us, fitted: [efficiency.dense]" for n in NETWORKS))
    for name, row in rows_of(validation([path])).items():
        assert row.predicted == pytest.approx(most[name])


def test_half_and_twice_the_time_weigh_alike(own):
    """A fit to two networks, one half and one twice as fast as predicted, moves nothing."""
    own.board(launch="80 us", dense=0.001)
    truth = own.truth(dense=0.001)
    factors = {"small": 0.5, "middle": 2, "large": 1}
    rows = [f"{NETWORKS[n]}, time: {truth[n] * factors[n]} s, fitted: [efficiency.dense]" for n in NETWORKS]
    large = rows_of(validation([own.measured(*rows)]))["large"]
    assert large.predicted == pytest.approx(truth["large"], rel=0.05)


def test_steps_and_inference_have_their_own_runtimes(own):
    """A board that has figures for inference is priced on these there, whatever was priced before."""
    own.board(launch="1 ms")
    device = own.path / "devices" / "my-board.yaml"
    training = own.measured(f"{NETWORKS['small']}, time: 1 s", name="training")
    text = (own.path / "validation" / "training.yaml").read_text("utf-8")
    inference = own.path / "validation" / "inference.yaml"
    inference.write_text(text.replace("training step", "inference"), "utf-8")
    alone = rows_of(validation([str(inference)]))["small"].predicted
    quicker = yaml_of_inference(device.read_text("utf-8"), "0.5 us")
    device.write_text(quicker, "utf-8")
    step, one = (each.rows[0].predicted for each in validation([training, str(inference)]).comparisons)
    assert one < 0.9 * alone < alone < step
    inference.write_text(text.replace("training step", "forward pass"), "utf-8")
    assert rows_of(validation([str(inference)]))["small"].predicted >= alone


def test_numbers_fitted_to_steps_say_nothing_of_inference(own):
    """With figures of its own, the runtime for inference is held against all that was not fitted to them."""
    own.board()
    device = own.path / "devices" / "my-board.yaml"
    device.write_text(yaml_of_inference(device.read_text("utf-8"), "0.5 us"), "utf-8")
    step = own.measured(f"{NETWORKS['small']}, time: 1 s, fitted: [efficiency.dense]")
    text = Path(step).read_text("utf-8")
    inference = own.path / "validation" / "inference.yaml"
    inference.write_text(
        text.replace("training step", "inference").replace(", fitted: [efficiency.dense]", ""), "utf-8"
    )
    trained, inferred = (each.rows[0] for each in validation([step, str(inference)]).comparisons)
    assert (trained.counted, inferred.counted) == (False, True)


def test_every_row_is_its_own_work(own):
    """By what is measured, the batch and the optimizer, also where the network is the same."""
    own.board()
    more = f"{NETWORKS['large']}, time: 1 s"
    paths = [own.measured(more, f"{more}, batch: 64", name="whole")]
    text = (own.path / "validation" / "whole.yaml").read_text("utf-8")
    for name, old, new in (
        ("momentum", "batch: 16\n", "batch: 16\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"),
        ("last", "training step", "last-layer step"),
        ("forward", "training step", "inference"),
    ):
        path = own.path / "validation" / f"{name}.yaml"
        path.write_text(text.replace(old, new), "utf-8")
        paths.append(str(path))
    whole, momentum, last, forward = (
        [row.predicted for row in one.rows] for one in validation(paths).comparisons
    )
    assert whole[1] > 1.5 * whole[0]
    assert forward[0] < last[0] < whole[0] < momentum[0]


def test_a_number_fitted_to_one_network_alone_leaves_it_out(own):
    """Its row is shown and does not count; so is the same network at another batch size; others count."""
    own.board()
    truth = own.truth()
    path = own.measured(
        f"{NETWORKS['small']}, time: {truth['small']} s, fitted: [efficiency.dense]",
        f"{NETWORKS['small']}, batch: 4, time: 1 s",
        f"{NETWORKS['large']}, time: {truth['large']} s",
    )
    (found,) = validation([path]).comparisons
    assert [row.counted for row in found.rows] == [False, False, True]
    assert found.rows[0].remark == "not counted: efficiency.dense fitted to it"
    assert (found.score.rows, found.score.left_out) == (1, 2)


def test_what_another_file_says_of_the_board_counts_too(own):
    """A number that was fitted to a network in one file is not held against that network in another."""
    own.board()
    own.measured(f"{NETWORKS['small']}, time: 1 s, fitted: [efficiency.dense]", name="first")
    second = own.measured(*(f"{line}, time: 1 s" for line in NETWORKS.values()), name="second")
    rows = rows_of(validation([second]))
    assert {name for name, row in rows.items() if not row.counted} == {"small"}


def test_only_what_a_number_was_fitted_to_fits_it_again(own):
    """However wrong other rows are; a number that only one network knows keeps its value."""
    own.board(dense=0.11)
    truth, shipped = own.truth(dense=0.3), own.truth(dense=0.11)
    rows = [f"{NETWORKS[n]}, time: {truth[n]} s, fitted: [efficiency.dense]" for n in ("small", "large")]
    found = rows_of(validation([own.measured(*rows, f"{NETWORKS['middle']}, time: 1 h")]))
    assert found["large"].error == pytest.approx(0, abs=1e-3)
    rows[0] = rows[0].replace("dense]", "dense, launch_overhead]")
    found = rows_of(validation([own.measured(*rows)]))
    assert (found["small"].counted, found["small"].predicted) == (False, pytest.approx(shipped["small"]))


def test_what_was_refitted_has_no_bounds(own):
    """The intervals are those of the board's file, whose numbers it does not have."""
    own.board(dense=0.11)
    device = own.path / "devices" / "my-board.yaml"
    text = device.read_text("utf-8").replace("{value: 10 us", "{low: 1 us, value: 10 us")
    device.write_text(text, "utf-8")
    rows = [f"{NETWORKS[n]}, time: 1 s, fitted: [efficiency.dense]" for n in ("small", "large")]
    found = rows_of(validation([own.measured(*rows, f"{NETWORKS['middle']}, time: 1 s")]))
    assert (found["small"].low, found["small"].high) == (None, None)
    assert found["middle"].low < found["middle"].predicted


def test_energies_depend_on_what_was_fitted_to_times(own):
    """A network's energy is not held against a number that its own time gave; a row may have its status."""
    own.board()
    energy = f"{NETWORKS['small']}, energy: 1 J, status: derived"
    path = own.measured(f"{NETWORKS['small']}, time: 1 s, fitted: [efficiency.dense]", energy)
    found = validation([path])
    (row,) = (one.rows[0] for one in found.comparisons if one.quantity == "energy")
    assert (row.counted, row.status) == (False, "derived")
    (total,) = (one for one in found.totals if one.quantity == "energy")
    assert (total.boards, total.networks) == (0, 0)
    assert {(one.measures, one.quantity) for one in found.totals} == {
        ("training step", "time"),
        ("training step", "energy"),
    }


@pytest.mark.parametrize(("dense", "fitted"), [(0.11, ""), (0.3, "efficiency.dense, ")])
def test_powers_fitted_to_energies_leave_times_alone(own, dense, fitted):
    """Energies are predicted with the power that the other networks' energies give; times as always."""
    own.board(active="10 W", dense=0.11)
    energies, times = (own.truth(one, active="6 W", dense=dense) for one in ("energy", "time"))
    path = own.measured(
        *(
            f"{NETWORKS[n]}, time: {times[n]} s, energy: {energies[n]} J, fitted: [{fitted}power.active]"
            for n in NETWORKS
        )
    )
    found = validation([path])
    for row in rows_of(found, "energy").values():
        assert row.remark == "refitted"
        assert row.error == pytest.approx(0, abs=1e-3)
    assert {row.remark for row in rows_of(found).values()} == {"refitted" if fitted else ""}


def test_bounds_are_those_of_the_boards_numbers(own):
    """With an efficiency between 0.1 and 0.4, times lie between what the two ends predict."""
    text = BOARD.replace("value: {dense}", "low: 0.1, value: {dense}, high: 0.4")
    (own.path / "devices" / "my-board.yaml").write_text(
        text.format(dense=0.2, launch="10 us", active="10 W"), encoding="utf-8"
    )
    quick, slow = own.truth(dense=0.4), own.truth(dense=0.1)
    measured = {
        "small": quick["small"] * 1.01,
        "middle": slow["middle"] * 0.99,
        "large": slow["large"] * 1.01,
    }
    found = validation([own.measured(*(f"{NETWORKS[name]}, time: {measured[name]} s" for name in NETWORKS))])
    for name, row in rows_of(found).items():
        assert (row.low, row.high) == (pytest.approx(quick[name]), pytest.approx(slow[name]))
    (score,) = (one.score for one in found.comparisons)
    assert (score.inside, score.bounded) == (2, 3)


@pytest.mark.parametrize(
    ("share", "most_idle", "low", "high"),
    [
        ("whole device", "3 W", 6, 10),
        ("above idle", "3 W", 6 - 3, 10 - 1),
        ("above idle", "7 W", 0, 10 - 1),
    ],
)
def test_bounds_of_energies(own, share, most_idle, low, high):
    """Of 6 to 10 W active and 1 W idle or more: above idle, the one's least less the other's most."""
    text = BOARD.format(dense=0.2, launch="10 us", active="8 W").replace(
        "{value: 8 W", "{low: 6 W, high: 10 W"
    )
    text = text.replace("{value: 2 W", f"{{low: 1 W, value: 2 W, high: {most_idle}")
    (own.path / "devices" / "my-board.yaml").write_text(text, encoding="utf-8")
    path = own.measured(f"{NETWORKS['small']}, time: 1 s, energy: 1 J")
    mine = own.path / "validation" / "mine.yaml"
    mine.write_text(mine.read_text("utf-8").replace("whole device", share), "utf-8")
    found = validation([path])
    seconds, row = rows_of(found)["small"].predicted, rows_of(found, "energy")["small"]
    assert (row.low, row.high) == (pytest.approx(low * seconds), pytest.approx(high * seconds))
    assert (row.predicted, row.remark) == (None, "a power is only bounded")


def test_energies_above_idle_leave_the_idle_power_out(own):
    """10 W active, 2 W idle: four fifths of the whole device's."""
    own.board()
    path = own.measured(f"{NETWORKS['small']}, energy: 1 J")
    whole = rows_of(validation([path]), "energy")["small"].predicted
    text = (own.path / "validation" / "mine.yaml").read_text("utf-8")
    (own.path / "validation" / "mine.yaml").write_text(text.replace("whole device", "above idle"), "utf-8")
    assert rows_of(validation([path]), "energy")["small"].predicted == pytest.approx(0.8 * whole)


def test_totals_are_by_what_was_measured(own):
    """Steps and inference have totals of their own, and one together; boards and networks are counted."""
    own.board()
    own.board("other-board", dense=0.2)
    first = own.measured(*(f"{line}, time: 1 s" for line in NETWORKS.values()), name="first")
    second = own.measured(f"{NETWORKS['small']}, time: 1 s", name="second", board="other-board")
    text = (own.path / "validation" / "second.yaml").read_text("utf-8")
    (own.path / "validation" / "second.yaml").write_text(text.replace("training step", "inference"), "utf-8")
    totals = {one.measures: one for one in validation([first, second]).totals}
    assert totals.keys() == {"training step", "inference", "all"}
    assert (totals["all"].boards, totals["all"].networks, totals["all"].score.rows) == (2, 4, 4)
    assert totals["training step"].boards == 1


def test_own_files_on_the_path_are_found_by_name(own, capsys):
    """``list``, ``show`` and ``validate`` know a file in validation/ on EDGEFL_PATH; --device narrows."""
    own.board()
    own.measured(f"{NETWORKS['small']}, time: 1 s")
    assert "\nmine " in run_command(capsys, "list", "validation")[1]
    assert "my own stopwatch" in run_command(capsys, "show", "validation", "mine")[1]
    status, out, _ = run_command(capsys, "validate", "--device", "my-board")
    assert status == 0
    assert out.startswith("mine: steps on my board\n")
    assert "small" in out


@pytest.mark.parametrize(
    ("row", "words", "line"),
    [
        ("network: cnn3, time: 1 s", "unknown model 'cnn3'", 13),
        ("network: cnn2, time: 1", "is not a time", 13),
        ("network: cnn2", "give a time, an energy, or both", 13),
        ("network: cnn2, time: 0 s", "rows.0.time should", 13),
        ("network: cnn2, time: 1 s, batch: 0", "rows.0.batch should be greater than 0", 13),
        ("network: cnn2, time: 1 s, fitted: [efficiency.dens]", "has no known number 'efficiency.dens'", 13),
        ("network: cnn2, tme: 1 s", "unknown key 'tme'", 13),
        ("network: cnn2, time: 1 s, settings: {hiden: 5}", "unknown key 'hiden'", 13),
        (
            "network: resnet18, library: torchvision, image: [1, 8, 8], time: 1 s",
            "cannot be traced on 1x8x8",
            13,
        ),
        ("network: cnn2, image: [3, 4, 4], time: 1 s", "needs images of at least 16x16", 13),
    ],
)
def test_a_wrong_row_has_one_message_with_its_line(own, capsys, row, words, line):
    """Exit status 2, what is wrong, and the file's line; no traceback."""
    own.board()
    path = own.measured(row)
    status, out, err = run_command(capsys, "validate", path)
    assert (status, out) == (2, "")
    assert words in err
    assert f"mine.yaml:{line}" in err
    assert err.count("error:") == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("board: my-board", "board: my-bord", "unknown device 'my-bord'"),
        ("training step", "a step", "measures should be"),
        ("batch: 16\n", "", "row 1 has no 'batch'"),
        ("energy_of: whole device\n", "", "'energy_of' must say whose it is"),
        ("status: measured", "status: assumed", "status should be"),
        ("image: [3, 32, 32]", "image: [32, 32]", "'2' is missing"),
        ('source: "my own stopwatch, 2026-03-01"\n', "", "'source' is missing"),
    ],
)
def test_a_wrong_file_has_one_message(own, capsys, old, new, words):
    """Asked for by name, it is an error; among all others, a note names it and the others are shown."""
    own.board()
    path = own.measured(f"{NETWORKS['small']}, time: 1 s, energy: 1 J")
    text = (own.path / "validation" / "mine.yaml").read_text("utf-8")
    (own.path / "validation" / "mine.yaml").write_text(text.replace(old, new), "utf-8")
    status, _, err = run_command(capsys, "validate", path)
    assert status == 2
    assert words in err
    assert "mine.yaml" in err


def test_tables_of_energies_say_so(own, capsys):
    """A file's two tables differ in their first line, as in the scores."""
    own.board()
    path = own.measured(f"{NETWORKS['small']}, time: 1 s, energy: 1 J")
    lines = run_command(capsys, "validate", path)[1].splitlines()
    assert [line for line in lines if line.startswith("mine")][:2] == [
        "mine: steps on my board",
        "mine, energy: steps on my board",
    ]


def test_a_wrong_file_among_others_is_a_note(own, capsys):
    """The others are shown."""
    own.board()
    own.measured(f"{NETWORKS['small']}, time: 1 s", name="right")
    own.measured("network: cnn3, time: 1 s", name="wrong")
    status, out, err = run_command(capsys, "validate", "--device", "my-board")
    assert status == 0
    assert "right: steps" in out
    assert "note: wrong is left out: unknown model 'cnn3'" in err


def test_a_board_that_cannot_be_priced(own, capsys):
    """A missing number is an error where its file was asked for."""
    own.board()
    device = own.path / "devices" / "my-board.yaml"
    wrong = device.read_text("utf-8").replace("{value: 10 GB/s, status: assumed", "{status: unknown")
    device.write_text(wrong, "utf-8")
    path = own.measured(f"{NETWORKS['small']}, time: 1 s")
    status, _, err = run_command(capsys, "validate", path)
    assert status == 2
    assert "no value for memory_bandwidth" in err


def test_an_unknown_power_counts_for_nothing(own):
    """The energy's row says so."""
    own.board()
    device = own.path / "devices" / "my-board.yaml"
    device.write_text(
        device.read_text("utf-8").replace("{value: 10 W, status: assumed", "{status: unknown"), "utf-8"
    )
    row = rows_of(validation([own.measured(f"{NETWORKS['small']}, energy: 1 J")]), "energy")["small"]
    assert (row.predicted, row.counted, row.remark) == (None, False, "a power is unknown")


@pytest.mark.parametrize("option", ["no-board", "arduino-nano-33-ble"])
def test_a_device_without_measurements(capsys, option):
    """An unknown one, and one that nobody measured."""
    status, _, err = run_command(capsys, "validate", "--device", option)
    assert status == 2
    assert "--device" in err


def test_errors_are_users():
    """An unknown name is bad input with the nearest one."""
    with pytest.raises(UserError, match="unknown validation 'raspberry-pi-5-trainin'") as caught:
        validation(["raspberry-pi-5-trainin"])
    assert caught.value.hint == "did you mean 'raspberry-pi-5-training'?"
    with pytest.raises(UserError, match="unknown validation") as caught:
        validation(["raspberry-pi-5"])
    assert caught.value.hint == "for all measurements on this device: --device raspberry-pi-5"
