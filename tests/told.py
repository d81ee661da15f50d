"""What a run did, as lines that a reader can check on paper: its jobs, its merges and its scores."""

from __future__ import annotations

from typing import NamedTuple

from plans import plan, played, prices

from edgefl.core import catalogue
from edgefl.core.event import Kind
from edgefl.world.needs import Evaluate, Feedback


class Told(NamedTuple):
    """A run.

    Attributes:
        jobs: by number: ``c1 of 0: 0 1 4 5, merged 1 at 6`` is client 1's job from version 0, dispatched,
            received, worked and arrived at 0, 1, 4 and 5 s, and merged into version 1 at 6 s. A station that
            it did not reach is ``-``; its optimizer steps follow, if it has any.
        merges: ``6: 1 = c0 x1 w1, c1 x0.5 w1 (move)`` is version 1, made at 6 s of two updates with their
            scales, weights and correction; ``d2`` is a staleness of two versions.
        scores: ``6: 1`` is version 1, scored at 6 s.
    """

    jobs: list[str]
    merges: list[str]
    scores: list[str]


def times(**seconds):
    """One exchange: a second down, so many of work, and a second up."""
    work = seconds.pop("work")
    return prices("train", len(work), **{"down_s": 1, "compute_s": work, "up_s": 1, **seconds})


def told(table, policy, params=None, *, choice=None, feedback=lambda _: Feedback(), **settings) -> Told:
    """Runs a plan.

    Args:
        table: the prices of its exchange.
        policy: its name.
        params: the policy's parameters.
        choice: the selector's.
        feedback: answers the world's needs.
        settings: as of ``plan``.
    """
    if "selector" in settings:
        choice = catalogue.load("selectors", settings["selector"]).Params(**(choice or {}))
    params = catalogue.load("policies", policy).Params(**(params or {}))
    plan_ = plan([table], policy=policy, params=params, choice=choice, **settings)
    return _told(*played(plan_, feedback))


def _told(events, needs, records) -> Told:
    merges = [need for need in needs if not isinstance(need, Evaluate)]
    scores = [f"{need.t_s:g}: {need.version}" for need in needs if isinstance(need, Evaluate)]
    server = [event for event in events if event.kind in {Kind.MERGED, Kind.EVALUATED}]
    assert [(event.t_s, event.version) for event in server] == [(need.t_s, need.version) for need in needs]
    jobs = [_job(record) for record in sorted(records, key=lambda record: record.job.id)]
    return Told(jobs, [_merge(need) for need in merges], scores)


def _job(record) -> str:
    stations = record.dispatched, record.received, record.worked, record.arrived
    passed = " ".join("-" if event is None else f"{event.t_s:g}" for event in stations)
    ending = record.ending if record.into is None else f"{record.ending} {record.into}"
    steps = f" {record.job.steps} steps," if record.job.steps else ""
    return f"c{record.job.client} of {record.job.version}: {passed},{steps} {ending} at {record.ended.t_s:g}"


def _merge(need) -> str:
    each = zip(need.merged, need.scales, need.weights, strict=True)
    updates = [
        f"c{job.client}{_behind(need.version - 1 - job.version)} x{scale:.4g} w{weight:g}"
        for job, scale, weight in each
    ]
    return f"{need.t_s:g}: {need.version} = {', '.join(updates) or 'nothing'} ({need.correction})"


def _behind(versions: int) -> str:
    return f" d{versions}" if versions else ""
