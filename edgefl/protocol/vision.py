"""torchvision, imported on demand and with any build of torch."""

import importlib
from types import ModuleType

import torch

# The operators whose shapes torchvision registers on import, even if its binary did not load.
_OPERATORS = ("torchvision::nms", "torchvision::qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def torchvision() -> ModuleType:
    """The module ``torchvision``, its ``models`` and ``transforms`` loaded.

    torchvision's wheel from PyPI is built for CUDA. With a CPU-only torch its operators do not load, and the
    import fails where it describes them. Nothing here uses those operators, so declaring them without an
    implementation is enough; they are declared only after the import failed for that reason.

    Raises:
        ImportError: torchvision is not installed.
        RuntimeError: its import fails for another reason.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error) or "does not exist" not in str(error):
            raise
    for operator in _OPERATORS:
        torch.library.define(operator, _SCHEMA)
    return importlib.import_module("torchvision")
