"""From a run to verified ONNX files: the global model, a client's own, or everybody's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from torch import Tensor

from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.core.files import all_atomically
from edgefl.export.card import card, is_card
from edgefl.export.compact import Compact, compact
from edgefl.export.graph import ExportError, Form, Served, to_onnx
from edgefl.export.latency import latency
from edgefl.export.mobile import Ort, to_ort
from edgefl.export.quantise import FP16, FP32, INT8, Precision, to_fp16, to_int8
from edgefl.export.samples import calibration, tests
from edgefl.export.trained import LAST, Trained, trained
from edgefl.export.verify import Parity, compared, parity, runner
from edgefl.planning.learning import DataAccess


@dataclass(frozen=True)
class Wanted:
    """What to export.

    Attributes:
        client: whose own model; None is the global one.
        everybody: every client's own model instead.
        version: "last", "best" or a number.
        form: what goes in and comes out.
        precision: "fp32", "int8" or "fp16".
        max_drop: how much accuracy int8 and fp16 may lose, in [0, 1].
        ort: whether a file in ONNX Runtime's own format is wanted too.
    """

    client: int | None = None
    everybody: bool = False
    version: str = LAST
    form: Form = field(default_factory=Form)
    precision: Precision = FP32
    max_drop: float = 0.02
    ort: bool = False


@dataclass(frozen=True)
class Exported:
    """One verified model, in a file.

    Attributes:
        path: the file.
        card: its model card.
        client: whose model; None is the global one.
        size_bytes: of the file.
        parity: how the float32 model compares with PyTorch.
        reported: the accuracy that the run reported for it; None where it reported none.
        precision: of the file's weights.
        compact: how the file compares with the float32 model; None where it is that.
        ort: the same in ONNX Runtime's own format, where it was asked for.
        standing: what is to be known of it beside its figures, such as that its client never trained.
    """

    path: Path
    card: Path
    client: int | None
    size_bytes: int
    parity: Parity
    reported: float | None
    precision: Precision = FP32
    compact: Compact | None = None
    ort: Ort | None = None
    standing: str = ""

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        found = {
            **asdict(self),
            "path": str(self.path),
            "card": str(self.card),
            "parity": {**asdict(self.parity), "passed": self.parity.passed},
        }
        if self.compact is not None:
            found["compact"]["drop"] = self.compact.drop
        if self.ort is not None:
            found["ort"] |= {"path": str(self.ort.path), "config": str(self.ort.config)}
        return found


class SomeFailedError(ExportError):
    """Of many models some failed their gates; the others are written.

    Attributes:
        done: what was written.
        failed: each other one's error.
    """

    def __init__(self, done: Sequence[Exported], failed: Sequence[ExportError]) -> None:
        of = len(done) + len(failed)
        reasons = "".join(f"\n  {error.where}: {error.what}" for error in failed)
        super().__init__(
            f"{len(failed)} of {of} models fail their gates and were not written:{reasons}",
            hint=failed[0].hint,
        )
        self.done, self.failed = tuple(done), tuple(failed)


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
        SomeFailedError: of many, some do; the others' files are written.
    """
    if not 0 <= wanted.max_drop <= 1:
        raise UserError(f"{wanted.max_drop:g} is no share", where="--max-drop", hint="0.02 is two points")
    if wanted.ort and wanted.precision == FP16:
        # Without float16 kernels it would keep float32 weights, and be larger than before.
        raise UserError(
            "the ORT format is optimised on this machine's processor, which turns float16 back into float32",
            where="--ort",
            hint="take --int8 --ort, --ort alone, or the ONNX file of --fp16",
        )
    found = trained(folder, access, wanted.version)
    clients = _clients(found, wanted)
    paths = [_path(found, client, wanted, out) for client in clients]
    done: list[Exported] = []
    failed: list[ExportError] = []
    for place, (client, path) in enumerate(zip(clients, paths, strict=True)):
        tell(place, len(clients))
        try:
            done.append(_one(found, client, wanted, path))
        except EdgeflError as error:
            error.where = error.where or path.name
            # One client's model that fails its gate says nothing of the next one's.
            if wanted.everybody and isinstance(error, ExportError):
                failed.append(error)
                continue
            if wanted.everybody:
                before = f"{len(done)} of {len(clients)} models were written before it"
                error.hint = f"{error.hint}; {before}".removeprefix("; ")
            raise
    tell(len(clients), len(clients))
    if failed:
        raise SomeFailedError(done, failed)
    return done


def _clients(found: Trained, wanted: Wanted) -> Sequence[int | None]:
    """Whose models; None is the global one.

    Raises:
        UserError: there is no such client, or no global model.
    """
    if wanted.everybody:
        return range(found.federation.clients)
    # Before anything is written or made.
    found.predictor(wanted.client)
    return [wanted.client]


