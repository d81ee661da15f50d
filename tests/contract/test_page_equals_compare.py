"""What a page says of many kinds of runs is what ``edgefl compare --json`` says of them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest
import unfinished
from compared import rich
from hooks import Hooks
from paged import compared, means, paged

import edgefl

approx = partial(pytest.approx, rel=1e-12)


class _Stop(Hooks):
    """Interrupts a run after its first evaluation."""

    def evaluated(self, _):
        raise KeyboardInterrupt


def _stopped(out):
    with suppress(KeyboardInterrupt):
        edgefl.run("quickstart", overrides=SMALL, callbacks=_Stop(), out=out)


def _null(out, **changes):
    edgefl.run("quickstart", overrides={**SMALL, **changes}, engine="null", out=out)


SMALL = {"sweep": None, "task.clients": 4, "server.rounds": 3, "server.participants": 2}
STALE = {"participants": 3, "rounds": 4, "policy": {"name": "fedbuff", "buffer": 2}}
UNPOWERED, POWERED = (
    {"device": name, "link": "ethernet"} for name in (unfinished.UNPOWERED, "raspberry-pi-4b")
)
HIGH = {"target": 0.9999, "models": ["global", "personal"]}
KINDS = {
    "seeds": lambda out: rich(out, sweep={"method": ["fedavg", "fedclassavg"], "seed": [1, 2, 3]}),
    "asynchronous, target not reached": lambda out: rich(out, server=STALE, evaluate=HIGH),
    "some energies unknown": lambda out: _null(out, fleet={"members": [UNPOWERED, POWERED]}),
    "no energy known": lambda out: _null(out, fleet={"members": [UNPOWERED]}, sweep={"seed": [1, 2]}),
    "six runs that trained nothing": lambda out: _null(out, sweep={"server.rounds": [1, 2, 3, 4, 5, 6]}),
    "interrupted": _stopped,
}


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """(a page's records, what compare says)."""
    folder = tmp_path_factory.mktemp("equal")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGEFL_PATH", str(unfinished.write(folder / "devices")))
        KINDS[request.param](folder / "runs")
    return paged(folder / "runs"), compared(folder / "runs")


def test_what_groups_can_be_sorted_by_is_compares(both):
    """Each figure of a front, and the last point of each curve."""
    page, told = both
    found = [means(told, group) for group in page["groups"]]
    for key, figure in page["sweep"]["figures"].items():
        for own, value in zip(found, figure["values"], strict=True):
            # An energy of some of the clients is none of all.
            known = key != "joules" or own["energy_known"] == own["energy_clients"]
            assert value == (approx(own[key]) if known and own.get(key) is not None else None), key
    for one in page["curves"]:
        own = found[one["group"]]
        assert one["accuracy"][-1] == approx(own[f"accuracy.{one['model']}.value"])
        assert one["x"]["round"][-1] == approx(own[f"accuracy.{one['model']}.round"])


def test_what_runs_end_with_is_compares(both):
    """Who took part, and what it needed."""
    page, told = both
    for head, run in zip(page["runs"], told["runs"], strict=True):
        assert {key: head[key] for key in head.keys() & run.keys() - {"devices"}} == {
            key: run[key] for key in head.keys() & run.keys() - {"devices"}
        }
    for one in page["participation"]:
        run = told["runs"][one["run"]]
        assert (one["distinct"][-1], one["fairness"][-1]) == (run["merged_clients"], run["fairness"])
    for place, run in enumerate(told["runs"]):
        needs = [one["admitted_bytes"] for one in page["memory"] if one["run"] == place]
        assert max((need for need in needs if need is not None), default=None) == run["peak_bytes"]


def test_jobs_add_up_to_compares(both):
    """Rounds list as many jobs as there were; whom a merge waited for adds up; so do client-seconds."""
    page, told = both
    for one in page["rounds"]:
        run = told["runs"][one["run"]]
        assert len(one["client"]) + sum(one["omitted"]) == run["jobs"]
        for ending, spent in run["spent"].items():
            assert one["ending"].count(ending) == spent["jobs"]
        device_of, waited = dict(zip(one["client"], one["device"], strict=True)), {}
        for client, waited_s in zip(one["waited_client"], one["waited_s"], strict=True):
            if waited_s:
                device = one["device_names"][device_of[client]]
                waited[device] = waited.get(device, 0.0) + waited_s
        path = {name: one["seconds"] for name, one in run["path"].items() if name != "nobody"}
        assert waited == {device: approx(seconds) for device, seconds in path.items()}
    for one in page["durations"]:
        if (one["device"], one["what"]) == ("", "job"):
            assert one["count"] <= told["runs"][one["run"]]["spent"]["merged"]["jobs"]
