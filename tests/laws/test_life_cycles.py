"""Laws of a job's life, under a policy that loses, delays and discards jobs at random."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import plan, prices, told
from toys import TOYS, toy

from edgefl.core import catalogue
from edgefl.core.errors import RunError
from edgefl.core.event import ENDINGS, Kind
from edgefl.world.needs import Merge
from edgefl.world.world import World

_POLICY = "from edgefl.world.policies import Policy\nclass Params(Policy):\n  def serve(self, world):\n"

STATIONS = ("dispatched_s", "received_s", "worked_s", "arrived_s")
STAGES = ("receive_s", "work_s", "transmit_s")


@pytest.fixture(autouse=True, scope="module")
def own_policies():
    """The toy policy is a user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGEFL_PATH", str(TOYS))
        yield


SETTINGS = st.fixed_dictionaries(
    {
        "lost": st.floats(0, 0.9),
        "late": st.floats(0, 0.9),
        "buffer": st.integers(1, 4),
        "seed": st.integers(0, 99),
        "stateful": st.booleans(),
        "clients": st.integers(1, 6),
    }
)


@given(SETTINGS)
def test_a_job_passes_its_stations_in_order(settings):
    """None after its end, whatever broke it off; its stages took the time until its client was free again."""
    for row in told(toy(**settings))[2]:
        times = np.array([row[name] for name in STATIONS])
        passed = times[~np.isnan(times)]
        assert np.isnan(times[len(passed) :]).all()
        assert (np.diff([*passed, row["ended_s"]]) >= 0).all()
        until_s = passed[-1] if len(passed) == len(STATIONS) else row["ended_s"]
        spent_s = sum(row[name] for name in STAGES)
        assert math.isclose(spent_s, until_s - row["dispatched_s"], abs_tol=1e-9)


@given(SETTINGS)
def test_states_are_committed_in_each_clients_order(settings):
    """Merged or late: of a client's jobs the newer never comes before the older."""
    _, needs, rows = told(toy(**settings))
    last: dict[int, int] = {}
    for need in needs:
        merged = need.merged if isinstance(need, Merge) else ()
        for job in sorted((*merged, *need.completed), key=lambda job: job.id):
            assert job.id > last.get(job.client, -1)
            last[job.client] = job.id
    completed = [job.id for need in needs for job in need.completed]
    late = set(rows["job"][(rows["ending"] == ENDINGS.index(Kind.LATE)) & ~np.isnan(rows["worked_s"])])
    assert set(completed) <= (late if settings["stateful"] else set())


