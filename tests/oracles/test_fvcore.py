"""fvcore as an independent count of the forward pass."""

from __future__ import annotations

import pytest
from builders import BY_DAY, build_net
from nightly import mostly

from edgefl.compute.modules import forward_counts
from edgefl.core import catalogue


@pytest.mark.parametrize("name", mostly(catalogue.entries("models"), BY_DAY))
def test_fvcore_agrees_on_the_forward_pass(name: str):
    """Fvcore's multiply-adds of convolutions and linear layers are half of the traced operations, exactly."""
    found = forward_counts(build_net(name, (3, 32, 32), 10))
    assert found.fvcore_flops == found.traced_flops > 0
