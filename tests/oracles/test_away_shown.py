"""When the timeline's file shows clients as away, on plans that a reader can check on paper."""

from __future__ import annotations

from fleets import valid
from plans import plan, prices
from recorded import recorded
from traced import read_back

from edgefl.core import catalogue
from edgefl.show.perfetto.build import write_timeline


def lanes(path, table, **settings):
    """Each client's slices below a job as ``name: from to``, in seconds; jobs are ``train: from to``."""
    plan_ = plan([table], **settings)
    with recorded(plan_) as reader:
        write_timeline(reader, path / "run.pftrace", plan=plan_, note=lambda _: None)
    found = read_back((path / "run.pftrace").read_bytes())
    clients = {name: [] for name in found.tracks if name.startswith("client ")}
    for one in found.slices:
        if one.track in clients:
            clients[one.track].append(f"{one.name}: {one.from_ns / 1e9:g} {one.to_ns / 1e9:g}")
    return [*clients.values()]


def there(rows, repeat=None):
    """Availability in listed intervals."""
    return valid(catalogue.load("availability", "intervals").Params, rows=rows, repeat=repeat)


def job(work_s):
    """One exchange: a second down, so many of work, and a second up."""
    return prices("train", len(work_s), down_s=1, compute_s=work_s, up_s=1)


def test_a_client_that_pauses_is_away_inside_a_stage(tmp_path):
    """Its work of 3 s is broken by 7 s away."""
    (own,) = lanes(tmp_path, job([3]), availability=there("0,0,2 0,9,99"), on_leave="pause")
    assert own == ["train: 0 12", "down: 0 1", "compute: 1 11", "away: 2 9", "up: 11 12"]


def test_a_battery_that_a_job_drained_is_filled_before_the_next(tmp_path):
    """Of 100 J, a job of 22 s takes 80 J; a charger of 1 W needs 30 s until half of them are there.

    When the second job ends, 72 J are, less than it takes: the charger needs 50 s.
    """
    charging = valid(
        catalogue.load("availability", "charging").Params,
        capacity=100, charger=1, minimum=0.5, initial=(1, 1), spread=0, days=1,
    )  # fmt: skip
    table = prices("train", 1, down_s=1, compute_s=[20], up_s=1, compute_w=4)
    (own,) = lanes(tmp_path, table, availability=charging, rounds=3)
    assert [line for line in own if line.startswith(("train", "away"))] == [
        "train: 0 22", "away: 22 52", "train: 52 74", "away: 74 124", "train: 124 146",
    ]  # fmt: skip
