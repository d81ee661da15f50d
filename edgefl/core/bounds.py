"""Bounds of what jobs took, from their own seconds and bytes and from the prices at both corners.

What happened stays as it was: the same jobs did the same work. At a corner each stage of a job takes as much
longer or shorter as its kind of client is priced there, and draws the power that it has there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from edgefl.core.corners import Corner, Interval
from edgefl.core.plan import Floats, Ints, Prices


class Jobs(NamedTuple):
    """Jobs of one exchange, or sums over jobs of one kind of client, (n,).

    Attributes:
        kind: the kind of client.
        receive_s, work_s, transmit_s: busy seconds by stage.
        down_bytes, up_bytes: as far as they moved.
        tail_j: of the radio's tails; NaN where unknown.
        tails: how many tails there can be: one a transfer.
    """

    kind: Ints
    receive_s: Floats
    work_s: Floats
    transmit_s: Floats
    down_bytes: Floats
    up_bytes: Floats
    tail_j: Floats
    tails: Floats


def joules_between(prices: Prices, jobs: Jobs) -> Interval:
    """The bounds of the energy of an exchange's jobs; of no width where the corners do not differ."""
    low, high = (_joules(prices, corner, jobs) for corner in Corner)
    return Interval.of(float(low.sum()), None if np.isnan(high).any() else float(high.sum()))


def stages_s(prices: Prices, corner: Corner, jobs: Jobs) -> tuple[Floats, Floats, Floats]:
    """The seconds of each stage at a corner, (n,); NaN where nothing bounds them."""
    there = _at(prices, corner)
    down = _factors(prices, there, jobs.kind, lambda one: one.down_s)
    work = _factors(prices, there, jobs.kind, lambda one: one.work_s)
    up = _factors(prices, there, jobs.kind, lambda one: one.up_s)
    return jobs.receive_s * down, _product(work, jobs.work_s), jobs.transmit_s * up


def _at(prices: Prices, corner: Corner) -> Prices:
    if prices.corners is None:
        return prices
    cheap, costly = prices.corners
    return cheap if corner is Corner.CHEAP else costly


def _factors(here: Prices, there: Prices, kinds: Ints, figure: Any) -> Floats:
    """How much longer something takes there; 1 where it takes no time here."""
    before, after = figure(here.demand(kinds)), figure(there.demand(kinds))
    found: Floats = np.divide(after, before, out=np.ones_like(before), where=before > 0)
    return found


def _product(rate: Floats, amount: Floats) -> Floats:
    """The product; 0 of nothing, whatever the rate."""
    found: Floats = np.multiply(rate, amount, out=np.zeros_like(amount), where=amount != 0)
    return found


def _joules(prices: Prices, corner: Corner, jobs: Jobs) -> Floats:
    there = _at(prices, corner)
    receive_s, work_s, transmit_s = stages_s(prices, corner, jobs)
    draw = there.demand(jobs.kind).draw
    carried_mbit = 8e-6 * np.stack((jobs.down_bytes, jobs.up_bytes))
    found = _product(draw.idle_w, receive_s + work_s + transmit_s) + _product(draw.compute_w, work_s)
    found += _product(draw.radio_w, receive_s + transmit_s)
    found += _product(draw.receive_j_per_mbit, carried_mbit[0])
    found += _product(draw.transmit_j_per_mbit, carried_mbit[1])
    return found + _tails_j(prices, corner, jobs)


def _tails_j(prices: Prices, corner: Corner, jobs: Jobs) -> Floats:
    """Of the tails of the radio, which last for its tail time, or for the work before the upload."""
    there = _at(prices, corner)
    draw = there.demand(jobs.kind).draw
    watts = _factors(prices, there, jobs.kind, lambda one: one.draw.tail_w)
    lasting = _factors(prices, there, jobs.kind, lambda one: one.draw.tail_s)
    working = _factors(prices, there, jobs.kind, lambda one: one.work_s)
    if corner is Corner.CHEAP:
        known = jobs.tail_j * watts * np.fmin(np.fmin(lasting, working), 1.0)
        return np.where(draw.tail_w * draw.tail_s > 0, np.nan_to_num(known), 0.0)
    # Each tail ends, whatever is not known of the work.
    most = _product(draw.tail_w * draw.tail_s, jobs.tails)
    known = jobs.tail_j * watts * np.maximum(np.maximum(lasting, working), 1.0)
    has_tail = prices.tail_w[jobs.kind] * prices.tail_s[jobs.kind] > 0
    return np.fmin(np.where(has_tail, known, np.nan), most)
