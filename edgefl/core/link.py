"""A client's network connection: rates, latency, packet loss and radio power."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from edgefl.core import units
from edgefl.core.params import Strict
from edgefl.core.sourced import Costs, Sourced

# Bytes of TCP payload in a packet: 1500 of Ethernet less 40 of IPv4 and TCP headers.
SEGMENT_BYTES = 1460
_MATHIS = 1.22

Share = Annotated[float, Field(ge=0, lt=1), Costs.MORE]
RoundTrips = Annotated[int, Field(ge=0), Costs.MORE]


def _plain(value: object) -> object:
    if isinstance(value, str):
        raise ValueError("give watts per Mbit/s as a plain number, such as 0.1")  # noqa: TRY004 - pydantic's
    return value


PerMbps = Annotated[float, Field(ge=0), BeforeValidator(_plain)]


class Radio(Strict):
    """Power a radio draws above the idle device (the form of Huang et al. 2012, MobiSys, section 4).

    While sending: base + up_w_per_mbps * (throughput in Mbit/s); receiving likewise; afterwards tail for
    tail_time, or until the next transfer begins.
    """

    COSTS: ClassVar[Costs] = Costs.MORE

    up_w_per_mbps: PerMbps = 0.0
    down_w_per_mbps: PerMbps = 0.0
    base: units.Watts
    tail: units.Watts = 0.0
    tail_time: units.Seconds = 0.0

    @model_validator(mode="after")
    def _tail_lasts(self) -> Radio:
        if self.tail and not self.tail_time:
            raise ValueError(f"a tail of {self.tail:.4g} W needs a tail_time")
        return self

    @classmethod
    def nothing(cls) -> Radio:
        """A radio that draws nothing above the idle device."""
        return cls.model_construct(base=0.0)


class Link(Strict):
    """A client's network connection.

    Attributes:
        title: its display name.
        down: bits a second towards the client.
        up: bits a second from the client.
        latency: round-trip time.
        handshakes: round trips before the first byte of a transfer flows.
        loss: share of packets lost; caps what TCP reaches (Mathis et al. 1997, equation 3).
        radio: the transceiver's power; if unknown, so is the client's energy.
        notes: remarks for users.
    """

    title: str
    down: Sourced[units.BitsPerSecond]
    up: Sourced[units.BitsPerSecond]
    latency: Sourced[units.Seconds]
    handshakes: Sourced[RoundTrips] = Sourced[RoundTrips](
        value=1, status="assumed", source="one round trip a transfer, over a connection that stays open"
    )
    loss: Sourced[Share] = Sourced[Share](value=0.0, status="assumed", source="no loss")
    radio: Sourced[Radio]
    notes: str = ""

    @model_validator(mode="after")
    def _rates_are_known(self) -> Link:
        for name in ("down", "up"):
            if (getattr(self, name).value or 0.0) < 1:
                raise ValueError(f"a link needs a {name} rate of at least 1 bit/s")
        if self.latency.value is None:
            raise ValueError("a link needs a value for its latency; give 0 s for none")
        for name in ("handshakes", "loss"):
            if getattr(self, name).value is None:
                raise ValueError(f"leave out {name} if it is unknown: the default is 1 handshake and no loss")
        return self

    @property
    def delay_s(self) -> float:
        """The handshakes before a transfer's first byte."""
        return (self.latency.value or 0.0) * (self.handshakes.value or 0)

    @property
    def down_bps(self) -> float:
        """Bits a second to the client, as far as TCP reaches under the link's losses."""
        return self._reached(self.down.value or 0.0)

    @property
    def up_bps(self) -> float:
        """Bits a second from the client, as far as TCP reaches under the link's losses."""
        return self._reached(self.up.value or 0.0)

    def _reached(self, rate_bps: float) -> float:
        return min(rate_bps, mathis_bps(self.latency.value or 0.0, self.loss.value or 0.0))


def mathis_bps(latency_s: float, loss: float) -> float:
    """Bits a second that one TCP connection reaches: 1.22 * MSS / (RTT * sqrt(loss)).

    Source: Mathis, Semke, Mahdavi, Ott 1997, "The macroscopic behavior of the TCP congestion avoidance
    algorithm", equation 3 with the constant for delayed acknowledgements left out.
    """
    slowed_s = latency_s * math.sqrt(loss)
    return _MATHIS * 8 * SEGMENT_BYTES / slowed_s if slowed_s else math.inf
