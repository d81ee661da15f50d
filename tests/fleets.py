"""Hypothesis's strategies for small runs over every policy, selector, availability, speed and failure."""

import math

from hypothesis import strategies as st
from plans import plan, prices, sourced

from edgefl.core import catalogue
from edgefl.core.devices import Battery, Throttling
from edgefl.core.fleet import Failures
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.samplers.lognormal import Params as LogNormal
from edgefl.core.yamls import RESOLVED

OPTIONAL = {"most_stale": st.none() | st.integers(0, 3), "concurrency": st.none() | st.integers(1, 4)}
STALENESS = st.fixed_dictionaries(
    {"shape": st.sampled_from(["constant", "polynomial", "hinge"]), "a": st.floats(0.1, 2)}
)
LATE = {
    "late": st.sampled_from(["drop", "merge"]),
    "staleness": STALENESS,
    "allow_partial": st.booleans(),
}
POLICIES = {
    "sync": st.just({}),
    "deadline": st.fixed_dictionaries({"seconds": st.floats(1, 30), **LATE})
    | st.fixed_dictionaries({"quantile": st.floats(0.1, 1), **LATE}),
    "overselect": st.fixed_dictionaries({"factor": st.floats(1, 3)}),
    "semi-sync": st.fixed_dictionaries({"interval": st.floats(1, 30), "staleness": STALENESS}),
    "fedasync": st.fixed_dictionaries(
        {"alpha": st.floats(0.1, 1), "staleness": STALENESS, **OPTIONAL},
    ),
    "fedbuff": st.fixed_dictionaries(
        {
            "buffer": st.integers(1, 4),
            "server_rate": st.floats(0.5, 2),
            "weights": st.sampled_from(["equal", "samples"]),
            "staleness": STALENESS,
            **OPTIONAL,
        }
    ),
}
# Those whose rounds have one exchange.
STREAMS = ("semi-sync", "fedasync", "fedbuff")
SELECTORS = {
    "random": st.just({}),
    "round-robin": st.just({}),
    "fastest": st.just({}),
    "tiers": st.fixed_dictionaries(
        {"tiers": st.integers(1, 4), "credits": st.integers(1, 3), "interval": st.integers(1, 3)}
    ),
    "power-of-choice": st.fixed_dictionaries({"factor": st.floats(1, 3)}),
    "oort": st.fixed_dictionaries(
        {"window": st.integers(1, 3), "picks": st.none() | st.integers(1, 3), "scaled": st.booleans()}
    ),
    "energy-aware": st.fixed_dictionaries({"minimum": st.floats(0, 1)}),
}
OFTEN = {"highest": st.floats(0.5, 1), "correlation": st.floats(10, 100)}
AVAILABILITY = {
    "always": st.just({}),
    "markov": st.fixed_dictionaries({"on": st.floats(20, 200), "off": st.floats(5, 100)}),
    "diurnal": st.fixed_dictionaries(
        {"mean": st.floats(0.3, 0.5), "amplitude": st.floats(0, 0.9), "correlation": st.floats(10, 100)}
    ),
    "by-data": st.fixed_dictionaries({"power": st.floats(-1, 1), **OFTEN}),
    "lognormal": st.fixed_dictionaries({"sigma": st.floats(0, 1), **OFTEN}),
    "charging": st.fixed_dictionaries(
        {
            "plug_in": st.floats(0, 23),
            "days": st.just(1.0),
            "zones": st.just((0.0, 8.0, 16.0)),
        },
        optional={"capacity": st.floats(200, 5000), "minimum": st.just(0.0) | st.floats(0.1, 0.5)},
    ),
    "intervals": st.sampled_from(
        ["0,0,50 0,70,90 1,20,100", "0,0,30 1,10.5,60 2,40,100", "0,3,100 2,0,9"]
    ).map(lambda rows: {"rows": rows, "repeat": 100}),
}
SPEED = {
    "load": st.fixed_dictionaries(
        {"share": st.floats(0.1, 0.9), "length": st.floats(1, 20), "factor": st.floats(0.2, 1)}
    ),
    "thermal": st.fixed_dictionaries(
        {"steps": st.integers(1, 4)},
        optional={
            "onset": st.floats(0, 10),
            "fall": st.floats(1, 10),
            "floor": st.floats(0.2, 1),
            "recovery": st.floats(1, 50),
        },
    ),
}


def valid(record, **params):
    """A record of plain numbers in base units."""
    return record.model_validate(params, context=RESOLVED)


def _device(record, **numbers):
    """A part of a device's file; numbers in base units."""
    return valid(record, **{name: sourced(value) for name, value in numbers.items()})


