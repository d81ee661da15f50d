"""From a run to verified ONNX files: the global model, a client's own, or everybody's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from edgefl.core.errors import UserError
from edgefl.core.files import atomically
from edgefl.data import normalised
from edgefl.export.card import card
from edgefl.export.graph import ExportError, Form, Served, to_onnx
from edgefl.export.trained import LAST, Trained, trained
from edgefl.export.verify import Ints, Parity, parity
from edgefl.planning.learning import DataAccess


@dataclass(frozen=True)
class Wanted:
    """What to export.

    Attributes:
        client: whose own model; None is the global one.
        everybody: every client's own model instead.
        version: "last", "best" or a number.
        form: what goes in and comes out.
    """

    client: int | None = None
    everybody: bool = False
    version: str = LAST
    form: Form = field(default_factory=Form)


@dataclass(frozen=True)
class Exported:
    """One verified model, in a file.

    Attributes:
        path: the file.
        card: its model card.
        client: whose model; None is the global one.
        size_bytes: of the file.
        parity: how it compares with PyTorch.
        reported: the accuracy that the run reported for it; None where it reported none.
    """

    path: Path
    card: Path
    client: int | None
    size_bytes: int
    parity: Parity
    reported: float | None

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {
            **asdict(self),
            "path": str(self.path),
            "card": str(self.card),
            "parity": {**asdict(self.parity), "passed": self.parity.passed},
        }


Tell = Callable[[int, int], None]


def export(
    folder: Path,
    wanted: Wanted,
    access: DataAccess,
    out: Path | None = None,
    tell: Tell = lambda done, of: None,  # noqa: ARG005 - a name for each
) -> list[Exported]:
    """Exports models of a run; each is verified before its file is written.

    Args:
        folder: the run's directory.
        wanted: what to export.
        access: how to get at its dataset.
        out: a file, or a folder where every client's model is wanted; ``export/`` in the run by default.
        tell: is called with (models done, models in all).

    Raises:
        UserError: something that was asked for does not exist, or the target cannot be written.
        ExportError: a model fails its gate; its file is not written.
    """
    found = trained(folder, access, wanted.version)
    clients = _clients(found, wanted)
    done = []
    for place, client in enumerate(clients):
        tell(place, len(clients))
        done.append(_one(found, client, wanted.form, _path(found, client, wanted, out)))
    tell(len(clients), len(clients))
    return done


def _clients(found: Trained, wanted: Wanted) -> Sequence[int | None]:
    if wanted.everybody:
        return range(found.federation.clients)
    return [wanted.client]


def _path(found: Trained, client: int | None, wanted: Wanted, out: Path | None) -> Path:
    """The file of one model.

    Raises:
        UserError: the target is not what it should be, or cannot be written.
    """
    name = (
        "global.onnx"
        if client is None
        else f"client-{client:0{len(str(found.federation.clients - 1))}d}.onnx"
    )
    path = found.folder / "export" / name if out is None else out / name if wanted.everybody else out
    if path.suffix != ".onnx":
        raise UserError(f"{path} does not end in .onnx", where="--out")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {path.parent}: {error.strerror}", where="--out") from error
    return path


def _one(found: Trained, client: int | None, form: Form, path: Path) -> Exported:
    predictor = found.global_model() if client is None else found.personal_model(client)
    indices = _tests(found, client)
    served = Served(predictor, found.federation.spec, form).eval()
    model = to_onnx(served, found.federation.spec.shape, form, facts(found, client, form))
    images, labels = samples(found, indices, form)
    result = parity(model, served, form, images, labels, depth=depth(model))
    if not result.passed:
        raise ExportError(
            f"ONNX Runtime does not compute what PyTorch does: {result}",
            where=path.name,
            hint=f"nothing was written; tolerances: {result.rtol:g} relative, {result.atol:g} absolute",
        )
    atomically(path, model)
    page = path.with_suffix(".md")
    reported = reported_accuracy(found, client)
    done = Exported(path, page, client, len(model), result, reported)
    atomically(page, card(found, done.plain(), form).encode())
    return done


def _tests(found: Trained, client: int | None) -> Ints:
    """The test samples that the model is scored on; all of them where a client has none."""
    own = found.federation.test if client is None else found.federation.test_parts[client]
    return own if len(own) else found.federation.test


def samples(found: Trained, indices: Ints, form: Form) -> tuple[Tensor, Tensor]:
    """Test images as the exported model takes them, and their labels."""
    labels = found.federation.test_y[torch.from_numpy(indices)]
    if form.raw_input:
        return normalised(found.federation, indices, "test").contiguous(), labels
    pixels = found.federation.test_x
    if pixels is None:
        raise AssertionError("an export reads its dataset's pixels")
    return pixels[torch.from_numpy(indices)].contiguous(), labels


def reported_accuracy(found: Trained, client: int | None) -> float | None:
    """What the run itself said of this model."""
    if client is None:
        return found.summary.get("global")
    accuracy: float | None = found.summary["clients"].get(client)
    return accuracy


def facts(found: Trained, client: int | None, form: Form) -> dict[str, Any]:
    """What the model file says about itself."""
    spec, meta = found.federation.spec, found.meta
    layout = "float32 NCHW, (pixel / 255 - mean) / std" if form.raw_input else "uint8 NCHW, 0 to 255"
    return {
        "class_names": list(spec.class_names),
        "input": layout,
        "shape": list(spec.shape),
        "mean": list(spec.mean),
        "std": list(spec.std),
        "dataset": spec.name,
        "scenario": meta["name"],
        "run_id": meta["run_id"],
        "method": meta["method"],
        "model": meta["model"],
        "client": "global" if client is None else client,
        "version": found.version,
        "round": found.round,
        "accuracy": reported_accuracy(found, client),
        "edgefl": installed("edgefl-emulator"),
    }


def depth(model: bytes) -> int:
    """How many convolutions and matrix products a model has one after another, at most."""
    import onnx

    graph = onnx.load_from_string(model).graph
    return sum(node.op_type in {"Conv", "Gemm", "MatMul"} for node in graph.node)
