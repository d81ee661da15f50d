"""Tables of runs: what was wasted, how busy clients were, and what stopped a run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from commands import run_command, shown
from compared import every
from edgefl.show.averages import Compared, seeds_together
from edgefl.show.comparison import Comparison, dry_runs
from edgefl.show.rows import rows
from edgefl.show.targets import BELOW
from toys import TOYS
from unfinished import UNPOWERED

from edgefl.analysis.explain.path import NOBODY, PathTime
from edgefl.analysis.reached import Evaluated, Reached, Target, Waste
from edgefl.analysis.settings import dotted
from edgefl.analysis.summary import Accuracy
from edgefl.core.documents import document
from edgefl.core.units import show_joules, show_seconds, show_share
from edgefl.runs.dry import dry_run

WASTED = [
    "jobs merged / late / lost / cut",
    "wasted bytes",
    "wasted work",
    "wasted energy",
    "wasted client time",
]


@pytest.fixture(autouse=True, scope="module")
def own_policies():
    """The toy policy is a user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGEFL_PATH", str(TOYS))
        yield


def dry(policy, *overrides):
    (found,) = dry_run("quickstart", ["sweep=null", f"server.policy={policy}", *overrides])
    return found


def cells(table, width=100):
    """The table's cells by label."""
    lines = [line.split("│") for line in shown(table, width).splitlines() if "│" in line]
    return {label.strip(): [cell.strip() for cell in rest] for label, *rest in lines}


def test_a_run_that_wasted_nothing_has_no_rows_of_waste():
    """Beside one that wasted something it has zeros."""
    clean, wasteful = dry("sync").summary, dry("toy").summary
    assert not set(WASTED) & cells(every([clean])).keys()
    rows = cells(every([clean, wasteful]))
    assert [rows[label][0] for label in WASTED[1:]] == ["0 B", "0 FLOP", "0 J", "0 s"]
    assert rows[WASTED[0]] == [
        f"{clean.jobs} / 0 / 0 / 0",
        " / ".join(str(part.jobs) for part in wasteful.spent.values()),
    ]
    share = wasteful.wasted.flops / wasteful.flops
    assert rows["wasted work"][1].endswith(f"({share:.0%})")
    assert rows["utilisation"][1] == f"{wasteful.utilisation:.0%}"


def test_participation_counts_all_admitted_clients():
    """Two of twenty clients with one job each: Jain's index is 2^2 / (20 x 2)."""
    found = dry("sync", "server.participants=2", "server.rounds=1").summary
    assert (found.merged_clients, found.fairness) == (2, 0.1)
    assert cells(every([found]))["participation, fairness"] == ["2 of 20, 0.10"]
    assert "participation, fairness" not in cells(every([dry("sync", "server.participants=20").summary]))


def test_the_devices_with_most_of_the_critical_path_have_rows():
    """Seconds, their share of the virtual time, and its stages; zeros where a run has no such device."""
    found, alone = dry("sync").summary, dry("sync", "fleet.members=[{device: laptop-cpu, link: 5g}]").summary
    device, first = next(iter(found.path.items()))
    rows = cells(every([found, alone]))
    assert list(alone.path) == ["laptop-cpu"]
    share = show_share(first.seconds / found.virtual_s)
    assert rows[f"critical path: {device}"] == [f"{show_seconds(first.seconds)} ({share})", "0 s"]
    assert rows["critical path: laptop-cpu"][0] == "0 s"
    path = alone.path["laptop-cpu"]
    shares = (show_share(one / path.seconds) for one in (path.download_s, path.compute_s, path.upload_s))
    assert cells(every([alone]))["download/compute/upload"] == [" / ".join(shares)]


