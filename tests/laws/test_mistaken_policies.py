"""Mistakes in a user's policy or selector are named, and nothing is simulated from them."""

import numpy as np
import pytest
from plans import dispatched, plan, prices, told, with_server

from edgefl.core.errors import RunError
from edgefl.core.event import ENDINGS, Kind
from edgefl.world.needs import Feedback, Merge

_POLICY = '''"""A policy under test."""


from edgefl.world.policies import Policy


class Params(Policy):
    def serve(self, world):
        while world.serving:
            for exchange in world.due():
                name = exchange.exchange
                {body}
            yield from world.end_round()
'''
_STALE = "    def merges_stale(self):\n        return True\n\n"
_COLLECT = "jobs = world.dispatch(name, (yield from world.invite(exchange))); "

_SELECTOR = '''"""A selector under test."""

import numpy as np

from edgefl.world.selectors import Selector, SelectorParams


class Own(Selector):
    def select(self, count, candidates):
        return {chosen}


class Params(SelectorParams):
    def build(self, world):
        return Own()
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes a user's file."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))

    def write(folder, name, text):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.py").write_text(text, encoding="utf-8")

    return write


def _plan(*, participants=None, policy="sync", selector="random", refused=()):
    table = prices("train", 4, work_s=[1.0, 2.0, 3.0, 4.0], up_bytes=1)
    return plan(
        [table], rounds=2, participants=participants, policy=policy, selector=selector, refused=refused
    )


def _choosing(own, chosen):
    """A plan whose selector, random2.py, returns an expression of ``count`` and ``candidates``."""
    own("selectors", "random2", _SELECTOR.format(chosen=chosen))
    return _plan(participants=2, selector="random2")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("world.dispatch('trian', 0)", "no exchange 'trian'.*\n.*policy mistaken\n.*did you mean 'train'"),
        ("world.dispatch(name, 9)", "client 9 does not exist: there are 4, from 0"),
        ("world.dispatch(name, -1)", "client -1 does not exist"),
        ("world.dispatch(name, 3)", "client 3 was refused"),
        (_COLLECT + "yield from world.merge(name, jobs)", "merged before its upload has arrived"),
        (
            _COLLECT + "yield world.ended(jobs); yield from world.merge(name, jobs + jobs[:1])",
            "job 0 ends twice: first as merged, then as merged",
        ),
        ("yield world.env.event()", "the run is stuck"),
    ],
)
def test_a_policys_mistake_is_named(own, body, message):
    """With the policy, and with what to do instead."""
    own("policies", "mistaken", _POLICY.format(body=body))
    with pytest.raises(RunError, match=message):
        told(_plan(policy="mistaken", refused=[3]))


@pytest.mark.parametrize(
    "chosen",
    ["candidates[: count - 1]", "[candidates[0]] * count", "[90, 91]", "'ab'"],
)
def test_a_selector_returns_as_many_candidates_as_it_is_asked_for(own, chosen):
    """Too few, too many, one twice and unknown ones are errors, at the line of its function."""
    planned = _choosing(own, chosen)
    message = r"asked for 2 of 4 clients, the selector returned(.|\n)*random2\.py:\d+"
    with pytest.raises(RunError, match=message):
        told(planned)


@pytest.mark.parametrize("uplink", [None, 1e9])
def test_a_job_that_has_not_begun_has_cost_nothing(own, uplink):
    """A round that ends in the very moment of a dispatch has a total, on links of one's own and shared."""
    body = (
        "jobs = world.dispatch(name, world.choose(2)); yield world.ended(jobs); "
        "yield from world.merge(name, jobs); world.dispatch(name, world.choose(2))"
    )
    text = _POLICY.format(body=body).replace("    def serve", _STALE + "    def serve", 1)
    own("policies", "hasty", text)
    table = prices("train", 4, work_s=1.0, up_bytes=1, up_bps=8.0)
    planned = plan([table], policy="hasty", until={"energy": 1e9, "rounds": 1})
    _, needs, rows = told(planned if uplink is None else with_server(planned, uplink=uplink))
    (total,) = [need.totals for need in needs if hasattr(need, "totals")]
    assert [ENDINGS[each] for each in rows["ending"]] == [Kind.MERGED] * 2 + [Kind.CUT] * 2
    assert (total.energy.joules, total.energy.energy_known) == (0.0, total.energy.energy_clients)


def test_nobody_is_asked_while_a_run_closes(own):
    """A policy's own process that waits for a change is not told of the last cut: it would go on asking."""
    text = _POLICY.format(body=_COLLECT + "yield world.env.timeout(0.5)")
    helper = """
        def helper():
            while True:
                yield world.change()
                world.dispatch("train", world.choose(1))

        world.env.process(helper())
"""
    own("policies", "helped", text.replace("(self, world):", "(self, world):" + helper))
    planned = plan([prices("train", 4, work_s=10.0)], policy="helped", participants=2)
    with dispatched() as numbers:
        _, _, rows = told(planned)
    assert sorted(numbers) == sorted(rows["job"]) == [0, 1]


def test_a_job_is_ready_once_its_steps_are_known(own):
    """Who may still leave steps out to be in time is not offered to be trained ahead."""
    body = (
        "jobs = world.dispatch(name, [0, 1], finish_by=world.now_s + 4.0); "
        "yield world.ended(jobs[:1]); yield from world.merge(name, jobs[:1]); "
        "yield world.ended(jobs[1:]); yield from world.merge(name, jobs[1:])"
    )
    own("policies", "early", _POLICY.format(body=body).replace("    def serve", _STALE + "    def serve", 1))
    table = prices("train", 2, down_s=[0.5, 2.0], work_s=[0.5, 10.0], up_s=0.5, steps=10)
    offered = []

    def answer(need):
        if isinstance(need, Merge):
            offered.append({job.id: job.steps for job in need.ready})
        return Feedback()

    _, _, rows = told(plan([table], policy="early"), answer)
    steps = dict(zip(rows["job"].tolist(), rows["steps"].tolist(), strict=True))
    assert steps == {0: 10, 1: 1}
    assert all(steps[job] == of for ready in offered for job, of in ready.items())


def test_work_that_writes_no_state_may_be_left_in_flight(own):
    """An exchange at the end that writes states does not wait for jobs that wrote none."""
    body = (
        "done = world.dispatch(name, 0); world.dispatch(name, 1); "
        "yield world.env.timeout(2.5); yield from world.merge(name, done)"
    )
    own("policies", "leaving", _POLICY.format(body=body))
    train = prices("train", 2, work_s=1.0, up_s=[0.0, 9.0])
    deliver = prices("deliver", 2, at="end", everyone=True, stateful=True)
    _, _, rows = told(plan([train, deliver], rounds=1, policy="leaving"))
    rows = np.sort(rows, order=["exchange", "client"])
    assert [ENDINGS[each] for each in rows["ending"]] == [Kind.MERGED, Kind.CUT, Kind.MERGED, Kind.MERGED]
