"""The figures of runs: which there are, in what order, and where each stands in a run's record."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compared import dry, rich, run_of, score, seeds, to_target, took
from toys import TOYS

from edgefl.analysis.explain.path import NOBODY
from edgefl.analysis.history import Evaluated, Target, Waste
from edgefl.analysis.metrics import main_model, metrics, target_name
from edgefl.analysis.settings import dotted
from edgefl.analysis.summary import Accuracy
from edgefl.analysis.values import NOT_REACHED, Value
from edgefl.core.documents import document
from edgefl.core.ledger import EnergyTotal

WASTED = ["wasted bytes", "wasted work", "wasted client time", "wasted energy"]
BOTH = {name: score(0.9) for name in ("global", "personal")}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two runs that differ by seed alone, with something in every row."""
    return rich(tmp_path_factory.mktemp("metrics") / "rich", sweep={"seed": [1, 2]})


@pytest.fixture(scope="module")
def runs(results):
    """Their summaries."""
    return results.summary()


def by_label(*runs):
    """The figures of some runs, by label."""
    return {metric.label.strip(): metric for metric in metrics(runs)}


def test_a_key_is_the_place_of_its_figure(runs):
    """What ``--json`` has there is the figure, of every run; and every key is there once."""
    found = [metric for metric in metrics(runs) if metric.key != "path"]
    for run in runs:
        record = dotted(document(run))
        for metric in found:
            value = metric.of(run)
            if value is not None and value.mean is not None:
                assert record[metric.key] == value.mean, metric.label
    told = [metric.key for metric in found if any(metric.of(run) for run in runs)]
    assert len(set(told)) == len(told)
    assert {
        "accuracy.global.value", "virtual_s", "bytes", "flops", "joules", "target.global.t_s",
        "target.personal.joules", "wasted.bytes", "wasted.joules", "waiting_joules",
        "batteries.pixel-6.days", "costs.carbon.whole.server.amount",
        "costs.carbon.to_target.global.total.amount",
        "fairness", "host_s", "peak_bytes", "spent.late.jobs", "joules_by_phase.compute", "training_loss",
    } <= {*told}  # fmt: skip
    for start in ("measures.class-accuracy.figures.", "path.", "bytes_by_part."):
        assert any(key.startswith(start) for key in told), start


@pytest.mark.parametrize(
    ("label", "unit", "better"),
    [
        ("accuracy, global", "share", "higher"),
        ("virtual time", "s", "lower"),
        ("bytes to 5%", "B", "lower"),
        ("work of all clients", "FLOP", "lower"),
        ("wasted energy", "J", "lower"),
        ("CO2e", "g", "lower"),
        ("one charge lasts", "days", "higher"),
        ("fairness of participation", "index", "higher"),
        ("jobs late", "", ""),
        ("host time", "s", ""),
    ],
)
def test_units_and_directions(runs, label, unit, better):
    """Each figure has the unit of its text, and says which one is ahead."""
    found = by_label(*runs)[label]
    assert (found.unit, found.better) == (unit, better)


def test_what_is_judged():
    """Accuracies, what the target took the first model, then all; the second model's stand behind."""
    reached = took(1.0, wasted=Waste(2, 3.0, 4.0))
    run = to_target(run_of(accuracy=BOTH), reached, personal=reached)
    found = [metric for metric in metrics([run]) if metric.judged]
    to = ("time", "bytes", "energy", "wasted bytes", "wasted energy")
    assert [(one.label, one.main) for one in found] == [
        ("accuracy, global", True),
        ("accuracy, personal", True),
        *((f"{what} to 90%", True) for what in to),
        *((what, True) for what in ("virtual time", "bytes of all clients", "energy of all clients")),
        *((f"{what} to 90%, personal", False) for what in to),
    ]
    assert [one.key for one in found if one.cost] == ["virtual_s", "bytes", "joules"]
    # Where a run lacks the global model, the other one is the main one.
    lacking = replace(run, accuracy={"personal": BOTH["personal"]}, target=Target(0.9, None, reached))
    assert (main_model([run]), main_model([run, lacking]), main_model([])) == ("global", "personal", "global")
    (time,) = [one for one in metrics([run, lacking]) if one.label == "time to 90%"]
    assert (time.model, time.main) == ("personal", True)