def test_three_devices_have_rows_of_the_critical_path():
    """Those with most; a timer is no device, and where nothing else was waited for there is no row."""
    found = dry("sync").summary
    path = {
        name: PathTime(seconds, 0, seconds, 0) for seconds, name in enumerate(("b", "d", NOBODY, "a", "c"))
    }
    shown = cells(every([replace(found, path=path)]))
    assert [label for label in shown if label.startswith("critical path: ")] == [
        f"critical path: {device}" for device in ("c", "a", "d")
    ]
    timed = dry("{name: deadline, seconds: 1 ms}").summary
    assert list(timed.path) == [NOBODY]
    assert not [label for label in cells(every([timed])) if label.startswith("critical path: ")]


def test_a_run_without_clients_has_no_shares():
    """Everybody is refused: nothing was spent or wasted, and its shares are of nothing."""
    fleet = "fleet={members: [{device: stm32f746, link: ethernet}]}"
    found = dry("sync", "model=resnet18", "task.dataset=cifar10", fleet).summary
    assert (found.status, found.jobs, found.wasted.joules) == ("failed", 0, 0)
    assert (found.utilisation, found.fairness, found.energy.joules) == (None, None, None)
    assert cells(every([found]))["utilisation"] == ["-"]


@pytest.mark.usefixtures("unfinished")
def test_a_wasted_energy_that_nobody_knows_is_unknown():
    """As the energy of all clients is."""
    found = dry("toy", f"fleet={{members: [{{device: {UNPOWERED}, link: 4g}}]}}").summary
    assert found.wasted.joules is None
    assert cells(every([found]))["wasted energy"] == ["unknown"]


def test_what_stopped_a_run_is_told_unless_it_is_its_rounds():
    """A run beside one that was stopped early says that its rounds were over."""
    one = dry("sync").summary
    assert "stopped by" not in cells(every([one, replace(one, stopped="rounds")]))
    rows = cells(every([replace(one, name="early", stopped="time"), replace(one, stopped="rounds")]))
    assert rows["stopped by"] == ["time", "rounds"]


def test_a_dry_run_shows_waste_below_its_row():
    """Only of runs that wasted something; no line is wider than the terminal."""
    clean, wasteful = dry("sync"), dry("toy")
    assert not set(WASTED) & cells(dry_runs([clean])).keys()
    found = cells(dry_runs([clean, wasteful]))
    assert set(WASTED) <= found.keys()
    assert {len(found[label]) for label in WASTED} == {1}
    for width in (80, 100):
        assert max(map(len, shown(dry_runs([wasteful] * 4), width).splitlines())) <= width


def test_check_prints_json(capsys):
    """The summary's figures, and notes, of every run; errors go elsewhere."""
    status, out, _ = run_command(capsys, "check", "quickstart", "--set", "sweep=null", "--json")
    (found,) = json.loads(out)["runs"]
    assert status == 0
    assert (found["scenario"], found["rounds"], found["stopped"]) == ("quickstart", 30, "rounds")
    assert list(found["spent"]) == ["merged", "late", "lost", "cut"]
    assert found["spent"]["merged"]["jobs"] == found["jobs"] == 300
    status, out, _ = run_command(capsys, "check", "nonsense", "--json")
    assert (status, json.loads(out)) == (2, {"runs": []})


NONE = Waste(0, 0.0, 0.0)
QUANTITIES = ("rounds", "time", "bytes", "work", "energy")


def scored(models, reached=(), *, bracketed=False, **changes):
    """A run that evaluated some models, of which some reached the target."""
    found = dry("sync").summary
    accuracy = {model: Accuracy(0.95, None, 3, 0.02, 20, 0) for model in models}
    below = Evaluated(1.0, 2, 500, 2_500_000, found.energy, accuracy=0.85, wasted=NONE) if bracketed else None
    took = Reached(2.0, 3, 1000, 5_000_000, found.energy, accuracy=0.95, wasted=NONE, last_below=below)
    target = Target(0.9, *(took if model in reached else None for model in ("global", "personal")))
    return replace(found, accuracy=accuracy, target=target, **changes)


