"""``batch_size: fit``: the largest batch that the fleet holds, and the refusals."""

from __future__ import annotations

import math

import pytest

from edgefl.core.errors import ScenarioError, UserError
from edgefl.planning.costs import MARGIN
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs import drafts

BOARD = """
title: a board with {memory} of memory
category: sbc
peak:
  fp32: {{value: 1 GFLOP/s, status: assumed, source: a test}}
  fp16: {{value: 2 GFLOP/s, status: assumed, source: a test}}
efficiency:
  dense: {{value: 1.0, status: assumed, source: a test}}
  depthwise: {{value: 1.0, status: assumed, source: a test}}
  elementwise: {{value: 1.0, status: assumed, source: a test}}
memory_bandwidth: {{value: 1 GB/s, status: assumed, source: a test}}
launch_overhead: {{value: 0 s, status: assumed, source: a test}}
memory: {memory_field}
reserved_memory: {{value: 0 B, status: assumed, source: a test}}
power:
  idle: {{status: unknown, source: a test}}
  active: {{status: unknown, source: a test}}
"""


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """A function that makes a fleet of boards with these memories; None is an unknown one."""
    (tmp_path / "devices").mkdir()
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))

    def make(*memories, dtype="fp32"):
        members = []
        for place, memory in enumerate(memories):
            known = f"{{value: {memory}, status: assumed, source: a test}}"
            text = known if memory else "{status: unknown, source: a test}"
            path = tmp_path / "devices" / f"board-{place}.yaml"
            path.write_text(BOARD.format(memory=memory, memory_field=text), encoding="utf-8")
            members.append({"device": f"board-{place}", "link": "wifi-pi4", "dtype": dtype})
        return {"like": "home-lab", "members": members}

    return make


def planned(fleet, clients=4, batch_size="fit", **changes):
    """The plan of a small perceptron on digits (1,437 samples, assumed balanced)."""
    scenario = {
        "task": {"dataset": "digits", "clients": clients, "partition": "iid"},
        "model": {"name": "mlp", "hidden": [8]},
        "method": "fedavg",
        "local": {"epochs": 1, "batch_size": batch_size},
        "fleet": fleet,
        **changes,
    }
    (draft,) = drafts(scenario)
    return plan(draft, DataAccess(need="nothing"))


def peak(batch_size, fleet):
    """The largest memory of any client at a batch size."""
    return int(planned(fleet, batch_size=batch_size).plan.price("train").peak_bytes.max())


def test_one_more_sample_would_not_fit_with_its_margin(fleet):
    """The number found leaves the smallest board its margin, and the next one does not."""
    boards = fleet("50 kB", "1 MB")
    found = planned(boards)
    size = found.plan.scenario.local.size
    assert (
        f"batch_size: fit is {size}, the largest that every device able to train can hold"
        in found.plan.assumed
    )
    assert 1 < size < 359
    assert found.plan.clients.admitted.all()
    assert peak(size, boards) * (1 + MARGIN) <= 50_000 < peak(size + 1, boards) * (1 + MARGIN)
    assert not any("more for libraries" in line for line in found.plan.assumed)


def test_a_method_that_reads_the_batch_size_is_given_the_number(fleet):
    """FedCurv's second phase takes as many steps as its 500 samples make batches of that size."""
    found = planned(fleet("100 kB"), method="fedcurv")
    size = found.plan.scenario.local.size
    assert 1 < size < 359
    assert found.learning.methods[0].exchanges[0].work.phases[-1].passes.steps == math.ceil(500 / size)


def test_a_plan_tells_who_has_no_margin(fleet):
    """A board that holds the peak exactly has none; one that holds a fifth more has; neither is refused."""
    boards = fleet("1 MB")
    need = peak(8, boards)
    for memory, told in ((need, True), (need * 1.2, False)):
        found = planned(fleet(f"{math.ceil(memory)} B", "1 MB"), batch_size=8).plan
        assert found.clients.admitted.all()
        count = int((found.clients.device == 0).sum())
        line = f"memory of {count} clients (board-0) holds the traced peak, but not 20% more for libraries"
        assert (line in found.assumed) == told
    refused = planned(fleet(f"{need - 1} B"), batch_size=8).plan
    assert not refused.clients.admitted.any()
    assert not any("more for libraries" in line for line in refused.assumed)