def test_a_run_that_wasted_nothing_has_no_rows_of_waste(monkeypatch):
    """Beside one that wasted something it has zeros."""
    monkeypatch.setenv("EDGEFL_PATH", str(TOYS))
    clean, wasteful = dry("server.policy=sync"), dry("server.policy=toy")
    assert not {*WASTED, "jobs late"} & by_label(clean).keys()
    found = by_label(clean, wasteful)
    assert [found[label].of(clean) for label in WASTED[:3]] == [
        Value(0.0, whole=clean.bytes), Value(0.0, whole=clean.flops), Value(0.0, whole=clean.client_s)
    ]  # fmt: skip
    assert found["wasted work"].of(wasteful) == Value(wasteful.wasted.flops, whole=wasteful.flops)
    assert found["wasted energy"].of(wasteful).mean == wasteful.wasted.joules > 0
    jobs = [found[f"jobs {ending}"].of(wasteful).mean for ending in wasteful.spent]
    assert (jobs, sum(jobs[1:])) == ([one.jobs for one in wasteful.spent.values()], wasteful.wasted.jobs)


def test_what_was_wasted_until_the_target_has_rows_where_there_was_some(runs):
    """Else none."""
    assert {"wasted bytes to 5%", "wasted energy to 5%, personal"} <= by_label(*runs).keys()
    assert "wasted bytes to 90%" not in by_label(to_target(run_of(0.9), took(1.0)))


@pytest.mark.parametrize("models", [["global"], ["personal"], ["global", "personal"]])
def test_rows_follow_what_was_evaluated(models):
    """Accuracies, and all quantities to the target, of those models alone."""
    reached = {"found" if one == "global" else "personal": took(1.0) for one in models}
    run = run_of(accuracy={one: BOTH[one] for one in models})
    found = by_label(to_target(run, reached.get("found"), personal=reached.get("personal")))
    assert [label for label in found if label.startswith("accuracy")] == [
        f"accuracy, {one}" for one in models
    ]
    assert [label for label in found if " to 90%" in label] == [
        f"{what} to 90%{'' if place == 0 else ', personal'}"
        for place, _ in enumerate(models)
        for what in ("time", "rounds", "bytes", "work", "energy")
    ]
    assert not {label for label in by_label(run_of()) if "accuracy" in label or " to " in label}


def test_what_was_not_reached_is_told_apart_from_what_does_not_apply():
    """A model that was not evaluated has no target to reach; where none reached it, that is said once."""
    run = to_target(run_of(accuracy=BOTH), None, personal=took(2.0))
    other = to_target(run_of(0.9), None)
    found = by_label(run, other)
    for what in ("time", "rounds", "bytes", "work", "energy"):
        assert found[f"{what} to 90%"].of(other) == NOT_REACHED
        assert found[f"{what} to 90%, personal"].of(other) is None
    assert found["time to 90%, personal"].of(run).mean == 2.0
    judged = [one.label for one in metrics([run, other]) if one.judged and one.model == "global"]
    assert judged == ["accuracy, global", "time to 90%"]


def test_what_it_took_has_a_lower_end():
    """Below the time, the time of the last evaluation below the target, if there was one."""
    below = Evaluated(1.0, 1, 5, 5, EnergyTotal(1.0, 20, 20), 0.8, Waste(0, 0.0, 0.0))
    runs = [to_target(run_of(0.9), one) for one in (took(2.0, last_below=below), took(2.0), None)]
    labels = [metric.label for metric in metrics(runs)]
    found = by_label(*runs)["last evaluation below"]
    assert labels[labels.index(found.label) - 1] == "time to 90%"
    assert [found.of(run) for run in runs] == [Value(1.0), None, None]
    assert found.value(runs) == Value(1.0, runs=1, of=3)
    assert "last evaluation below" not in by_label(*runs[1:])


@pytest.mark.parametrize(
    ("target", "words"),
    [(0.995, "99.5%"), (0.9999999, "99.99999%"), (0.07, "7%"), (1.0, "100%"), (0.1, "10%"), (1e-5, "0.001%")],
)
def test_targets_are_told_with_all_their_digits(target, words):
    """A target below 100% is not "100%"; runs with several have their own."""
    run = to_target(run_of(0.9), None, target)
    assert target_name([run]) == words
    assert target_name([run, to_target(run_of(0.9), None, 0.5)]) == "its target"
    assert target_name([run_of(0.9)]) == ""


def test_an_energy_of_some_clients_has_a_row_of_its_own():
    """Beside that of all, which is unknown; to a target too."""
    some = EnergyTotal(3.0, 19, 20)
    run = to_target(run_of(0.9, energy=some), took(2.0, energy=some))
    found = metrics([run])
    for label in ("energy of all clients", "energy to 90%"):
        place = [one.label for one in found].index(label)
        whole, part = found[place : place + 2]
        assert whole.of(run).mean is None
        assert part.of(run) == Value(3.0, known=(19, 19), clients=(20, 20))
        assert (part.is_known_part, part.judged, part.better) == (True, False, "")