@pytest.mark.parametrize("models", [["global"], ["personal"], ["global", "personal"]])
def test_rows_follow_what_was_evaluated(models):
    """Accuracies, and all quantities to the target, of those models alone."""
    found = cells(every([scored(models, reached=models)]))
    accuracies = [label for label in found if label.startswith("accuracy")]
    assert accuracies == [f"accuracy, {model}" for model in models]
    assert [label for label in found if " to 90%" in label] == [
        f"{quantity} to 90%, {model}" for model in models for quantity in QUANTITIES
    ]
    assert found[f"bytes to 90%, {models[-1]}"] == ["1 kB"]
    assert found[f"work to 90%, {models[-1]}"] == ["5 MFLOP"]


def test_what_was_not_reached_is_told_apart_from_what_does_not_apply():
    """A model that was not evaluated has no target to reach."""
    found = cells(every([scored(["global", "personal"], ["personal"]), scored(["global"], name="other")]))
    for quantity in QUANTITIES:
        assert found[f"{quantity} to 90%, global"] == ["not reached", "not reached"]
        assert found[f"{quantity} to 90%, personal"][1] == "-"
    assert found["time to 90%, personal"][0] == "2 s"


def test_a_run_without_training_has_no_rows_of_accuracy():
    """Nor of targets."""
    assert not [label for label in cells(every([dry("sync").summary])) if "accuracy" in label]


def test_a_reason_is_given_once():
    """`run` tells it when a run fails; `compare` has nobody else to tell it."""
    failed = replace(dry("sync").summary, status="failed", reason="a loss of [/] nan")
    assert "quickstart failed: a loss of [/] nan\n" in shown(every([failed]), 100)
    assert "a loss" not in shown(every([failed], reasons=False), 100)
    assert "quickstart failed\n" in shown(every([failed], reasons=False), 100)


def seeds(number, **settings):
    """Runs that differ in their seeds, with accuracies and times that do."""
    return [
        scored(
            ["global", "personal"],
            ["global"] if seed else [],
            name=f"fedavg, seed {seed}",
            seed=seed,
            settings={"seed": seed, "method": "fedavg", **settings},
            fleet_id="a",
            virtual_s=10.0 + seed,
            virtual_s_between=None,
            joules_between=None,
        )
        for seed in range(number)
    ]


def test_seeds_are_averaged():
    """The mean and its 95% interval, which say that they are over seeds."""
    table = every([*seeds(3), *(replace(run, name="other") for run in seeds(1, **{"local.epochs": 2}))])
    found = cells(table)
    text = shown(table, 100)
    assert "3 seeds ┃" in text
    assert "fedavg ┃" in text
    assert found["virtual time"] == ["11 s ±2.48 s", "10 s"]
    assert found["accuracy, personal"] == ["95.0%", "95.0%"]
    assert found["deviation over clients"] == ["2.0%", "2.0%"]
    assert found["time to 90%, global"] == ["2 s (2 of 3)", "not reached"]
    assert found["seed"] == ["0, 1, 2", "0"]
    assert "± 95% interval of the mean over seeds (Student's t, n - 1)\n" in text
    assert "± standard deviation over clients, of all that were evaluated (n)\n" in shown(
        every(seeds(1)), 100
    )


def test_counts_of_several_seeds_are_a_range():
    """Of clients that took part, and of those that never trained; equal counts are one."""
    runs = [
        replace(
            run,
            merged_clients=merged,
            fairness=0.5,
            accuracy={"personal": Accuracy(0.5, None, 1, 0.1, 20, untrained)},
        )
        for run, merged, untrained in zip(seeds(3), (14, 16, 15), (0, 0, 3), strict=True)
    ]
    found = cells(every(runs))
    assert found["participation, fairness"] == ["14 to 16 of 20, 0.50"]
    assert found["of clients"] == ["20 of 20, 0 to 3 untrained"]
    found = cells(every(runs[:1]))
    assert found["participation, fairness"] == ["14 of 20, 0.50"]
    assert "of clients" not in found


