"""Laws of what the tracer reads off methods: jobs add up, and more work never costs less."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from builders import build_method, build_net
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.compute import meta
from edgefl.core import catalogue
from edgefl.core.cost import Cost, Trace, Work
from edgefl.protocol import Exchange, Method, Net

METHODS = tuple(catalogue.entries("methods"))
NETS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "mlp": ("mlp", (1, 3, 4), {"hidden": (8,)}),
    "cnn": ("cnn2", (1, 16, 16), {"channels": (2, 3), "hidden": 6}),
    "batch norm": ("spherefed-convnet", (3, 4, 4), {"norm": "batch"}),
}
CLASSES = 5
LARGEST = 40

methods = st.sampled_from(METHODS)
nets = st.sampled_from(tuple(NETS))
batches = st.integers(2, LARGEST)


# Few: edgefl keeps the shapes of 64 nets, and one that it had to build anew in a trace would be traced too.
@lru_cache(maxsize=16)
def built(name: str, net: str) -> tuple[Method, Net]:
    """A method with its defaults on a small net."""
    model, shape, settings_ = NETS[net]
    found = build_net(model, shape, CLASSES, **settings_)
    return build_method(name, found), found


def exchanges(name: str, net: str) -> tuple[Exchange, ...]:
    """Those with steps."""
    return tuple(one for one in built(name, net)[0].exchanges if one.work.phases)


def traced(name: str, net: str, exchange: Exchange, kinds: list[dict[int, int]]) -> Trace:
    """What an exchange costs clients whose phases all take these steps."""
    method, found = built(name, net)
    return meta.trace(method, exchange, found, [[kind] * len(exchange.work.phases) for kind in kinds])


@cache
def alone(name: str, net: str, place: int, batch: int) -> Trace:
    """One batch size, and no step at all, traced for themselves."""
    return traced(name, net, exchanges(name, net)[place], [{}, {batch: 1}])


def cost(trace: Trace, counts: dict[int, int]) -> Cost:
    """A job with these steps in each phase."""
    return trace.cost([counts] * len(trace.phases))


def size(work: Work) -> tuple[int, int, int]:
    """Operations, bytes moved, kernels."""
    return work.flops, work.bytes, work.launches


@given(methods, nets, batches, st.integers(0, 9), st.integers(0, 9))
def test_a_jobs_steps_add_up(name, net, batch, many, few):
    """Work of n + m steps and of none is that of n and of m: what frames the steps is paid once a job."""
    for place in range(len(exchanges(name, net))):
        trace = alone(name, net, place, batch)
        none, both = cost(trace, {}), cost(trace, {batch: many + few} if many + few else {})
        first, second = (cost(trace, {batch: steps} if steps else {}) for steps in (many, few))
        assert both.work + none.work == first.work + second.work
        assert size((both + none).work) == size((first + second).work)
        # A step more moves neither traffic nor the worst moment.
        assert (both.down, both.up) == (none.down, none.up)
        assert both.peak_bytes == max(first.peak_bytes, second.peak_bytes)


@settings(max_examples=8)
@given(methods, nets, st.sets(batches, min_size=4, max_size=10))
def test_interpolated_sizes_are_traced_sizes(name, net, wanted):
    """Asked for many batch sizes at once, the tracer gives for each what it gives for that size alone."""
    for place, exchange in enumerate(exchanges(name, net)):
        together = traced(name, net, exchange, [dict.fromkeys(wanted, 1)])
        for number, phase in enumerate(together.phases):
            for batch in wanted:
                assert phase.steps[batch] == alone(name, net, place, batch).phases[number].steps[batch], batch
        (peak,) = together.peaks.values()
        assert peak == cost(alone(name, net, place, max(wanted)), {max(wanted): 1}).peak
