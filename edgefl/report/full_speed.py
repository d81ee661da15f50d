"""How long jobs' work takes at the full speed of their devices: before slowdown, jitter and throttling."""

from __future__ import annotations

import numpy as np

from edgefl.report.timeline import Bools, Floats, Ints
from edgefl.store import Reader


def planned_s(reader: Reader, place: Ints, kind: Ints, steps: Ints) -> Floats:
    """The seconds of jobs' whole work, (n,): their kinds' prices, by the steps that they took.

    Args:
        reader: the run.
        place: each job's exchange, its place in the run.
        kind: its client's kind.
        steps: its optimizer steps.
    """
    rows = reader.query(
        "SELECT place, kind, work_s, steps FROM prices JOIN exchanges USING (exchange) "
        "WHERE kind NOT IN (SELECT kind FROM refused_kinds)"
    )
    shape = [max((row[name] for row in rows), default=0) + 1 for name in ("place", "kind")]
    work_s, of_all = np.zeros(shape), np.zeros(shape)
    for row in rows:
        at = row["place"], row["kind"]
        work_s[at], of_all[at] = row["work_s"] or 0.0, row["steps"] or 0
    share = np.divide(steps, of_all[place, kind], out=np.ones(len(steps)), where=of_all[place, kind] > 0)
    priced_s: Floats = work_s[place, kind] * share
    return priced_s


def done_s(planned_s: Floats, busy_s: Floats, slowdown: Floats, *, worked: Bools) -> Floats:
    """The seconds at full speed of the work that jobs did, (n,).

    Nobody knows how far a job came whose work was broken off: at its client's usual speed, it is assumed.

    Args:
        planned_s: of their whole work.
        busy_s: how long their clients worked.
        slowdown: their clients'.
        worked: which were done with their work.
    """
    return np.where(worked, planned_s, np.minimum(planned_s, busy_s / slowdown))
