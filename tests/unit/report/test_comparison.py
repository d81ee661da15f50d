"""Tables of runs: what was wasted, how busy clients were, and what stopped a run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from commands import run_command, shown
from toys import TOYS

from edgefl.core.units import show_seconds
from edgefl.report.comparison import comparison, dry_runs
from edgefl.report.summary import Accuracy, Reached, Target
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
    assert not set(WASTED) & cells(comparison([clean])).keys()
    rows = cells(comparison([clean, wasteful]))
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
    assert cells(comparison([found]))["participation, fairness"] == ["2 of 20, 0.10"]
    assert "participation, fairness" not in cells(comparison([dry("sync", "server.participants=20").summary]))


def test_the_devices_that_were_waited_for_most_have_rows():
    """Seconds, their share of the virtual time, and the parts; a run on one device waited for none."""
    found, alone = dry("sync").summary, dry("sync", "fleet.members=[{device: laptop-cpu, link: 5g}]").summary
    first = found.waited_for_devices[0]
    rows = cells(comparison([found, alone]))
    assert alone.waited_for_devices == []
    assert rows[f"waited for {first.device}"] == [
        f"{show_seconds(first.lost.lost_s)} ({first.lost.lost_s / found.virtual_s:.0%})",
        "0 s",
    ]
    assert rows["link/compute/slowdown/jitter"][1] == "-"


def test_what_was_lost_is_the_sum_of_its_parts():
    """Of every client and device; all clients that were waited for are in the record, the worst first."""
    found = dry("sync", "fleet=city-phones").summary
    assert len(found.waited_for) > 3
    for waited in (found.waited_for, found.waited_for_devices):
        assert [one.lost.lost_s for one in waited] == sorted(
            (one.lost.lost_s for one in waited), reverse=True
        )
        for one in waited:
            lost = one.lost
            parts = lost.link_s, lost.compute_s, lost.slowdown_s, lost.jitter_s, lost.away_s
            assert min(parts) >= 0
            assert sum(parts) == pytest.approx(lost.lost_s)
            assert 0 < lost.others_idle < 1
            assert lost.lost_s < found.virtual_s
    assert sum(one.lost.merges for one in found.waited_for) == found.rounds


def test_a_run_without_clients_has_no_shares():
    """Everybody is refused: nothing was spent or wasted, and its shares are of nothing."""
    fleet = "fleet={members: [{device: stm32f746, link: ethernet}]}"
    found = dry("sync", "model=resnet18", "task.dataset=cifar10", fleet).summary
    assert (found.status, found.jobs, found.wasted.joules) == ("failed", 0, 0)
    assert (found.utilisation, found.fairness, found.energy.joules) == (None, None, None)
    assert cells(comparison([found]))["utilisation"] == ["-"]


def test_a_wasted_energy_that_nobody_knows_is_unknown():
    """As the energy of all clients is."""
    found = dry("toy", "fleet=city-phones").summary
    assert found.wasted.joules is None
    assert cells(comparison([found]))["wasted energy"] == ["unknown"]


def test_what_stopped_a_run_is_told_unless_it_is_its_rounds():
    """A run beside one that was stopped early says that its rounds were over."""
    one = dry("sync").summary
    assert "stopped by" not in cells(comparison([one, replace(one, stopped="rounds")]))
    rows = cells(comparison([replace(one, name="early", stopped="time"), replace(one, stopped="rounds")]))
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


@pytest.mark.parametrize(
    ("models", "rows"),
    [
        (["global"], ["time, global", "bytes, global", "energy, global"]),
        (["global", "personal"], ["time, global", "time, personal", "bytes, personal", "energy, personal"]),
    ],
)
def test_what_a_target_took_is_told_of_what_was_evaluated(models, rows):
    """Traffic and energy are those of personal models, or of the global one where it alone is evaluated."""
    found = dry("sync").summary
    accuracy = dict.fromkeys(models, Accuracy(0.95, None, 3, None, 20, 0))
    reached = Reached(t_s=2.0, round=3, bytes=1000, energy=found.energy)
    target = Target(0.9, reached, reached if "personal" in models else None)
    shown_rows = cells(comparison([replace(found, accuracy=accuracy, target=target)]))
    assert [label.replace(" to 90%", "") for label in shown_rows if " to 90%" in label] == rows
    assert shown_rows[f"bytes to 90%, {models[-1]}"] == ["1 kB"]
