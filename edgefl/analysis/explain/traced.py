"""What transfers would take alone on links that change."""

from __future__ import annotations

import numpy as np

from edgefl.analysis.run import Floats, Ints
from edgefl.core.link import Link, Rates
from edgefl.core.link_traces import Way


def alone_on(
    link: Link, way: Way, root: int, clients: Ints, begin_s: Floats, bits: Floats
) -> tuple[Floats, Floats]:
    """The handshakes of transfers alone on a link with a trace, and these with the bytes, (n,) each.

    Args:
        link: their clients' link.
        way: the direction.
        root: the run's seed.
        clients: whose transfers, (n,).
        begin_s: when they begin; NaN for those that did not, (n,).
        bits: what they move, (n,).
    """
    which, offset_s = link.dealt(root, clients)
    delay_s, flowing_s = np.zeros(len(clients)), np.zeros(len(clients))
    for one in np.unique(which[~np.isnan(begin_s)]).tolist():
        mine = np.flatnonzero((which == one) & ~np.isnan(begin_s))
        moved, at_s = _Moved(link.rates(one, way)), begin_s[mine] + offset_s[mine]
        delay_s[mine] = moved.delay_s(at_s)
        flows_s = at_s + delay_s[mine]
        flowing_s[mine] = moved.when(moved.by(flows_s) + bits[mine]) - flows_s
    return delay_s, delay_s + np.where(bits > 0, flowing_s, 0.0)


class _Moved:
    """What a trace lets through from its beginning on."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._bits = np.append(0.0, np.cumsum(rates.bps[:-1] * np.diff(rates.t_s)))
        last_s = rates.length_s - rates.t_s[-1]
        self._period_bits = self._bits[-1] + rates.bps[-1] * last_s if np.isfinite(last_s) else np.inf

    def delay_s(self, at_s: Floats) -> Floats:
        """The handshakes of transfers that begin at some times, (n,)."""
        found: Floats = self._rates.delay_s[self._within(at_s)[1]]
        return found

    def by(self, at_s: Floats) -> Floats:
        """The bits until some times, (n,)."""
        whole, piece, within_s = self._within(at_s)
        partial = self._bits[piece] + self._rates.bps[piece] * (within_s - self._rates.t_s[piece])
        found: Floats = partial if np.isinf(self._period_bits) else whole * self._period_bits + partial
        return found

    def when(self, bits: Floats) -> Floats:
        """The first times by which so many bits are through; infinite for never, (n,)."""
        rates, whole, rest = self._rates, np.zeros(len(bits)), bits
        if np.isfinite(self._period_bits):
            whole, rest = np.divmod(bits, self._period_bits)
        piece = np.maximum(np.searchsorted(self._bits, rest) - 1, 0)
        bps, more = rates.bps[piece], rest - self._bits[piece]
        later_s = np.divide(more, bps, out=np.where(more > 0, np.inf, 0.0), where=bps > 0)
        found: Floats = rates.t_s[piece] + later_s
        return found if np.isinf(rates.length_s) else whole * rates.length_s + found

    def _within(self, at_s: Floats) -> tuple[Floats, Ints, Floats]:
        """How many times the trace was repeated until some times, and the piece and the time within it."""
        whole, within_s = np.zeros(len(at_s)), at_s
        if np.isfinite(self._rates.length_s):
            whole, within_s = np.divmod(at_s, self._rates.length_s)
        return whole, np.searchsorted(self._rates.t_s, within_s, side="right") - 1, within_s