def test_the_smallest_batch_may_have_no_margin(fleet):
    """A board that holds it at all is fitted with it."""
    need = peak(1, fleet("1 MB"))
    found = planned(fleet(f"{need} B")).plan
    assert found.scenario.local.size == 1
    assert found.clients.admitted.all()


def test_more_memory_takes_a_larger_batch_up_to_all_samples(fleet):
    """The batch grows with the smallest board, and ends at the largest client's samples."""
    sizes = [planned(fleet(memory)).plan.scenario.local.size for memory in ("30 kB", "60 kB", "1 GB")]
    assert sizes[0] < sizes[1] < sizes[2] == 360


def test_half_the_width_takes_twice_the_batch(fleet):
    """In fp16 everything takes half of the memory."""
    wide = planned(fleet("60 kB")).plan.scenario.local.size
    assert planned(fleet("30 kB", dtype="fp16")).plan.scenario.local.size == wide


def test_a_rest_of_one_must_fit_as_well(fleet):
    """A last batch of one sample joins the one before: no batch of any client is larger than what fits."""
    for memory in range(20, 60):
        boards = fleet(f"{memory} kB")
        assert planned(boards).plan.clients.admitted.all(), memory


def test_a_board_that_holds_no_sample_does_not_count(fleet):
    """Its clients are refused whatever the batch size; the others get the batch they can hold."""
    found = planned(fleet("1 kB", "50 kB")).plan
    assert found.scenario.local.size == planned(fleet("50 kB")).plan.scenario.local.size
    assert {found.clients.devices[found.clients.device[one.client]] for one in found.refusals} == {"board-0"}


def test_an_unusable_member_hides_no_other_of_its_device(fleet):
    """A board that is too small in fp32 alone counts with its fp16 members."""
    boards = fleet("10 kB")
    wide, narrow = boards["members"][0], {**boards["members"][0], "dtype": "fp16"}
    least = planned(boards | {"members": [narrow]}).plan.scenario.local.size
    assert planned(boards | {"members": [wide, narrow]}).plan.scenario.local.size <= least


def test_a_device_that_is_refused_anyway_does_not_count(fleet):
    """A Coral trains the last layer alone: what it could hold says nothing about the others' batch."""
    boards = fleet("60 kB")
    coral = {"device": "coral-edge-tpu", "link": "ethernet", "dtype": "int8"}
    both = planned(boards | {"members": [*boards["members"], coral]}).plan
    assert both.scenario.local.size == planned(boards).plan.scenario.local.size
    assert {one.device for one in both.refusals} == {"coral-edge-tpu"}


def test_norms_that_need_two_values_get_them(fleet):
    """A model that cannot train on one sample is fitted from two on."""
    model = {"name": "mobilenet-v2", "stem": "imagenet"}
    task = {"dataset": "cifar10", "clients": 4, "partition": "iid"}
    found = planned(fleet("200 MB"), model=model, task=task).plan
    assert found.scenario.local.size >= 2
    assert found.clients.admitted.all()
    with pytest.raises(UserError, match="a step of 'train' on a batch of 1 fails"):
        planned(fleet("200 MB"), batch_size=1, model=model, task=task)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ("1 kB", "not even a batch of 1 fits"),
        (None, "no device that can do the work has a known memory"),
    ],
)
def test_what_cannot_be_fitted_is_refused(fleet, memory, message):
    """One message with the numbers, at the batch size's place."""
    with pytest.raises(ScenarioError, match=message):
        planned(fleet(memory))


@pytest.mark.parametrize("batch_size", [0, -1, 1.5, "fitting", True])
def test_a_batch_size_is_a_number_or_fit(fleet, batch_size):
    """Anything else is refused with a message."""
    with pytest.raises(ScenarioError, match="or be 'fit'"):
        planned(fleet("1 MB"), batch_size=batch_size)


def test_the_number_is_part_of_the_run(fleet):
    """Two fleets that fit different batches have different run ids, as two batch sizes have."""
    fitted = planned(fleet("50 kB"))
    assert fitted.resolved["scenario"]["local"]["batch_size"] == fitted.plan.scenario.local.size
    same = planned(fleet("50 kB"), batch_size=fitted.plan.scenario.local.size)
    assert fitted.run_id == same.run_id
