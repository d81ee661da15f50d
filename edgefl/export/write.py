"""The last stage: the files, all of them or none."""

from __future__ import annotations

import os
from pathlib import Path

from edgefl.core.errors import RunError, UserError
from edgefl.core.files import all_atomically
from edgefl.export.candidate import FP32, Candidate, ExportOptions
from edgefl.export.card import card, is_card
from edgefl.export.latency import latency_section
from edgefl.export.trained import Trained
from edgefl.report.exports import Exported


def target(source: Trained, client: int | None, options: ExportOptions, out: Path | None) -> Path:
    """The ONNX file that a model will be written to; its folder is made.

    Args:
        source: the trained version.
        client: the client whose model it is; None for the global model.
        options: what was asked for.
        out: a file, or a folder if all clients are exported; ``export/`` in the run by default.

    Raises:
        UserError: ``out`` has another suffix or is a folder, cannot be written, or its card would replace
            a text that is not a model card.
    """
    name = "global" if client is None else f"client-{client:0{len(str(source.federation.clients - 1))}d}"
    file = f"{name}.onnx" if options.precision == FP32 else f"{name}-{options.precision}.onnx"
    path = source.folder / "export" / file if out is None else out / file if options.all_clients else out
    where = "--out" if out else str(path.parent)
    if path.suffix != ".onnx":
        raise UserError(f"{path} does not end in .onnx", where=where)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create {path.parent}: {error.strerror}", where=where) from error
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.parent} is not writable", where=where, hint="choose another --out")
    if path.is_dir():
        raise UserError(f"{path} is a folder", where=where)
    page = path.with_suffix(".md")
    if page.exists() and not is_card(page):
        raise UserError(
            f"{page} exists and is not a model card; the export would overwrite it",
            where=where,
            hint="choose another --out",
        )
    return path


def write(candidate: Candidate) -> Exported:
    """Writes a verified model and its card.

    Raises:
        UserError: the files cannot be written, for example because the disk is full.
    """
    if not candidate.parity.passed:
        raise AssertionError("only a verified model is written")
    source, path, page = candidate.source, candidate.path, candidate.path.with_suffix(".md")
    exported = Exported(
        path=path,
        card=page,
        client=candidate.client,
        size_bytes=len(candidate.model),
        parity=candidate.parity,
        reported=source.reported.get(candidate.client),
        precision=candidate.options.precision,
        compact=candidate.compact,
        ort=candidate.ort,
        standing=source.standing(candidate.client),
    )
    text = card(source, exported, candidate.form, latency_section(path, candidate.model))
    try:
        all_atomically({page: text.encode(), **candidate.ort_files, path: candidate.model})
    except RunError as error:
        # The run is fine; the target was badly chosen.
        raise UserError(error.what, where=error.where, hint="its files were not written") from error
    return exported
