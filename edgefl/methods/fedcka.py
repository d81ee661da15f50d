"""FedCKA: first layers similar to the received model's rather than to the client's previous one's.

Comparisons Where It Matters: Using Layer-Wise Regularization to Improve Federated Learning on Heterogeneous
Data, Equations 1-3. A step minimises the base's objective + mu * l_cka::

    l_cka = (1 / M) * sum over the first M layers of -log[e^s(a, g) / (e^s(a, g) + e^s(a, v))]

a, g and v are a layer's flattened activations (B, d) of one batch in the training, the received and the
client's previous model; s is linear CKA. Gradients flow through a alone. The two frozen models run in
evaluation mode and end after layer M, so that a client keeps the tensors before it and no others. Of the
7-layer CNN, M = 7 compares the logits, too (Figure 6).

Algorithm 1 prints w_l where Equation 1 has the received w_g. What the paper leaves open: where a layer is
read (after its nonlinearity, before pooling), the sign of the Frobenius norm (s = -||a - g||_F^2), the width
of the kernel (``bandwidth``; 0.8 is one of those of Kornblith et al. 2019), the first participation (v = g,
so that the term is log 2 and has no gradient), and batches of one sample, which have no CKA (no term, with
any similarity).
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.components import AnyMethod
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Carry,
    Method,
    Net,
    Seen,
    Site,
    Tree,
    layers_of,
    needs_received,
    reading,
    tensors_before,
    with_previous,
)
from edgefl.protocol.similarities import (
    alignment,
    contrast,
    cosine,
    gaussian_gram,
    linear_gram,
)


class Params(MethodParams):
    NEUTRAL: ClassVar = {"mu": 0.0}

    mu: Annotated[float, Field(ge=0, description="weight of the term; 0 is the base method")] = 3.0
    layers: Annotated[
        int | None,
        Field(
            ge=1,
            description="how many of the first layers are compared, M, the classifier after the body's last; "
            "null is 2, or 1 if there is one",
        ),
    ] = None
    similarity: Annotated[
        Literal["linear", "kernel", "frobenius", "cosine"],
        Field(description="linear CKA, kernel CKA, minus the squared Frobenius norm, or the cosine"),
    ] = "linear"
    bandwidth: Annotated[
        float, Field(gt=0, description="of kernel CKA: its width as a share of the median distance")
    ] = 0.8
    base: Annotated[AnyMethod, Field(description="the method whose objective has the term")] = "fedavg"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the net has fewer layers or the base leaves the body with its clients."""
        net = site.net
        if not self.mu:
            return site.base(net)
        count, (prepared, similarity) = self.layers or _default(net), _similarity(self)
        # The layer after the body's is the classifier, and its activation the logits.
        names, whole = net.first_layers(count), count > len(net.layers)
        needed = net.parts() if whole else tensors_before(net, names)

        def kept(weights: Tree) -> Tree:
            return {part: {name: weights[part][name] for name in found} for part, found in needed.items()}

        def loss(seen: Seen, carry: Carry) -> Tensor:
            if seen.x.shape[0] == 1:
                return seen.logits.new_zeros(())
            frozen = [_filled(seen.weights, carry["fedcka"][model]) for model in ("received", "previous")]
            others = [_outputs(seen.net, weights, seen.x, names, whole=whole) for weights in frozen]
            mine = [*(seen.layers[name] for name in names), *([seen.logits] if whole else [])]
            terms = []
            for layers in zip(mine, *others, strict=True):
                own, *of_frozen = (prepared(layer.flatten(1)) for layer in layers)
                terms.append(contrast(*(similarity(own, other) for other in of_frozen)))
            return self.mu * torch.stack(terms).mean()

        base = site.base(net.with_term(loss, names))
        needs_received("fedcka", base, self.base, net, ("body", "head") if whole else ("body",))
        return with_previous(base, "fedcka", net, kept)


def _outputs(net: Net, weights: Tree, x: Tensor, names: tuple[str, ...], *, whole: bool) -> list[Tensor]:
    """The activations of some layers and, of a whole model, its logits, without a gradient."""
    if not whole:
        found = layers_of(net, weights, x, names)
        return [found[name] for name in names]
    with torch.no_grad(), reading(names) as found:
        logits = net.logits(weights, x)
    return [*(found[name] for name in names), logits]


def _filled(weights: Tree, some: Tree) -> Tree:
    """The weights, those in ``some`` replaced."""
    return {part: {**tensors, **some.get(part, {})} for part, tensors in weights.items()}


def _default(net: Net) -> int:
    return 1 if len(net.layers) == 1 else 2


def _similarity(params: Params) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]:
    """The similarity of two layers' activations (B, d): what is computed of each, and of two such results."""
    gaussian = partial(gaussian_gram, bandwidth=params.bandwidth)
    chosen: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
        "linear": (linear_gram, alignment),
        "kernel": (gaussian, alignment),
        "frobenius": (torch.Tensor.contiguous, lambda x, y: -(x - y).square().sum()),
        "cosine": (torch.Tensor.flatten, cosine),
    }
    return chosen[params.similarity]
