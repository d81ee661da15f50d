"""The features that a run's last models have of test samples, for t-SNE and the like elsewhere."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import torch

from edgefl.core.errors import UserError
from edgefl.data.batching import normalised
from edgefl.export.trained import TrainedVersion, trained
from edgefl.planning.learning import DataAccess
from edgefl.protocol.observation import CHUNK
from edgefl.show.formats import write_csv
from edgefl.store.folders import runs_in


def write_features(folders: Sequence[Path], stream: TextIO) -> None:
    """Writes comma-separated values, a row for each test sample: run, client, sample, label and features.

    Features are those that the head gets: of the global model on all test samples, or, where the method has
    none, of each client's own model on its own. Where widths differ, rows end in empty cells. The folders
    are runs or groups.

    Raises:
        UserError: a run has no models, or a model no features.
    """
    access = DataAccess(download=False)
    found = [trained(run, access) for folder in folders for run in runs_in(folder)]
    width = max(net.feature_width for one in found for net in one.learning.nets)
    heads = ["run", "client", "sample", "label", *(f"feature_{place}" for place in range(width))]
    write_csv(stream, heads, ([one.meta["name"], *row] for one in found for row in _rows(one)))


def _rows(one: TrainedVersion) -> Iterator[list[Any]]:
    federation, learning = one.federation, one.learning
    own = learning.methods[0].global_model is None
    sets: Any = enumerate(federation.test_parts) if own else [(None, federation.test)]
    for client, samples in sets:
        predictor = one.predictor(client)
        net = predictor.net or learning.nets[learning.spec.model_of(client or 0)]
        if not predictor.has_layers(net):
            raise UserError(
                f"{one.meta['method']} predicts without a model's features", where=str(one.folder)
            )
        for start in range(0, len(samples), CHUNK):
            chosen = samples[start : start + CHUNK]
            with torch.no_grad():
                x = normalised(federation, chosen, split="test")
                values = net.features(predictor.weights, x, False)[0].tolist()
            labels = federation.test_y[torch.from_numpy(chosen)].tolist()
            for sample, label, row in zip(chosen.tolist(), labels, values, strict=True):
                yield [client, sample, label, *row]
