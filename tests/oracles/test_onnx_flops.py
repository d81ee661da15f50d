"""An exported graph and the trace of the same forward pass have the same products."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest
import torch
from builders import BY_DAY, build_net
from nightly import mostly

from edgefl.compute import meta
from edgefl.core import catalogue
from edgefl.data import Spec
from edgefl.export.graph import Served, to_onnx
from edgefl.export.kernels import GraphCost
from edgefl.export.model import ExportForm, Graph, read_model
from edgefl.protocol import Predictor

pytestmark = pytest.mark.usefixtures("one_registry")

SHAPE, CLASSES = (3, 32, 32), 10
SPEC = Spec("colours", SHAPE, CLASSES, 1, 1, tuple(map(str, range(CLASSES))), (0.5,) * 3, (0.25,) * 3)


def products(found):
    """How often each product occurs."""
    return Counter((one.kind, one.m, one.n, one.k, one.groups) for one in found if one.flops)


@pytest.mark.parametrize("name", mostly(catalogue.entries("models"), BY_DAY))
def test_graph_and_trace_have_the_same_products(name: str, tmp_path):
    """Every shipped model, at two batch sizes: the same FLOPs, product by product."""
    net, form = build_net(name, SHAPE, CLASSES), ExportForm()
    served = Served(Predictor(net.init(0), net.logits), SPEC, form)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        content = to_onnx(served, SHAPE, form, {})
    file = tmp_path / "m.onnx"
    file.write_bytes(content)
    for batch in (1, 4):
        exported = [one.kernel for one in GraphCost(Graph(read_model(file), batch)).kernels()]
        traced = meta.forward_kernels(net, batch)
        assert products(exported) == products(traced)
        assert sum(one.flops for one in exported) == sum(one.flops for one in traced) > 0
