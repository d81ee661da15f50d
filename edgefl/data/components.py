"""Partitions and augmentations by name, with their parameters checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor

from edgefl.core import catalogue
from edgefl.core.errors import UserError, nearest
from edgefl.core.params import Component
from edgefl.data.spec import Ints

Partition: TypeAlias = Callable[[Ints, int, int, np.random.Generator], list[Ints]]
"""(labels (n,), classes, clients, rng) -> one sorted array of indices a client."""

Augmentation: TypeAlias = Callable[[Tensor, torch.Generator], Tensor]
"""(x (B, C, H, W) in [0, 1], generator) -> the same shape."""


def partitioner(component: Component, *, where: str = "task.partition") -> Partition:
    """The partition of a name, on its parameters.

    Args:
        component: name and parameters.
        where: where they stand, for messages.

    Raises:
        UserError: there is no such partition, or it takes no such parameters.
    """
    module = catalogue.load("partitions", component.name, where=where)
    return partial(module.split, _params(module, component, where))


def augmenter(component: Component, *, where: str = "task.augment") -> Augmentation:
    """The augmentation of a name, on its parameters.

    Args:
        component: name and parameters.
        where: where they stand, for messages.

    Raises:
        UserError: there is no such augmentation, or it takes no such parameters.
    """
    module = catalogue.load("augmentations", component.name, where=where)
    return partial(module.augment, _params(module, component, where))


def _params(module: ModuleType, component: Component, where: str) -> Any:
    try:
        return module.Params(**component.params)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        place = f"{where}.{key}" if key else where
        if first["type"] == "extra_forbidden":
            what = f"{component.name} has no parameter {key!r}"
            raise UserError(what, where=place, hint=nearest(key, module.Params.model_fields)) from None
        message = first["msg"].removeprefix("Value error, ")
        raise UserError(f"{component.name}: {message}; given: {first['input']!r}", where=place) from None
