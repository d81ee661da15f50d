"""What a run did, as lines that a reader can check on paper: its jobs, its merges and its scores."""

from typing import NamedTuple

import numpy as np
import plans
from plans import plan, prices

from edgefl.core import catalogue
from edgefl.core.event import ENDINGS, Kind
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
    return _told(*plans.told(plan_, feedback))


def _told(events, needs, rows) -> Told:
    merges = [need for need in needs if not isinstance(need, Evaluate)]
    scores = [f"{need.t_s:g}: {need.version}" for need in needs if isinstance(need, Evaluate)]
    server = [event for event in events if event.kind in {Kind.MERGED, Kind.EVALUATED}]
    assert [(event.t_s, event.version) for event in server] == [(need.t_s, need.version) for need in needs]
    jobs = [_job(row) for row in np.sort(rows, order="job")]
    return Told(jobs, [_merge(need) for need in merges], scores)


def _job(row) -> str:
    stations = (row[name] for name in ("dispatched_s", "received_s", "worked_s", "arrived_s"))
    passed = " ".join("-" if np.isnan(t_s) else f"{t_s:g}" for t_s in stations)
    ending, into = ENDINGS[row["ending"]], row["into_version"]
    steps = f" {row['steps']} steps," if row["steps"] else ""
    return (
        f"c{row['client']} of {row['version']}: {passed},{steps} {ending}{f' {into}' if into >= 0 else ''} "
        f"at {row['ended_s']:g}"
    )


def _merge(need) -> str:
    each = zip(need.merged, need.scales, need.weights, strict=True)
    updates = [
        f"c{job.client}{_behind(need.version - 1 - job.version)} x{scale:.4g} w{weight:g}"
        for job, scale, weight in each
    ]
    return f"{need.t_s:g}: {need.version} = {', '.join(updates) or 'nothing'} ({need.correction})"


def _behind(versions: int) -> str:
    return f" d{versions}" if versions else ""
