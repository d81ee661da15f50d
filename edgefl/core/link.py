"""A client's network connection: rates, latency, packet loss and radio power."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from edgefl.core import units
from edgefl.core.arrays import Floats
from edgefl.core.link_traces import LinkTrace, Way
from edgefl.core.params import NonNegative, Strict
from edgefl.core.piecewise import Piecewise
from edgefl.core.sourced import NEEDED, Costs, Sourced
from edgefl.core.yamls import RESOLVED

# Bytes of TCP payload in a packet: 1500 of Ethernet less 40 of IPv4 and TCP headers.
SEGMENT_BYTES = 1460

Share = Annotated[float, Field(ge=0, lt=1), Costs.MORE]
RoundTrips = Annotated[int, Field(ge=0), Costs.MORE]
Rate = Annotated[units.BitsPerSecond, Field(ge=1)]


class Radio(Strict):
    """Power a radio draws above the idle device (the form of Huang et al. 2012, MobiSys, section 4).

    While sending: base + up_w_per_mbps * (throughput in Mbit/s); receiving likewise; afterwards tail for
    tail_time, or until the next transfer begins.
    """

    COSTS: ClassVar[Costs] = Costs.MORE

    up_w_per_mbps: NonNegative = 0.0
    down_w_per_mbps: NonNegative = 0.0
    base: units.Watts
    tail: units.Watts = 0.0
    tail_time: units.Seconds = 0.0

    @model_validator(mode="after")
    def _tail_lasts(self) -> "Radio":
        if self.tail and not self.tail_time:
            raise ValueError(f"a tail of {self.tail:.4g} W needs a tail_time")
        return self

    @classmethod
    def nothing(cls) -> "Radio":
        return cls.model_construct(base=0.0)


class Rates(NamedTuple):
    """What TCP reaches in one direction, 0 in an outage, and the handshakes of a transfer."""

    bps: Piecewise
    delay_s: Piecewise


def _rates_or_trace(schema: dict[str, Any]) -> None:
    """Says in a JSON Schema that a trace stands for what it gives."""
    given = ["down", "up", "latency"]
    schema["required"] = [name for name in schema["required"] if name not in given]
    schema["anyOf"] = [{"required": given}, {"required": ["trace"]}]


class Link(Strict):
    """A client's network connection.

    Attributes:
        down: bits a second towards the client.
        up: bits a second from the client.
        latency: round-trip time.
        handshakes: round trips before the first byte of a transfer flows.
        loss: share of packets lost; caps what TCP reaches (Mathis et al. 1997, equation 3).
        radio: the transceiver's power; if unknown, so is the client's energy.
        trace: how the rates, and the latency if it says so, change in time; ``down``, ``up`` and ``latency``
            are then its means over time. None if nothing changes.
    """

    model_config = ConfigDict(json_schema_extra=_rates_or_trace)

    title: str
    down: Annotated[Sourced[Rate], NEEDED]
    up: Annotated[Sourced[Rate], NEEDED]
    latency: Annotated[Sourced[units.Seconds], NEEDED]
    handshakes: Annotated[Sourced[RoundTrips], NEEDED] = Sourced[RoundTrips](
        value=1, status="assumed", source="one round trip a transfer, over a connection that stays open"
    )
    loss: Annotated[Sourced[Share], NEEDED] = Sourced[Share](value=0.0, status="assumed", source="no loss")
    radio: Sourced[Radio]
    trace: LinkTrace | None = None
    notes: str = ""

    @model_validator(mode="before")
    @classmethod
    def _means(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping) or value.get("trace") is None:
            return value
        try:
            trace = LinkTrace.model_validate(value["trace"], context=info.context)
        except ValidationError:
            # Told at its own place; what would come from it is not missing.
            return {"down": "1 bit/s", "up": "1 bit/s", "latency": "0 s", **value}
        means = dict(_sourced_means(trace))
        if both := [name for name in means if name in value]:
            raise ValueError(f"the trace gives {' and '.join(map(repr, both))}: leave that out")
        return {**value, **means, "trace": trace}

    @model_serializer(mode="wrap")
    def _short(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        left_out = {"trace"} if self.trace is None else set(self.trace.gives)
        return {key: value for key, value in written(self).items() if key not in left_out}

    @property
    def delay_s(self) -> float:
        """The handshakes before a transfer's first byte."""
        return self.latency.known * self.handshakes.known

    @property
    def down_bps(self) -> float:
        """Bits a second, as far as TCP reaches under the link's losses."""
        return float(np.minimum(self.down.known, mathis_bps(self.latency.known, self.loss.known)))

    @property
    def up_bps(self) -> float:
        return float(np.minimum(self.up.known, mathis_bps(self.latency.known, self.loss.known)))

    @property
    def followed(self) -> LinkTrace:
        if self.trace is None:
            raise AssertionError("the link has no trace")
        return self.trace

    def rates(self, which: int, way: Way) -> Rates:
        trace = self.followed
        bps, latency = trace.pieces(which, way), Piecewise(np.zeros(1), np.array([self.latency.known]))
        if "latency" in trace.gives:
            latency = trace.pieces(which, "latency")
        t_s, period_s = np.union1d(bps.t, latency.t), min(bps.period, latency.period)
        latency_s = latency.at(t_s)
        reached = np.minimum(bps.at(t_s), mathis_bps(latency_s, self.loss.known))
        delay_s = latency_s * self.handshakes.known
        return Rates(Piecewise(t_s, reached, period_s), Piecewise(t_s, delay_s, period_s))


def _sourced_means(trace: LinkTrace) -> Iterator[tuple[str, Sourced[Any]]]:
    source = "mean over time of the link's " + ("trace" if len(trace.rows) == 1 else "traces")
    for name in trace.gives:
        kind, mean = Sourced[units.Seconds] if name == "latency" else Sourced[Rate], trace.mean(name)
        if name != "latency" and mean < 1:
            raise ValueError(f"{name!r} must be at least 1 bit/s in the mean over its traces' time")
        number = {"value": mean, "status": "derived", "source": source}
        yield name, kind.model_validate(number, context=RESOLVED)


def mathis_bps(latency_s: float | Floats, loss: float) -> Floats:
    """Bits a second that one TCP connection reaches: 1.22 * MSS / (RTT * sqrt(loss)).

    Source: Mathis, Semke, Mahdavi, Ott 1997, "The macroscopic behavior of the TCP congestion avoidance
    algorithm", equation 3 with the constant for delayed acknowledgements left out.
    """
    with np.errstate(over="ignore", divide="ignore"):
        return 1.22 * 8 * SEGMENT_BYTES / np.asarray(latency_s * np.sqrt(loss), dtype=np.float64)
