"""Tracing imports no compiler, and frees a step's tensors when the step drops them."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
TRACES = f"""
import gc, sys
gc.disable()
sys.path.insert(0, {str(TESTS)!r})
from builders import NETS, build_method, build_net
from edgefl.compute.meta import trace
from edgefl.protocol.meta_device import without_compiler

model, shape, settings = NETS["batch norm"]
net = build_net(model, shape, 5, **settings)
method = build_method("fedavg", net)
(exchange,) = (one for one in method.exchanges if one.work.phases)
first, again = (trace(method, exchange, net, [[{{4: 1, 8: 1}}]]).peaks for _ in range(2))
assert first == again, (first, again)
assert not {{"torch._dynamo", "sympy", "torch.fx.experimental.symbolic_shapes"}} & set(sys.modules)
with without_compiler():
    from torch._dynamo import optimize
assert sys.modules["torch._dynamo"].optimize is optimize, "what is not answered is imported"
"""


@pytest.mark.nightly
def test_tracing_imports_no_compiler():
    subprocess.run([sys.executable, "-c", TRACES], check=True)