def test_a_newer_job_cannot_pass_an_older_one(tmp_path, monkeypatch):
    """Where clients keep states, a policy that merges the newest arrival first is told so."""
    (tmp_path / "policies").mkdir()
    text = (TOYS / "policies" / "toy.py").read_text(encoding="utf-8")
    hasty = text.replace("inbox[: self.buffer], inbox[self.buffer :]", "inbox[-1:], inbox[:-1]")
    assert hasty != text
    (tmp_path / "policies" / "hasty.py").write_text(hasty, encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    params = catalogue.load("policies", "hasty").Params(lost=0.0, late=0.0, buffer=2)

    def hasty_plan(*, stateful):
        table = prices("train", 1, stateful=stateful, work_s=1.0, up_bytes=1)
        return plan([table], rounds=5, policy="hasty", params=params)

    with pytest.raises(RunError, match="job 1 is merged before its job 0"):
        told(hasty_plan(stateful=True))
    assert len(told(hasty_plan(stateful=False))[2]) > 5


def _world(clients=2, **columns):
    """A world by hand: every job works for a second and writes a state."""
    table = prices("train", clients, stateful=True, work_s=1.0, up_bytes=1, **columns)
    return World(plan([table], participants=1, policy="toy"), lambda _: None, lambda _: None)


def _arrived(world, client):
    (job,) = world.dispatch("train", client)
    world.env.run(job.process)
    return job


def _asked(world, jobs):
    """The need of a merge."""
    next(world.merge("train", jobs))
    return world.needs.pop()[0]


def _numbers(jobs):
    return [job.id for job in jobs]


def test_a_client_works_on_one_job_at_a_time():
    """A second job would compute on the same device for free; it can follow once the first is discarded."""
    world = _world()
    jobs = world.dispatch("train", 0)
    with pytest.raises(RunError, match="client 0, which is still at its job 0"):
        world.dispatch("train", 0)
    world.env.run(world.discard(jobs, Kind.LOST))
    assert [job.job for job in world.dispatch("train", 0)] == [1]


def test_a_late_job_waits_for_its_clients_older_one():
    """Its state is committed with or after the older job's, from a version that is kept until then."""
    world = _world()
    older, newer = _arrived(world, 0), _arrived(world, 0)
    world.discard([newer], Kind.LATE)
    other = _arrived(world, 1)
    need = _asked(world, [other])
    assert (need.completed, need.live_versions) == ((), (0, 1))
    assert _numbers(_asked(world, [older]).completed) == [newer.job]


def test_merged_together_a_clients_jobs_keep_their_order():
    """In whatever order they are given; one between them that still waits is passed over."""
    world = _world()
    first, second, third = (_arrived(world, 0) for _ in range(3))
    with pytest.raises(RunError, match="job 2 is merged before its job 1"):
        next(world.merge("train", [third, first]))
    assert _numbers(_asked(world, [third, second, first]).merged) == [0, 1, 2]


@given(SETTINGS)
def test_the_last_exchanges_find_every_client_free(settings):
    """What the rounds left in flight is cut before them; no client works on two jobs at once."""
    plan_ = toy(**settings)
    last = prices("last", settings["clients"], at="end", everyone=True, stateful=True, work_s=1.0)
    _, needs, rows = told(replace(plan_, prices=(*plan_.prices, last)))
    merged = [need.merged for need in needs if isinstance(need, Merge) and need.exchange == "last"]
    assert sum(map(len, merged)) == settings["clients"]
    is_last = rows["exchange"] == len(plan_.prices)
    assert (rows["ended_s"][~is_last] <= rows["dispatched_s"][is_last].min()).all()


@pytest.mark.parametrize(("seconds", "completes"), [(0.5, False), (5.0, True)])
def test_late_work_completes_once_it_is_done(seconds, completes):
    """A client that is discarded as late in the middle of its work has not written a state."""
    table = prices("train", 2, stateful=True, work_s=[1.0, 4.0], up_delay_s=9.0, up_bytes=1)
    world = World(plan([table]), lambda _: None, lambda _: None)
    jobs = world.dispatch("train", 1)
    world.env.run(until=seconds)
    world.env.run(world.discard(jobs, Kind.LATE))
    world.env.process(world.merge("train", []))
    world.env.run(until=seconds + 1)
    (need, _) = world.needs.popleft()
    assert _numbers(need.completed) == ([jobs[0].job] if completes else [])


def test_stale_uploads_need_a_policy_that_says_so():
    """A policy that does not say so cannot merge them, and so cannot pass an exchange that must be fresh."""
    table = prices("train", 2, work_s=1.0)
    world = World(plan([table]), lambda _: None, lambda _: None)
    old, new = _arrived(world, 0), _arrived(world, 1)
    next(world.merge("train", [new]))
    with pytest.raises(RunError, match="job 0 began at version 0 and is merged into version 2"):
        next(world.merge("train", [old]))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("    yield world.env.timeout(1.0)", "ended after 0 rounds, before the scenario's limit"),
        ("    return None", "serve is not a generator"),
        (
            "    yield from world.merge('train', [], correction='blend')",
            "there is no correction 'blend'",
        ),
        ("    yield 5", "the policy yields 5, which is not an event"),
        (
            "    while True:\n        yield from world.merge('train', [])",
            "a round does not end",
        ),
    ],
)
def test_a_policy_that_stops_early_is_an_error(tmp_path, monkeypatch, body, says):
    """A run that did not do its rounds is not a run that is done."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "lazy.py").write_text(_POLICY + body + "\n", encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    with pytest.raises(RunError, match=says):
        told(plan([prices("train", 1)], rounds=5, policy="lazy"))


@pytest.mark.parametrize(
    "mistake", ["merged twice", "merged at once twice", "merged early", "discarded twice"]
)
def test_a_mistake_of_a_policy_leaves_no_trace(mistake):
    """What is refused is neither an event nor the end of a job, and makes no version."""
    events, rows = [], []
    table = prices("train", 2, work_s=1.0, up_bytes=1)
    world = World(plan([table], policy="toy"), events.append, rows.append)
    job, (other,) = _arrived(world, 0), world.dispatch("train", 1)
    if mistake == "merged twice":
        next(world.merge("train", [job]))
    if mistake == "discarded twice":
        world.discard([job], Kind.LATE)
    before = len(events), len(rows), world.version
    jobs = {"merged early": [job, other], "merged at once twice": [job, job]}
    says = "before its upload has arrived" if "early" in mistake else "ends twice"
    discard = partial(world.discard, [job], Kind.LOST)
    merge = world.merge("train", jobs.get(mistake, [job]))
    with pytest.raises(RunError, match=says):
        discard() if "discarded" in mistake else next(merge)
    assert (len(events), len(rows), world.version) == before
