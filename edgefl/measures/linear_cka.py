"""Linear CKA by layer: to a reference model, between clients of a merge, to what they got and what they made.

    CKA(X, Y) = ||Y^T X||_F^2 / (||X^T X||_F ||Y^T Y||_F)

of activations X (n, d) and Y (n, d') of the same n test samples, with centred columns (Kornblith et al.
2019, section 3; Lee et al. 2024, FLex&Chill, compare layers with those of a model trained on i.i.d. data).
Activations are flattened. "trained" is what each client of the last merge trained, before the merge: its
similarity to the reference, to the model that the client received and to the new global model, and the mean
over pairs of clients (REF, INIT, AGG and the clients in FLex&Chill's Figure 6). All layers together are their
mean. ``pairs`` adds the matrices of clients themselves, as in FedCKA's Figure 2 (Son et al. 2022) and
FLex&Chill's: a row for each client and each other one, the layer in the figure's name.

Layers are those that the model names (``Net.layers``), the features that the head gets, and the logits. The
samples are spread evenly over the test set.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.errors import UserError
from edgefl.measures import Measure
from edgefl.measures._layers import LOGITS, activations, layer_names
from edgefl.measures._over_clients import means
from edgefl.protocol import Net, Observation, Predictor, Row, flatten, read_tree, tree_map
from edgefl.protocol.similarities import alignment, linear_gram

# Clients in a matrix, which has the square of that many entries.
_MOST = 20
_REFERENCE, _CLIENTS, _MERGED, _RECEIVED = "to reference", "between clients", "to global", "to received"


class Params(Measure):
    reference: str | None = Field(
        None, description="A file in the folder versions of another run of the same model."
    )
    samples: int = Field(500, ge=2, description="Test samples at most; memory grows with their square.")
    pairs: bool = Field(
        False, description=f"Whether each pair has rows, of the merge's first {_MOST} clients."
    )

    def check(self, net: Net) -> None:
        """Raises a ``UserError`` if the reference is missing, damaged or of another model."""
        if self.reference is not None:
            _reference(self.reference, net)

    def measure(self, seen: Observation) -> Iterator[Row]:
        places = seen.spread_out(self.samples)

        def layers(predictor: Predictor, net: Net = seen.net) -> dict[str, Tensor]:
            names = layer_names(net) if predictor.has_layers(net) else (LOGITS,)
            return {
                # Of a layer, the products of pairs of samples are enough, and much less than its activations.
                name: linear_gram(
                    activations(seen, net, predictor, name, places).flatten(1).to(torch.float64)
                )
                for name in names
            }

        merged = {} if seen.global_model is None else layers(seen.global_model)
        reference: dict[str, Tensor] = {}
        if self.reference is not None:
            device = seen.images(places[:1]).device
            reference = layers(_reference(self.reference, seen.net, device))
        yield from _rows(_similar(merged, reference), _REFERENCE, "global")
        trained = {one.client: layers(one.trained, one.net) for one in seen.participants}
        yield from _to(_REFERENCE, trained, dict.fromkeys(trained, reference))
        yield from _to(_MERGED, trained, dict.fromkeys(trained, merged))
        pairs = []
        shown = sorted(trained)[: _MOST if self.pairs else 0]
        for pair in combinations(trained, 2):
            found = _similar(*(trained[client] for client in pair))
            pairs.append(found)
            if set(pair) <= set(shown):
                yield from _entries(found, *pair)
        yield from _rows(means(pairs), _CLIENTS, "trained")
        received: dict[int, dict[str, Tensor]] = {}
        sending = [each for each in seen.participants if each.sent]
        for each in sending:
            if id(each.start) not in received:
                received[id(each.start)] = layers(each.start, each.net)
        yield from _to(_RECEIVED, trained, {each.client: received[id(each.start)] for each in sending})


def _to(
    figure: str,
    trained: Mapping[int, Mapping[str, Tensor]],
    others: Mapping[int, Mapping[str, Tensor]],
) -> Iterator[Row]:
    """The similarity of clients' models to others, and its mean over clients."""
    found = {client: _similar(trained[client], other) for client, other in others.items()}
    for client, by_layer in found.items():
        yield from _rows(by_layer, figure, "trained", client)
    yield from _rows(means(found.values()), figure, "trained")


def _entries(found: Mapping[str, float], one: int, other: int) -> Iterator[Row]:
    """Both entries of a pair in each layer's matrix, and in that of their mean."""
    for name, value in {**found, "": float(np.mean(list(found.values())))}.items():
        for client, label in ((other, one), (one, other)):
            yield Row(value, f"pairs {name}".strip(), "trained", client, f"client {label}")


def _similar(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> dict[str, float]:
    """The similarity of each layer that both models have."""
    return {name: float(alignment(x, other[name])) for name, x in one.items() if name in other}


def _rows(by_layer: Mapping[str, float], figure: str, model: str, client: int | None = None) -> Iterator[Row]:
    for name, value in by_layer.items():
        yield Row(value, figure, model, client, name)
    if by_layer:
        yield Row(float(np.mean(list(by_layer.values()))), figure, model, client)


def _reference(file: str, net: Net, device: torch.device | None = None) -> Predictor:
    """The model in a version's file."""
    path = Path(file).expanduser()
    if not path.is_file():
        raise UserError(
            f"there is no file {file}",
            hint="reference is a version's file of a run, as in runs/.../versions/000030.safetensors",
        )
    tree = read_tree(path)
    found = {part: tree.get(part, {}) if isinstance(tree, dict) else {} for part in net.parts()}
    ours, theirs = (
        {key: tuple(leaf.shape) for key, leaf in flatten(each).items()} for each in (net.on_meta(), found)
    )
    for key, shape in ours.items():
        if theirs.get(key) != shape:
            has = f"its {key} is {theirs[key]}, not {shape}" if key in theirs else f"it has no {key}"
            raise UserError(
                f"{path.name} is not a version of this model, {net.name}: {has}",
                where=str(path),
                hint="name a version of a run of the same model, by a method with a global model",
            )
    return Predictor(tree_map(lambda leaf: leaf.to(device or leaf.device), found), net.logits)
