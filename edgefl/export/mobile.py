"""The fourth stage: ONNX Runtime's own format, for builds of it that hold only a model's operators."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from edgefl.export.build import FP32, Candidate
from edgefl.export.graph import ExportError, explained
from edgefl.export.verify import compare, runner
from edgefl.report.exports import Ort


def mobile(candidate: Candidate) -> Candidate:
    """Adds the model in ONNX Runtime's own format where it was asked for.

    Raises:
        ExportError: the conversion fails, or its result does not compute what the ONNX file does.
    """
    options, fp32 = candidate.options, candidate.parity
    if not options.ort:
        return candidate
    path = candidate.path.with_suffix(".ort")
    config = candidate.path.with_suffix(".required_operators.config")
    content, operators = to_ort(candidate.model, path.name)
    run, reference = runner(content, candidate.form), runner(candidate.model, candidate.form)
    comparison = compare(run, reference, *candidate.test, rtol=fp32.rtol, atol=fp32.atol)
    # Integer kernels differ between processors by a step of a scale; there, accuracy decides.
    lost = fp32.accuracy - comparison.accuracy
    if not (comparison.passed if options.precision == FP32 else lost <= options.max_drop + 1e-9):
        raise ExportError(
            "the model computes something else in ORT format than in the ONNX file: "
            f"max error {comparison.max_error:.2g}, "
            f"accuracy {comparison.accuracy:.2%} against {comparison.torch_accuracy:.2%}",
            where=path.name,
            hint="its files were not written",
        )
    ort = Ort(path, config, len(content), comparison.accuracy, comparison.max_error, comparison.agreement)
    return replace(candidate, ort=ort, ort_files={path: content, config: operators.encode()})


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
    failure = "ONNX Runtime cannot convert the model to its format"
    with explained(failure), _silence(), tempfile.TemporaryDirectory() as folder:
        # Importing it sets up logging.
        from onnxruntime.tools import convert_onnx_models_to_ort as tool

        given = Path(folder) / "model.onnx"
        given.write_bytes(model)
        # Optimised now rather than on the device, without optimisations that only x86 has.
        tool.convert_onnx_models_to_ort(given, None, [tool.OptimizationStyle.Fixed], target_platform="arm")
        content = given.with_suffix(".ort").read_bytes()
        config = given.with_suffix(".required_operators.config").read_text(encoding="utf-8")
    operators = [line for line in config.splitlines() if line and not line.startswith("#")]
    return content, "\n".join([f"# Operators of {name}", *operators, ""])


@contextmanager
def _silence() -> Iterator[None]:
    """Suppresses prints and logs.

    The tool prints, sets up the root logger if that has no handler, and leaves a file open.
    """
    handler, logger = logging.NullHandler(), logging.getLogger()
    logger.addHandler(handler)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.removeHandler(handler)