def _path(found: Trained, client: int | None, wanted: Wanted, out: Path | None) -> Path:
    """The file of one model.

    Raises:
        UserError: the target is not what it should be, or cannot be written.
    """
    name = "global" if client is None else f"client-{client:0{len(str(found.federation.clients - 1))}d}"
    file = f"{name}.onnx" if wanted.precision == FP32 else f"{name}-{wanted.precision}.onnx"
    path = found.folder / "export" / file if out is None else out / file if wanted.everybody else out
    where = "--out" if out else str(path.parent)
    if path.suffix != ".onnx":
        raise UserError(f"{path} does not end in .onnx", where=where)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {path.parent}: {error.strerror}", where=where) from error
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.parent} cannot be written", where=where, hint="choose another --out")
    if path.is_dir():
        raise UserError(f"{path} is a folder", where=where)
    page = path.with_suffix(".md")
    if page.exists() and not is_card(page):
        raise UserError(
            f"{page} is no model card, and one would take its place", where=where, hint="choose another --out"
        )
    return path


def _one(found: Trained, client: int | None, wanted: Wanted, path: Path) -> Exported:
    """Makes, proves and writes one model; nothing is written before everything is proved.

    Raises:
        ExportError: a gate fails.
        UserError: the files cannot be written.
    """
    form, spec = wanted.form, found.federation.spec
    served = Served(found.predictor(client), spec, form).eval()
    fp32 = to_onnx(served, spec.shape, form, facts(found, client, form))
    images, labels = tests(found, client, form)
    result = parity(fp32, served, form, images, labels, depth=depth(fp32))
    if not result.passed:
        raise ExportError(
            f"ONNX Runtime does not compute what PyTorch does: {result}",
            hint=f"no file of it was written; tolerances: {result.rtol:g} relative, {result.atol:g} absolute",
        )
    model, smaller, ort = fp32, None, None
    files: dict[Path, bytes] = {}
    if wanted.precision != FP32:
        ranges = calibration(found, client, form) if wanted.precision == INT8 else None
        model = _smaller(fp32, form, ranges)
        used = None if ranges is None else len(ranges)
        smaller = compact(model, fp32, form, images, labels, most=wanted.max_drop, calibrated_on=used)
    if wanted.ort:
        ort, files = _ort(model, wanted, result, images, labels, path)
    page = path.with_suffix(".md")
    reported = reported_accuracy(found, client)
    done = Exported(
        path,
        page,
        client,
        len(model),
        result,
        reported,
        wanted.precision,
        smaller,
        ort,
        found.standing(client),
    )
    lines = card(found, done.plain(), form, latency(path, model))
    _written({page: lines.encode(), **files, path: model})
    return done


def _written(files: Mapping[Path, bytes]) -> None:
    """Writes a model's files, all or none.

    Raises:
        UserError: they cannot be written; the target has no room, say.
    """
    try:
        all_atomically(files)
    except RunError as error:
        # The run is as good as it was; it is the target that was chosen badly.
        raise UserError(error.what, where=error.where, hint="no file of it was written") from error


def _smaller(fp32: bytes, form: Form, ranges: Tensor | None) -> bytes:
    """The model in int8 with the ranges of these images, or in float16 without."""
    if ranges is None:
        return to_fp16(fp32, form, {"precision": FP16})
    return to_int8(fp32, form, ranges, {"precision": INT8, "calibration": f"{len(ranges)} training images"})


def _ort(
    model: bytes, wanted: Wanted, fp32: Parity, images: Tensor, labels: Tensor, path: Path
) -> tuple[Ort, dict[Path, bytes]]:
    """The model in ONNX Runtime's own format, proved, and what to write.

    Raises:
        ExportError: the format's file does not compute what the ONNX file does.
    """
    file, config = path.with_suffix(".ort"), path.with_suffix(".required_operators.config")
    made, operators = to_ort(model, file.name)
    found = compared(
        runner(model, wanted.form),
        runner(made, wanted.form),
        images,
        labels,
        rtol=fp32.rtol,
        atol=fp32.atol,
    )
    # Integer kernels differ between processors by a step of a scale, which accuracy has to bear.
    lost = fp32.accuracy - found.accuracy
    if not (found.passed if wanted.precision == FP32 else lost <= wanted.max_drop + 1e-9):
        raise ExportError(
            f"the ORT format does not compute what the ONNX file does: max error {found.max_error:.2g}, "
            f"accuracy {found.accuracy:.2%} against {found.torch_accuracy:.2%}",
            where=file.name,
            hint="no file of it was written",
        )
    done = Ort(file, config, len(made), found.accuracy, found.max_error, found.agreement)
    return done, {file: made, config: operators.encode()}


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
        "model": found.model(client),
        "client": "global" if client is None else client,
        "version": found.version,
        "round": found.round,
        "accuracy": reported_accuracy(found, client),
        "precision": FP32,
        "edgefl": installed("edgefl-emulator"),
    }


def depth(model: bytes) -> int:
    """How many convolutions and matrix products a model has one after another, at most."""
    import onnx

    graph = onnx.load_from_string(model).graph
    return sum(node.op_type in {"Conv", "Gemm", "MatMul"} for node in graph.node)
