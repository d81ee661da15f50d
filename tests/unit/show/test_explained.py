"""What `edgefl explain` says of rounds, in words."""

from dataclasses import replace

import pytest
from commands import shown as printed
from plans import plan
from recorded import recorded
from told import times

from edgefl.analysis.explain.explain import Explainer
from edgefl.core import catalogue
from edgefl.core.availability.intervals import Params as Intervals
from edgefl.core.yamls import RESOLVED
from edgefl.show.explanation import said, shown

THERE = {"rows": "0,3,50 1,3,50", "repeat": 100}


def explained(round_=None, *, work=(2, 4), policy="sync", params=None, free=False, **settings):
    chosen = catalogue.load("policies", policy).Params.model_validate(params or {}, context=RESOLVED)
    moved = {"down_s": 0, "up_s": 0} if free else {}
    plan_ = plan([times(work=list(work), **moved)], policy=policy, params=chosen, **settings)
    with recorded(plan_) as reader:
        explainer = Explainer(reader, plan_, {})
        return explainer.run() if round_ is None else explainer.round(round_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "100% of it for client 1 (board, cable), mostly compute (arithmetic)"),
        (
            {"failures": {"timeout": "3 s"}},
            "100% of it for client 1 (board, cable), whose job was lost, mostly compute",
        ),
        ({"policy": "deadline", "params": {"seconds": 5}}, "100% of it waiting for the policy's timer"),
        (
            {"work": (0.1, 0.1), "availability": Intervals.model_validate(THERE, context=RESOLVED)},
            "59% of it waiting for clients",
        ),
    ],
)
def test_a_round_is_one_sentence(settings, words):
    """Who or what it waited for, for which share of its time, and by what that was bound."""
    sentence = said(explained(0, **settings))
    assert sentence.startswith("run: round 0 took ")
    assert words in sentence


def test_a_run_is_one_sentence():
    """The phase and the devices that held it up most; what differs by less than sums round saves nothing."""
    found = explained(rounds=3)
    assert said(found) == "run: 3 rounds took 18 s: 67% of it compute (arithmetic), 100% for clients on board"
    rounding = {"device": 1e-12, "work": -1e-12}
    text = printed(shown(replace(found, savings=rounding, clients=[])), 100)
    assert text.count("nothing") == len(rounding)
    nothing = explained(work=(0, 0), free=True)
    assert printed(shown(nothing), 100).strip() == "run: 1 round took 0 s"
    timed = explained(policy="deadline", params={"seconds": 5}, rounds=2)
    assert said(timed) == "run: 2 rounds took 10 s: 100% of it waiting for the policy's timer"


def test_exchanges_outside_the_rounds_are_not_counted_as_rounds():
    train = times(work=[2, 4])
    around = [replace(train, exchange=at, at=at) for at in ("start", "end")]
    plan_ = plan([train, *around], rounds=2)
    with recorded(plan_) as reader:
        explainer = Explainer(reader, plan_, {})
    assert said(explainer.run()).startswith("run: 2 rounds and the exchanges outside of them took ")
    assert said(explainer.round(-1)).startswith("run: what came before the rounds took ")
    assert said(explainer.round(1)).startswith("run: round 1 took ")
    assert said(explainer.round(2)).startswith("run: what came after the rounds took ")