BASE = {"local.epochs": 1, "method.name": "fedavg", "fleet": "home-lab"}
CHILLED = {"method.name": "flexchill", "method.temperature": 4.0}
INLINE = {
    "fleet.title": "A lab",
    "fleet.notes": "x",
    "fleet.members": [1],
    "fleet.link": "4g",
    "fleet.a.name": "b",
}


@pytest.mark.parametrize(
    ("without", "changes", "rows"),
    [
        ([], {"local.optimizer.clip_norm": 1.0}, {"local.optimizer.clip_norm": ["-", "1"]}),
        (["local.epochs"], {"local.steps": 5}, {"local.epochs": ["1", "-"], "local.steps": ["-", "5"]}),
        (
            ["local.epochs"],
            {"local.epochs.fit": 30.0},
            {"local.epochs": ["1", "-"], "local.epochs.fit": ["-", "30"]},
        ),
        (
            [],
            {"task.samples.name": "lognormal", "task.samples.mu": 4},
            {"task.samples.name": ["-", "lognormal"], "task.samples.mu": ["-", "4"]},
        ),
        ([], CHILLED, {"method.name": ["fedavg", "flexchill"]}),
        ([], {"fleet.links.bus.title": "x", "fleet.link": "4g"}, {"fleet.link": ["-", "4g"]}),
        (["fleet"], INLINE, {"fleet": ["home-lab", "A lab"], "fleet.link": ["-", "4g"]}),
    ],
)
def test_what_differs_is_told(without, changes, rows):
    """Also what only one run sets; not the parameters of another component."""
    one, two = (scored(["global"], name=name, settings=BASE) for name in ("one", "two"))
    two = replace(two, settings={key: BASE[key] for key in BASE if key not in without} | changes)
    found = cells(every([one, two]))
    assert {key: found[key] for key in found if "." in key or key == "fleet"} == rows


def test_quantities_are_averaged_over_seeds():
    """Traffic by part, what was waited for, and energy that one run knows of fewer clients."""
    device, path = next(iter(dry("sync").summary.path.items()))
    triple = replace(path, seconds=3 * path.seconds)
    one, two = (
        replace(run, bytes_by_part={"weights": (moved, 100)}, path={device: waited}, virtual_s=moved)
        for run, moved, waited in zip(seeds(2), (100, 300), (path, triple), strict=True)
    )
    less = two.energy._replace(energy_known=two.energy.energy_clients - 1)
    found = cells(every([one, replace(two, energy=less)]))
    assert found["weights, down / up"] == ["200 B / 100 B"]
    mean_s = 2 * path.seconds
    assert found[f"critical path: {device}"] == [f"{show_seconds(mean_s)} ({show_share(mean_s / 200)})"]
    clients = two.energy.energy_clients
    assert found["energy of all clients"][0].endswith("(1 of 2)")
    assert found["known part"] == [f"{show_joules(two.energy.joules)} ({clients - 1} of {clients} clients)"]


def test_idle_while_waiting_is_a_row_of_its_own():
    """Its joules, and their ratio to the energy that they are no part of; of a run's phases it is none."""
    found = dry("sync")
    run = replace(
        found.summary,
        energy=found.summary.energy._replace(joules=10.0),
        waiting_joules=3.0,
        virtual_s_between=None,
        joules_between=None,
    )
    assert cells(every([run]))["idle while waiting"] == ["3 J (+30%)"]
    assert cells(every([replace(run, waiting_joules=0.0)])).keys().isdisjoint({"idle while waiting"})
    both = cells(every([run, replace(run, name="other", waiting_joules=None)]))
    assert both["idle while waiting"] == ["3 J (+30%)", "unknown"]
    assert 0 < found.summary.waiting_joules < found.summary.energy.joules
    assert "waiting" not in found.summary.joules_by_phase
    shown_ = shown(dry_runs([replace(found, summary=run)]), 120)
    assert "idle while waiting" in shown_
    assert "3 J" in shown_


