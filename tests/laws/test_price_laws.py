"""Laws of prices: more is never less, slower is never cheaper, and unknown is never zero."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from plans import cost, device, kernel, link

from edgefl.core.cost import OP_CLASSES, Work
from edgefl.core.price import Pricer, transfer_seconds

SIZES = st.integers(0, 10**9)
WATTS = st.floats(0, 5)
kernels = st.builds(kernel, kind=st.sampled_from(OP_CLASSES), flops=SIZES, size=SIZES)
works = st.builds(Work.of, st.lists(kernels, max_size=5))
rates = st.floats(1e3, 1e9)
factors = st.floats(1, 100)
radios = st.fixed_dictionaries(
    {"base": st.builds("{} W".format, WATTS), "tail": st.builds("{} W".format, WATTS)},
    optional={"up_w_per_mbps": WATTS, "down_w_per_mbps": WATTS, "tail_time": st.builds("{} s".format, WATTS)},
)
SLACK = 1 + 1e-9


def _no_dearer(less, more):
    """Whether no phase of the first price exceeds the second's, but for rounding."""
    names = ("down_s", "compute_s", "up_s", "receive_j", "compute_j", "transmit_j")
    return all(getattr(less, name) <= getattr(more, name) * SLACK for name in names)


@given(works, SIZES, SIZES, works, SIZES, SIZES, radios)
def test_more_work_or_bytes_never_cost_less(work, down, up, more_work, more_down, more_up, radio):
    """Adding kernels or payload makes no phase shorter and none cheaper."""
    pricer, way = Pricer("board", device()), link(radio=radio)
    less = pricer.price(cost(work, down, up), way)
    more = pricer.price(cost(work + more_work, down + more_down, up + more_up), way)
    assert _no_dearer(less, more)


@given(kernels, SIZES, SIZES)
def test_a_larger_kernel_never_takes_less(one, flops, size):
    """More operations or bytes in a kernel never make it faster."""
    pricer = Pricer("board", device())
    larger = one._replace(flops=one.flops + flops, bytes=one.bytes + size)
    assert pricer.kernel_seconds(larger) >= pricer.kernel_seconds(one)


@given(works, factors, factors, factors, st.floats(0, 1))
def test_a_slower_device_is_never_faster_or_cheaper(work, clock, memory, efficiency, launch):
    """A slower clock, memory or launch, or a lower efficiency, makes no work faster or cheaper."""
    fast = Pricer("fast", device())
    slow = Pricer(
        "slow",
        device(peak=10e9 / clock, bandwidth=1e9 / memory, dense=0.5 / efficiency, launch=1e-3 + launch),
    )
    assert _no_dearer(fast.price(cost(work), link()), slow.price(cost(work), link()))


@given(SIZES, SIZES, rates, rates, factors, factors, st.floats(0, 9), radios)
def test_a_slower_link_is_never_faster_or_cheaper(
    down, up, down_rate, up_rate, slower_down, slower_up, delay, radio
):
    """A lower rate or a longer round trip makes no transfer faster or cheaper, whatever the radio draws."""
    pricer = Pricer("board", device())
    near = link(down=down_rate, up=up_rate, radio=radio)
    far = link(down=down_rate / slower_down, up=up_rate / slower_up, latency=0.5 + delay, radio=radio)
    assert _no_dearer(pricer.price(cost(None, down, up), near), pricer.price(cost(None, down, up), far))


@given(works, works, st.integers(0, 1000))
def test_compute_adds_up_over_steps(one, two, steps):
    """Time and energy of n steps and another work are n times the step's and the other's."""
    pricer, way = Pricer("board", device()), link()
    first, second = (pricer.price(cost(work), way) for work in (one, two))
    both = pricer.price(cost(one * steps + two), way)
    assert math.isclose(
        both.compute_s, steps * first.compute_s + second.compute_s, rel_tol=1e-9, abs_tol=1e-12
    )
    assert math.isclose(
        both.compute_j, steps * first.compute_j + second.compute_j, rel_tol=1e-9, abs_tol=1e-12
    )


@given(works, SIZES, SIZES)
def test_a_price_is_the_sum_of_its_phases(work, down, up):
    """Seconds and joules are those of the three phases together."""
    price = Pricer("board", device()).price(cost(work, down, up), link())
    assert price.seconds == price.down_s + price.compute_s + price.up_s
    assert price.joules == price.receive_j + price.compute_j + price.transmit_j


@given(works, st.integers(1, 10**9), st.integers(1, 10**9))
def test_unknown_energy_stays_unknown(work, down, up):
    """An unknown power or radio makes what needs it unknown, and the total with it; times stay known."""
    job = cost(work, down, up)
    known = Pricer("board", device()).price(job, link())
    no_idle = Pricer("board", device(idle=None)).price(job, link())
    no_active = Pricer("board", device(active=None)).price(job, link())
    no_radio = Pricer("board", device()).price(job, link(radio="unknown"))
    assert (no_idle.receive_j, no_idle.compute_j, no_idle.transmit_j) == (None, known.compute_j, None)
    assert (no_active.receive_j, no_active.compute_j, no_active.transmit_j) == (
        known.receive_j,
        None,
        known.transmit_j,
    )
    assert (no_radio.receive_j, no_radio.compute_j, no_radio.transmit_j) == (None, known.compute_j, None)
    for price in (no_idle, no_active, no_radio):
        assert price.joules is None
        assert price.seconds == known.seconds


@given(rates, st.floats(0, 9))
def test_an_empty_payload_takes_nothing(rate, latency):
    """Nothing to send takes neither time nor energy, not even the round trip, and needs no known radio."""
    price = Pricer("board", device(idle=None)).price(
        cost(), link(down=rate, latency=latency, radio="unknown")
    )
    assert (price.down_s, price.up_s, price.receive_j, price.transmit_j) == (0, 0, 0, 0)
    assert transfer_seconds(0, rate, latency) == 0
