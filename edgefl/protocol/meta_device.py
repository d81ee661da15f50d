"""The meta device, without torch's compiler."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

import torch


class _Unneeded(ModuleType):
    """Has the few functions that are asked for; the module itself is imported if something else is."""

    def __init__(self, name: str, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        for one in _UNNEEDED:
            if isinstance(sys.modules.get(one), _Unneeded):
                del sys.modules[one]
        return getattr(import_module(self.__name__), name)


def _same(value: Any, *_: Any, **__: Any) -> Any:
    return value


class _Expression:
    """Stands for SymPy's, of which no size is one."""


# What there is to know of sizes that are plain numbers.
_UNNEEDED: dict[str, dict[str, Callable[..., Any]]] = {
    "sympy": {"Basic": _Expression},
    "torch._dynamo": {"disable": _same},
    "torch.fx.experimental.symbolic_shapes": {
        **dict.fromkeys(("guard_or_false", "guard_or_true", "guard_size_oblivious"), bool),
        **dict.fromkeys(("statically_known_true", "expect_true"), bool),
        "is_nested_int": lambda _: False,
        "free_unbacked_symbols": lambda _: set(),
        "has_guarding_hint": lambda _: True,
        "guarding_hint_or_throw": _same,
        "sym_and": lambda *all_of: all(all_of),
        "sym_or": lambda *any_of: any(any_of),
        "sym_eq": lambda one, other: one == other,
    },
}


@contextmanager
def without_compiler() -> Iterator[None]:
    """Spares kernels on meta tensors the import of torch's compiler and of SymPy.

    They are written in Python and import both when first called: two seconds, and a reference cycle through
    the frames of that call, which keeps a step's tensors until garbage is collected. They ask of both only
    what is here.
    """
    ours = [_Unneeded(name, functions) for name, functions in _UNNEEDED.items() if name not in sys.modules]
    sys.modules.update({one.__name__: one for one in ours})
    try:
        yield
    finally:
        for one in ours:
            if sys.modules.get(one.__name__) is one:
                del sys.modules[one.__name__]


@contextmanager
def meta_device() -> Iterator[None]:
    """Makes tensors on the meta device meanwhile, without torch's compiler."""
    with without_compiler(), torch.device("meta"):
        yield