def test_a_model_without_an_accuracy_before_the_end_has_a_dash():
    """The other one has its own."""
    run = scored(["global", "personal"], after_rounds="calibrate")
    before = {**run.accuracy, "global": replace(run.accuracy["global"], before=0.5)}
    before["personal"] = replace(before["personal"], before=None)
    found = cells(every([replace(run, accuracy=before)]))
    assert found["before calibrate, both"] == ["50.0% / -"]


def test_personal_accuracies_say_whom_they_cover():
    """Unless it is all clients, and all of them trained."""
    run = scored(["personal"])
    for covered, says in (({"clients": 19}, "19 of 20, 0 untrained"), ({"untrained": 2}, "20 of 20, 2 untr")):
        part = {"personal": replace(run.accuracy["personal"], **covered)}
        (cell,) = cells(every([replace(run, accuracy=part)]))["of clients"]
        assert cell.startswith(says)
    assert "of clients" not in cells(every([run]))


def test_the_energy_to_a_target_says_how_many_clients_it_covers():
    """As that of a whole run does."""
    run = scored(["global"], ["global"])
    took = replace(run.target.global_, energy=run.energy._replace(energy_known=19))
    found = cells(every([replace(run, target=replace(run.target, global_=took))]))
    assert found["known part"] == [f"{show_joules(run.energy.joules)} (19 of 20 clients)"]
    assert found["energy to 90%, global"] == ["unknown"]


def test_targets_that_differ_have_a_row():
    """And the rows below are of each run's own."""
    one, two = scored(["global"], ["global"]), scored(["global"], ["global"], name="other")
    found = cells(every([one, replace(two, target=replace(two.target, accuracy=0.8))]))
    assert found["target"] == ["90%", "80%"]
    assert found["time to its target, global"] == ["2 s", "2 s"]


@pytest.mark.parametrize(
    ("target", "words"),
    [(0.995, "99.5%"), (0.9999999, "99.99999%"), (0.07, "7%"), (1.0, "100%"), (0.1, "10%"), (1e-5, "0.001%")],
)
def test_targets_are_told_with_all_their_digits(target, words):
    """A target below 100% is not "100%"."""
    run = scored(["global"], ["global"])
    assert f"time to {words}, global" in cells(
        every([replace(run, target=replace(run.target, accuracy=target))])
    )


def test_what_it_took_has_a_lower_end():
    """Below the time, the time of the last evaluation below the target, if there was one."""
    alone = scored(["global"], ["global"], bracketed=True)
    first = scored(["global"], ["global"], name="other")
    missed = scored(["global"], name="missed")
    found = [
        (row.label, [row.cell(one) for one in [Compared("", (run,)) for run in (alone, first, missed)]])
        for row in rows([Compared("", (run,)) for run in (alone, first, missed)])
    ]
    below = [(found[place - 1][0], values) for place, (label, values) in enumerate(found) if label == BELOW]
    assert below == [("time to 90%, global", ["1 s", "-", "-"])]
    assert not any(row.label == BELOW for row in rows([Compared("", (first,)), Compared("", (missed,))]))
    together = Compared("", (alone, first, missed))
    time = next(row for row in rows([together]) if row.label == BELOW)
    assert time.cell(together) == "1 s (1 of 3)"
    assert "to a target: until the first evaluation at or above it\n" in shown(every([alone]), 100)


def test_only_what_is_alike_is_averaged():
    """Not runs of other settings, fleets or models, of the same seed, or unfinished ones."""
    one, two = seeds(2)
    for other in (
        replace(two, settings={**two.settings, "method": "x"}),
        replace(two, fleet_id="b"),
        replace(two, status="running"),
        replace(two, settings=None),
        replace(two, accuracy={}),
        replace(two, seed=one.seed),
    ):
        assert [len(each.runs) for each in seeds_together([one, other])] == [1, 1]
    assert [len(each.runs) for each in seeds_together([one, two, one, two])] == [2, 2]


