"""A scenario on digits that runs in a tenth of a second."""

from typing import Any, TypeAlias

import torch
from hooks import Hooks

Tensors: TypeAlias = dict[str, torch.Tensor]

_PARTITION = {"name": "dirichlet", "alpha": 0.5, "min_samples": 20}
SKEWED: dict[str, Any] = {"dataset": "digits", "clients": 6, "partition": _PARTITION}
SMALL: dict[str, Any] = {
    "name": "small",
    "task": {"dataset": "digits", "clients": 4},
    "model": {"name": "mlp", "hidden": [12]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 64, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"participants": 2, "rounds": 2},
}


class Stop(Hooks):
    """Interrupts a run at a merge."""

    def __init__(self, version: int) -> None:
        self.version = version

    def merged(self, so_far: Any) -> None:
        """See ``Hooks``."""
        if so_far.version == self.version:
            raise KeyboardInterrupt


def alike(found: Tensors, expected: Tensors, rtol: float, atol: float) -> None:
    """Asserts that two runs have learned the same tensors, up to rounding."""
    assert found.keys() == expected.keys()
    for key, leaf in expected.items():
        torch.testing.assert_close(
            found[key], leaf, rtol=rtol, atol=atol, msg=lambda text, key=key: f"{key}: {text}"
        )
