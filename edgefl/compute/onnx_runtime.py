"""ONNX Runtime with the same options wherever a file is run or measured; imports no torch."""

from collections.abc import Mapping
from typing import Any

from edgefl.core.errors import UserError


def session(model: str | bytes, threads: int = 1, profile: str = "") -> Any:
    """An ONNX Runtime session on the CPU, of a model or its file; a ``UserError`` if it cannot run it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # On shared cores, a spinning thread takes time from the one that works.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    if profile:
        # The file that gets the time of every operator begins with it.
        options.enable_profiling, options.profile_file_prefix = True, profile
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _failed(error, model if isinstance(model, str) else "") from error


def run(running: Any, inputs: Mapping[str, Any], where: str = "") -> list[Any]:
    """All outputs of a session for some inputs; a ``UserError`` if it cannot run the model on them."""
    try:
        outputs: list[Any] = running.run(None, inputs)
    except Exception as error:
        raise _failed(error, where) from error
    return outputs


def _failed(error: Exception, where: str) -> UserError:
    # ONNX Runtime's errors have no common base class.
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return UserError(f"ONNX Runtime cannot run the model: {reason}", where=where)
