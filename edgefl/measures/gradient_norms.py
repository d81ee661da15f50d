"""Gradient norms by layer, sample by sample, and apart for samples that are classified rightly and wrongly.

    g_i = ||d l_i / d w||_2,        l_i the method's loss of sample i at its training temperature

at the new global model w, over training samples of the clients of the last merge (Lee et al. 2024,
FLex&Chill, section 3.1.1 and Figure 1, which has the layer next to the input). Of each layer there are the
mean, the median and the outer deciles over samples; all layers together are the norm of the
whole gradient. A method's other terms do not count. The network is in evaluation mode, images are not
augmented.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.params import Positive
from edgefl.measures import Measure
from edgefl.measures._layers import layer_of
from edgefl.protocol import BUFFERS, Net, Observation, Predictor, Row, fit_loss, leaves, rebuild

_QUANTILES = {"p10": 0.1, "median": 0.5, "p90": 0.9}


class Params(Measure):
    NEEDS = ("global model", "participants")

    samples: int | None = Field(20, gt=0, description="Training samples of each client at most; null: all.")
    temperature: Positive | None = Field(
        None,
        description="What divides logits; null: the method's, if it does not differ by job or round.",
    )

    def measure(self, seen: Observation) -> Iterator[Row]:
        model = seen.model
        if not model.has_layers(seen.net):
            return
        net = model.net or seen.net
        if self.temperature is not None:
            net = replace(net, temperature=self.temperature, sample_temperature=None)
        norms: dict[str, dict[str, list[float]]] = {"correct": {}, "wrong": {}, "": {}}
        for client in dict.fromkeys(one.client for one in seen.participants):
            batch = seen.training(client, self.samples)
            for place in range(len(batch.y)):
                right, by_layer = _norms(model, net, *(values[place : place + 1] for values in batch))
                for group in ("", "correct" if right else "wrong"):
                    for layer, norm in by_layer.items():
                        norms[group].setdefault(layer, []).append(norm)
        every = [(group, layer, norms[group][layer]) for group in norms for layer in norms[group]]
        yield from (Row(float(np.mean(values)), group, label=layer) for group, layer, values in every)
        for name, share in _QUANTILES.items():
            for group, layer, values in every:
                yield Row(float(np.quantile(values, share)), f"{group} {name}".strip(), label=layer)


def _norms(model: Predictor, net: Net, x: Tensor, y: Tensor) -> tuple[bool, Mapping[str, float]]:
    """Whether a sample is classified rightly, and its gradient's norm by layer and, under "", of all."""
    chosen = {part: tree for part, tree in model.weights.items() if part in net.parts() and part != BUFFERS}
    live = [leaf.detach().requires_grad_() for leaf in leaves(chosen)]
    weights = {**model.weights, **rebuild(chosen, live)}
    with torch.enable_grad():
        logits = model.logits(weights, x)
        loss = fit_loss(net, logits, y, {})
        gradients = torch.autograd.grad(loss, live, allow_unused=True, materialize_grads=True)
    squares = defaultdict[str, float](float)
    layers = [layer_of(part, name) for part, tree in chosen.items() for name in tree]
    for layer, gradient in zip(layers, gradients, strict=True):
        square = float(gradient.to(torch.float64).square().sum())
        squares[layer] += square
        squares[""] += square
    return int(logits.argmax()) == int(y), {name: square**0.5 for name, square in squares.items()}