# Three devices: two with batteries, which last for some jobs, and two that throttle.
DEVICES = {
    "batteries": (
        _device(Battery, capacity=1000, charge_power=2, charge_efficiency=0.9, cut_off=0.3),
        None,
        _device(Battery, capacity=300),
    ),
    "throttling": (
        _device(Throttling, after=3, over=4, to=0.5, recovery=10),
        None,
        _device(Throttling, after=0, over=1, to=0.3, recovery=2),
    ),
}
FAILURES = st.builds(
    lambda **params: valid(Failures, **params),
    crash=st.sampled_from([0, 0, 0.3]),
    crash_per_hour=st.sampled_from([0, 0, 60]),
    corrupt=st.sampled_from([0, 0, 0.4]),
    retries=st.integers(0, 2),
    timeout=st.none() | st.floats(10, 60),
)
# Virtual seconds after which a run is over, whatever happens; two hours where clients charge.
LIMIT_S, CHARGING_LIMIT_S = 1000.0, 7200.0


def built(kind, strategies):
    """A name of a kind and its parameters."""

    def of(name):
        record = catalogue.load(kind, name).Params
        return st.tuples(st.just(name), strategies[name].map(lambda params: valid(record, **params)))

    return st.sampled_from(sorted(strategies)).flatmap(of)


def only(strategies, *names):
    """Some of the strategies."""
    return {name: strategies[name] for name in names}


@st.composite
def tables(draw, count, *, stream, instant):
    """Exchanges of every kind.

    If ``stream``, one in each round, with chosen clients; if ``instant``, also jobs that take no time.
    """

    def column(values):
        return draw(st.lists(values, min_size=count, max_size=count))

    # A client's radio is the same in every exchange.
    radio_w, tail_s = column(st.sampled_from([1.0, 1.0, 1.0, math.nan])), column(st.floats(0, 3))

    def exchange(name, at, *, single):
        seconds = st.just(0.0) | st.floats(0.5, 5)
        compute_s = seconds if instant else st.floats(0.5, 5)
        return prices(
            name,
            count,
            at=at,
            every=1 if single else draw(st.integers(1, 2)),
            everyone=not single and draw(st.booleans()),
            stateful=draw(st.booleans()),
            down_s=column(seconds),
            compute_s=column(compute_s),
            up_s=column(seconds),
            down_bps=column(st.floats(1e6, 8e6)),
            up_bps=column(st.floats(1e6, 8e6)),
            down_bytes=column(st.integers(0, 10**6)),
            up_bytes=column(st.integers(0, 10**6)),
            flops=column(st.integers(0, 10**12)),
            steps=column(st.integers(1, 9)),
            radio_w=radio_w,
            receive_j_per_mbit=0.1,
            transmit_j_per_mbit=0.2,
            compute_w=column(st.floats(0, 5)),
            idle_w=1.0,
            tail_w=0.5,
            tail_s=tail_s,
        )

    rounds = 1 if stream else draw(st.integers(1, 2))
    found = [exchange(f"train-{place}", "round", single=stream) for place in range(rounds)]
    found += [exchange(at, at, single=False) for at in ("start", "end") if draw(st.booleans())]
    return found


@st.composite
def fleets(
    draw,
    *,
    policies=POLICIES,
    selectors=SELECTORS,
    availability=AVAILABILITY,
    speed=SPEED,
    instant=True,
    **given,
):
    """Plans of 1 to 8 clients; ``given`` replaces what ``plans.plan`` is given."""
    count = draw(st.integers(1, 8))
    policy, params = draw(built("policies", policies))
    there = draw(built("availability", availability))[1]
    if there.name != "charging":
        selectors = {name: values for name, values in selectors.items() if name != "energy-aware"}
    selector, choice = draw(built("selectors", selectors))
    limit_s = CHARGING_LIMIT_S if there.name == "charging" else LIMIT_S
    participants = draw(st.integers(1, count))
    others = draw(
        st.fixed_dictionaries(
            {},
            optional={"time": st.floats(1, 200), "bytes": st.integers(1, 10**7), "energy": st.floats(1, 500)},
        )
    )
    values = {
        "until": {"time": limit_s, **others, "rounds": draw(st.integers(1, 6))},
        "participants": participants
        if policy == "overselect"
        else draw(st.sampled_from([None, participants])),
        "every": draw(st.integers(1, 2)),
        "seed": draw(st.integers(0, 999)),
        "slowdown": draw(st.lists(st.floats(0.5, 2), min_size=count, max_size=count)),
        "samples": draw(st.lists(st.integers(1, 50), min_size=count, max_size=count)),
        "refused": draw(st.sets(st.integers(1, 8), max_size=2)) & set(range(1, count)),
        "jitter": draw(st.sampled_from([Fixed(), LogNormal(sigma=0.3)])),
        "on_leave": draw(st.sampled_from(["lose", "pause", "finish", "check-at-end"])),
        "speed": draw(st.lists(built("speed", speed), max_size=2)) if speed else [],
        "failures": draw(FAILURES),
        "device": draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)),
        **DEVICES,
    }
    values["speed"] = tuple(params for _, params in values["speed"])
    table = draw(tables(count, stream=policy in STREAMS, instant=instant))
    return plan(
        table,
        policy=policy,
        params=params,
        selector=selector,
        choice=choice,
        availability=there,
        **{**values, **given},
    )