def test_the_document_has_every_run_and_the_averages():
    """Numbers by dotted key, and the settings that differ in the order of the runs."""
    runs = [*seeds(2), *seeds(1, **{"local.epochs": 2})]
    found = document(Comparison(runs))
    (average,) = found["averages"]
    assert len(found["runs"]) == 3
    assert (average["name"], average["seeds"]) == ("fedavg", [0, 1])
    assert average["figures"]["virtual_s"] == {
        "mean": 10.5,
        "deviation_over_seeds": pytest.approx(0.5**0.5),
        "runs": 2,
        "interval_95": {
            "low": pytest.approx(10.5 - 12.7062 / 2, rel=1e-5),
            "high": pytest.approx(10.5 + 12.7062 / 2, rel=1e-5),
        },
    }
    assert average["figures"]["target.global.t_s"]["runs"] == 1
    assert "seed" not in average["figures"]
    assert found["differences"] == {"seed": [0, 1, 0], "local.epochs": [None, None, 2]}


def test_settings_that_differ_are_shown_by_key():
    """One row a setting; what names say, and parameters that another component lacks, are left out."""
    names = ("fedavg", "flexchill", "spherefed")
    each = [
        {"method.name": "fedavg", "local.optimizer.lr": 0.5},
        {"method.name": "flexchill", "method.temperature": 0.5, "local.optimizer.lr": 0.5},
        {"method.name": "spherefed", "method.base.name": "fedavg", "local.optimizer.lr": 10.0},
    ]
    runs = [
        replace(dry("sync").summary, name=name, settings={"seed": 7, **settings}, fleet_id="a")
        for name, settings in zip(names, each, strict=True)
    ]
    found = cells(every(runs))
    assert found["local.optimizer.lr"] == ["0.5", "0.5", "10"]
    assert not {"method.name", "method.temperature", "method.base.name", "seed"} & found.keys()
    renamed = [replace(run, name=f"run {place}") for place, run in enumerate(runs)]
    assert cells(every(renamed))["method.name"] == list(names)


def test_parameters_of_one_name_belong_to_their_component():
    """What runs of one method differ in is shown; that two methods have a parameter of one name is not."""
    each = [
        {"method.name": "fedavg"},
        {"method.name": "fedprox", "method.mu": 0.1, "method.base.name": "fedavg"},
        {"method.name": "moon", "method.mu": 1.0, "method.base.name": "fedavg"},
        {"method.name": "moon", "method.mu": 1.0, "method.base.name": "fedprox"},
    ]
    runs = [
        replace(dry("sync").summary, name=f"run {place}", settings=settings, fleet_id="a")
        for place, settings in enumerate(each)
    ]
    found = cells(every(runs))
    assert found["method.base.name"] == ["-", "fedavg", "fedavg", "fedprox"]
    assert "method.mu" not in found
    runs[3] = replace(runs[3], settings={**each[3], "method.mu": 5.0})
    assert cells(every(runs))["method.mu"] == ["-", "0.1", "1", "5"]


def test_keys_are_those_of_set():
    """A list stays whole."""
    scenario = {"method": {"name": "flexchill", "temperature": 4}, "evaluate": {"models": ["global"]}}
    assert dotted(scenario) == {
        "method.name": "flexchill",
        "method.temperature": 4,
        "evaluate.models": ["global"],
    }


def test_a_target_is_told_as_it_was_given():
    """92.5% is not 92%."""
    run = dry("sync").summary
    run = replace(
        run, target=Target(0.925, None, None), accuracy={"global": Accuracy(0.9, None, 3, None, None, None)}
    )
    assert "time to 92.5%, global" in cells(every([run]))
