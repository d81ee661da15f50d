"""ONNX Runtime's own format, for builds of it that hold a model's operators and no others."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgefl.core.errors import root, told
from edgefl.export.graph import ExportError


@dataclass(frozen=True)
class Ort:
    """A model in ONNX Runtime's own format, beside its ONNX file.

    Attributes:
        path: the file.
        config: the operators it needs, for a reduced build of ONNX Runtime.
        size_bytes: of the file.
        accuracy: the file's.
        max_error: the largest of a logit, against the ONNX file.
        agreement: the share of samples with the same largest logit as by the ONNX file.
    """

    path: Path
    config: Path
    size_bytes: int
    accuracy: float
    max_error: float
    agreement: float


def to_ort(model: bytes, name: str) -> tuple[bytes, str]:
    """A model in ORT format, optimised for ARM, and the configuration of a reduced build that runs it.

    Args:
        model: in ONNX format.
        name: the ORT file's, for the configuration's heading.

    Returns:
        The file's content, and operators by domain and opset as ``--include_ops_by_config`` takes them.

    Raises:
        ExportError: ONNX Runtime cannot convert it.
    """
    try:
        with _silence(), tempfile.TemporaryDirectory() as folder:
            # Importing it sets up logging, so it stands inside.
            from onnxruntime.tools import convert_onnx_models_to_ort as tool

            given = Path(folder) / "model.onnx"
            given.write_bytes(model)
            # Optimised now rather than on the device; no optimisation for x86 alone goes in.
            tool.convert_onnx_models_to_ort(
                given, None, [tool.OptimizationStyle.Fixed], target_platform="arm"
            )
            made = given.with_suffix(".ort").read_bytes()
            config = given.with_suffix(".required_operators.config").read_text(encoding="utf-8")
    except Exception as error:
        what = "ONNX Runtime cannot convert the model to its format"
        raise ExportError(f"{what}: {told(root(error))}") from error
    operators = [line for line in config.splitlines() if line and not line.startswith("#")]
    return made, "\n".join([f"# Operators of {name}", *operators, ""])


@contextmanager
def _silence() -> Iterator[None]:
    """Neither prints, logs nor warns.

    The tool prints, sets up the root logger if that has no handler, and leaves a file open.
    """
    handler, root = logging.NullHandler(), logging.getLogger()
    root.addHandler(handler)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeHandler(handler)
