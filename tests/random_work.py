"""Random work for laws: matrix products, elementwise kernels, and a few of both together."""

from hardware import product
from hypothesis import strategies as st

from edgefl.core.cost import DENSE, DEPTHWISE, ELEMENTWISE, Kernel, Work

SIDES = st.integers(1, 300)
products = st.builds(
    product, SIDES, SIDES, SIDES, st.integers(1, 8), kind=st.sampled_from([DENSE, DEPTHWISE])
)
moves = st.builds(
    lambda size: Kernel("relu", ELEMENTWISE, "forward", "", 0, 0, 0, 1, 0, 4 * size), st.integers(0, 10**6)
)
works = st.builds(Work.of, st.lists(st.one_of(products, moves), min_size=1, max_size=5))
