"""Limits of a run that has begun can be raised and removed; nothing else can be changed."""

import pytest

from edgefl.core.errors import UserError
from edgefl.core.overrides import Override
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.planning.raising import raised
from edgefl.runs.group import drafts

ACCESS = DataAccess(need="labels")
SCENARIO = {
    "task": {"dataset": "digits", "clients": 4},
    "model": "mlp",
    "method": "fedavg",
    "fleet": {"members": [{"device": "raspberry-pi-4b", "link": "wifi-pi5"}]},
}
ROUNDS = {"rounds": 30}
COSINE = {"local": {"optimizer": {"name": "sgd", "lr": 0.1, "schedule": "cosine"}}}
BY_ROUND = {"name": "flexchill", "temperature": {"by": "round", "start": 1.0, "end": 0.5}}


def planned(until, **more):
    """A plan with these limits."""
    (draft,) = drafts({**SCENARIO, "server": {"until": until}, **more})
    return plan(draft, ACCESS)


def with_limits(found, *texts):
    """The plan after settings."""
    return raised(found, [Override.parse(text) for text in texts])


@pytest.mark.parametrize(
    ("until", "text", "what", "hint"),
    [
        (ROUNDS, "seed=3", "'seed' cannot be changed when a run is resumed", "checkpoint.minutes can"),
        (ROUNDS, "server={rounds: 40}", "'server' cannot be changed", "server.until"),
        (ROUNDS, "server.rounds=29", "server.until.rounds can only be raised, and it is 30", "more than 30"),
        (ROUNDS, "server.until.time=1 h", "the run has no server.until.time to raise", "again with it"),
        ({**ROUNDS, "accuracy": 0.5}, "server.until.rounds=null", "energy too: an accuracy may never", ""),
        ({"time": "1 h"}, "server.until.time=7200", "is no time; write a number and a unit", ""),
        (ROUNDS, "server.until.hours=3", "unknown key 'hours'", "known: accuracy, bytes, energy, rounds"),
    ],
)
def test_what_is_not_a_larger_limit_is_refused(until, text, what, hint):
    with pytest.raises(UserError) as caught:
        with_limits(planned(until), text)
    assert what in caught.value.what
    assert hint in caught.value.hint
    assert text in caught.value.where or "server.until" in caught.value.where


@pytest.mark.parametrize(
    ("more", "who"),
    [(COSINE, "the schedule 'cosine'"), ({"method": BY_ROUND}, "the method 'flexchill'")],
)
def test_more_rounds_are_refused_where_what_was_done_depends_on_their_number(more, who):
    """A learning rate or a temperature that falls over all rounds; other limits can be raised."""
    found = planned({**ROUNDS, "time": "1 h"}, **more)
    for rounds in ("40", "null"):
        with pytest.raises(UserError, match="depends on the number of rounds, which was 30") as caught:
            with_limits(found, f"server.until.rounds={rounds}")
        assert caught.value.what.startswith(who)
        assert f"server.until.rounds={rounds}" in caught.value.where
    assert with_limits(found, "server.until.time=2 h").plan.scenario.server.until.time == 7200