def test_personal_models_of_some_clients_have_their_number():
    """And how many of these never trained; where all were evaluated and have trained, neither."""

    def of(clients, untrained):
        score = Accuracy(0.5, None, 1, 0.1, clients, untrained)
        run = run_of(accuracy={"personal": score})
        found = by_label(run)
        rows = [found.get(label) for label in ("clients evaluated", "of them untrained")]
        return [one and one.of(run).mean for one in rows]

    assert of(20, 0) == [None, None]
    assert of(20, 3) == [20, 3]
    assert of(18, 0) == [18, 0]


def test_a_model_before_the_exchanges_at_the_end_has_a_row():
    """By the name of the first of them."""
    run = run_of(accuracy={"global": Accuracy(0.9, 0.7, 1, None, None, None)}, after_rounds="tune")
    assert by_label(run)["before tune"].of(run) == Value(0.7)


def test_participation_counts_all_admitted_clients():
    """Two of twenty clients with one job each: Jain's index is 2^2 / (20 x 2)."""
    run = dry("server.participants=2", "server.rounds=1")
    found = by_label(run)
    assert found["fairness of participation"].of(run) == Value(0.1)
    assert found["clients that were merged"].of(run) == Value(2)
    assert "fairness of participation" not in by_label(dry("server.participants=20"))


def test_the_devices_that_were_waited_for_most_have_rows(runs):
    """The first of them by name; of each its share of the time, and the parts of it."""
    run = runs[0]
    found = by_label(run)
    devices = [name for name in run.path if name != NOBODY]
    first = run.path[devices[0]]
    assert found["waited most for"].value([run]) == Value(first.seconds, whole=run.virtual_s, name=devices[0])
    labels = [metric.label for metric in metrics([run])]
    start = labels.index(f"critical path: {devices[0]}")
    assert labels[start + 1 : start + 4] == ["  download", "  compute", "  upload"]
    upload = metrics([run])[start + 3]
    assert upload.of(run) == Value(first.upload_s, whole=first.seconds)
    assert upload.of(run_of(path={})).mean == 0
    assert not [label for label in by_label(run_of(path={})) if "wait" in label and "idle" not in label]


def test_what_was_waited_for_adds_up():
    """The critical path is the run's time, of whomever it was spent on; its parts are each one's."""
    run = dry("fleet=city-phones", "server.policy=sync")
    assert len(run.path) > 1
    seconds = [one.seconds for name, one in run.path.items() if name != NOBODY]
    assert sum(one.seconds for one in run.path.values()) == pytest.approx(run.virtual_s)
    assert seconds == sorted(seconds, reverse=True)
    for one in run.path.values():
        assert min(one.download_s, one.compute_s, one.upload_s) >= 0


def test_idle_while_waiting_is_a_row_of_its_own():
    """Its joules, and their ratio to the energy that they are no part of; of a run's phases it is none."""
    run = run_of(waiting_joules=3.0)
    found = by_label(run)["idle while waiting, apart"]
    assert found.of(run) == Value(3.0, whole=10.0)
    assert "idle while waiting, apart" not in by_label(run_of(waiting_joules=0.0))
    lacking = run_of(energy=EnergyTotal(None, 0, 20), waiting_joules=None)
    assert found.of(lacking).mean is None
    assert 0 < dry().waiting_joules < dry().energy.joules
    assert "waiting" not in dry().joules_by_phase


def test_a_run_without_clients_has_no_shares():
    """Everybody is refused: nothing was spent or wasted, and its shares are of nothing."""
    run = dry(
        "model=resnet18", "task.dataset=cifar10", "fleet={members: [{device: stm32f746, link: ethernet}]}"
    )
    assert (run.status, run.jobs, run.refused, run.utilisation) == ("failed", 0, 20, None)
    found = by_label(run)
    assert found["clients refused"].of(run) == Value(20)
    assert [found[label].of(run) for label in ("utilisation", "energy of all clients")] == [None, None]


def test_a_figure_over_seeds_is_their_mean():
    """Traffic by part, whom was waited for, and energy that one run knows of fewer clients."""
    one, two = seeds("a", [0.5, 0.6])
    less = EnergyTotal(8.0, 19, 20)
    found = by_label(one, replace(two, energy=less))
    runs = [one, replace(two, energy=less)]
    assert found["accuracy, global"].value(runs).mean == pytest.approx(0.55)
    value = found["energy of all clients"].value(runs)
    assert (value.mean, value.runs, value.of, value.part) == (10.0, 1, 2, 8.0)
    (part,) = [one for one in metrics(runs) if one.key == "joules known"]
    assert part.value(runs) == Value(8.0, runs=1, of=2, known=(19, 19), clients=(20, 20))
