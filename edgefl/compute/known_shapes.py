"""Operators on meta tensors, whose results are made from those of an earlier call with arguments alike.

Many operators' meta functions are Python and take half a millisecond; a deep model calls the same ones on the
same shapes hundreds of times. Views, and results that share a storage or do not fill theirs, are always run.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from edgefl.compute.kernels import storage_key, tensors


class _Meta(NamedTuple):
    """A tensor on the meta device."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> _Meta:
        return cls(tuple(tensor.shape), tensor.stride(), tensor.dtype)

    def tensor(self) -> Tensor:
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device="meta")


# The result is the first argument, which was written into, or nothing at all.
_FIRST, _NOTHING = "first", "nothing"

# What an operator returned: a tensor, several, or one of the above; None where it has to be run.
_Made: TypeAlias = _Meta | tuple[_Meta | None, ...] | str | None

_KNOWN: dict[Hashable, _Made] = {}
# Enough for some hundred models; a process that traces more starts anew.
_MOST = 100_000


def run(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What ``func(*args, **kwargs)`` returns."""
    key = _key(func, args, kwargs)
    known = None if key is None else _KNOWN.get(key)
    if known is None:
        result = func(*args, **kwargs)
        if key is not None and key not in _KNOWN:
            if len(_KNOWN) >= _MOST:
                _KNOWN.clear()
            _KNOWN[key] = _made(result, args, kwargs) if key == _key(func, args, kwargs) else None
        return result
    if isinstance(known, str):
        return args[0] if known == _FIRST else None
    if isinstance(known, _Meta):
        return known.tensor()
    return tuple(None if one is None else one.tensor() for one in known)


def _key(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable | None:
    """What the result depends on; None where an operator has to be run."""
    found = [_frozen(value) for value in (*args, *kwargs.values())]
    key = (func, torch.get_default_dtype(), tuple(kwargs), *found)
    try:
        hash(key)
    except TypeError:  # a tensor with values, or an argument of an unknown kind
        return None
    return key


def _frozen(value: Any) -> Any:
    if isinstance(value, Tensor):
        # Another device's tensors have values, on which a result may depend.
        return _Meta.of(value) if value.device.type == "meta" and type(value) in _PLAIN else [value]
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    # 1, 1.0 and True are equal, and give results of different types.
    return (type(value), value)


_PLAIN = {Tensor, torch.nn.Parameter}


def _made(result: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Made:
    """A result, if it can be made again."""
    if result is None:
        return _NOTHING
    if args and result is args[0]:
        return _FIRST
    several = isinstance(result, tuple)
    made = list(result) if several else [result]
    if not all(one is None or (isinstance(one, Tensor) and _whole(one)) for one in made):
        return None
    own = [storage_key(tensor) for tensor in tensors(made)]
    if len(set(own)) < len(own) or set(own) & set(map(storage_key, tensors([*args, *kwargs.values()]))):
        return None
    metas = tuple(None if one is None else _Meta.of(one) for one in made)
    return metas if several else metas[0]


def _whole(tensor: Tensor) -> bool:
    """Whether a meta tensor fills a storage from its beginning."""
    if tensor.device.type != "meta" or tensor.storage_offset():
        return False
    last = sum((count - 1) * stride for count, stride in zip(tensor.shape, tensor.stride(), strict=True))
    size = (1 + last) * tensor.element_size() if tensor.numel() else 0
    return tensor.untyped_storage().nbytes() == size
