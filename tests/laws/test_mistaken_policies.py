"""Mistakes in a user's policy or selector are named, and nothing is simulated from them."""

from __future__ import annotations

import pytest
from plans import plan, played, prices

from edgefl.core.errors import RunError, UserError
from edgefl.core.event import Kind
from edgefl.runs import drafts

_POLICY = '''"""A policy under test."""


def serve(world, params):
    while world.serving:
        for exchange in world.due():
            name = exchange.exchange
            {body}
        yield from world.end_round()
'''
_COLLECT = "jobs = world.dispatch(name, (yield from world.invite(exchange))); "

_SELECTOR = '''"""A selector under test."""


class Own:
    def select(self, count, candidates):
        return {chosen}


def build(params, world):
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


def _plan(*, participants=None, policy="sync", refused=()):
    table = prices("train", 4, work_s=[1.0, 2.0, 3.0, 4.0], up_bytes=1)
    return plan([table], rounds=2, participants=participants, policy=policy, refused=refused)


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
        played(_plan(policy="mistaken", refused=[3]))


@pytest.mark.parametrize(
    "chosen",
    ["candidates[: count - 1]", "candidates[: count + 1]", "[candidates[0]] * count", "[90, 91]", "'ab'"],
)
def test_a_selector_returns_as_many_candidates_as_it_is_asked_for(own, chosen, monkeypatch):
    """Too few, too many, one twice and unknown ones are errors, at the line of its function."""
    text = _SELECTOR.format(chosen=chosen)
    own("selectors", "random2", text)
    planned = _plan(participants=2)
    server = planned.scenario.server
    selector = server.selector.model_copy(update={"name": "random2"})
    monkeypatch.setitem(server.__dict__, "selector", selector)
    message = r"asked for 2 of 4 clients, the selector returned(.|\n)*random2\.py:\d+"
    with pytest.raises(RunError, match=message):
        played(planned)


@pytest.mark.parametrize(("kind", "function"), [("policies", "serve"), ("selectors", "build")])
def test_a_file_without_its_function_is_refused(own, kind, function):
    """Before the run, with the file."""
    own(kind, "hollow", '"""Hollow: nothing."""\n')
    key = {"policies": "server.policy", "selectors": "server.selector"}[kind]
    with pytest.raises(UserError, match=f"'hollow' has no function '{function}'") as caught:
        drafts("quickstart", [f"{key}=hollow"])
    assert "hollow.py" in caught.value.where


def test_work_that_writes_no_state_may_be_left_in_flight(own):
    """An exchange at the end that writes states does not wait for jobs that wrote none."""
    body = (
        "done = world.dispatch(name, 0); world.dispatch(name, 1); "
        "yield world.env.timeout(2.5); yield from world.merge(name, done)"
    )
    own("policies", "leaving", _POLICY.format(body=body))
    train = prices("train", 2, work_s=1.0, up_s=[0.0, 9.0])
    deliver = prices("deliver", 2, at="end", everyone=True, stateful=True)
    _, _, jobs = played(plan([train, deliver], rounds=1, policy="leaving"))
    endings = {(record.job.exchange, record.job.client): record.ending for record in jobs}
    assert endings == {
        ("train", 0): Kind.MERGED,
        ("train", 1): Kind.CUT,
        ("deliver", 0): Kind.MERGED,
        ("deliver", 1): Kind.MERGED,
    }
