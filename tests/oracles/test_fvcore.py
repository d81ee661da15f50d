"""fvcore as an independent count of the forward pass."""

from __future__ import annotations

import pytest
from builders import BY_DAY, build_net
from nightly import mostly

from edgefl.compute.modules import fvcore_flops, layers, traced_flops
from edgefl.core import catalogue


@pytest.mark.parametrize("name", mostly(catalogue.entries("models"), BY_DAY))
def test_fvcore_agrees_on_the_forward_pass(name: str):
    """Fvcore's multiply-adds of convolutions and linear layers are half of the traced operations, exactly."""
    net = build_net(name, (3, 32, 32), 10)
    assert traced_flops(net) > 0
    assert fvcore_flops(net) == traced_flops(net)
    # The per-module breakdown leaves nothing out.
    assert sum(one.fvcore_flops for one in layers(net).modules) == traced_flops(net)
