"""Any module of your own, or of a library: images to logits, ending in a linear layer.

``{name: module, path: my.py, head: fc}``. The body, the head, the features and the buffers are found in it;
dropout and other draws in training come from the seed, the client, the round and the step.
"""

import copy
import hashlib
import importlib
import importlib.util
import inspect
import pickle
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from torch import nn

from edgefl.core.catalogue import user_file
from edgefl.core.errors import UnknownNameError, UserError, in_one_line, nearest
from edgefl.core.files import atomically, cache_folder
from edgefl.core.user_code import LOADED, explained
from edgefl.models import ModelParams
from edgefl.protocol import Net
from edgefl.protocol.vision import torchvision
from edgefl.protocol.whole import net_of_module

_PICKLED = ".pickle"
_CLASSES = ("num_classes", "n_classes", "classes")


def _source(text: str) -> str:
    """An absolute path, or a dotted name as it is."""
    if Path(text).suffix in {".py", _PICKLED}:
        return str(user_file(text))
    if text.partition(".")[0] == "torchvision":
        torchvision()
    try:
        known = importlib.util.find_spec(text) is not None
    except Exception:  # noqa: BLE001 - importing the package may raise anything
        known = False
    if not known:
        hint = "give a Python file, such as my.py, or a library's module, such as torchvision.models"
        raise UnknownNameError(f"no module {text!r}", hint=hint)
    return text


class Params(ModelParams):
    path: Annotated[
        str,
        AfterValidator(_source),
        Field(
            description="a Python file, relative to the working directory or to one on EDGEFL_PATH; "
            "or a library's module, such as torchvision.models"
        ),
    ]
    make: str | None = Field(
        None, description="the class or function in it; null if it has one nn.Module alone"
    )
    args: dict[str, Any] = Field(
        {},
        description="what the class or function is called with; num_classes, if it has that, is the data's",
    )
    head: str | None = Field(
        None, description="the linear layer whose output are the logits, such as fc; null finds it"
    )
    layers: tuple[str, ...] = Field(
        (), description="the layers whose activations tell what it has learned; [] takes its activations"
    )

    @property
    def file(self) -> Path | None:
        """The file that is read; None of a library's module."""
        return Path(self.path) if Path(self.path).is_absolute() else None

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """Raises a ``UserError`` if the module cannot be made, or be trained here."""
        factory = _factory(self)
        name = str(self.make or getattr(factory, "__name__", type(factory).__name__))

        def make() -> nn.Module:
            try:
                made = (
                    copy.deepcopy(factory)
                    if isinstance(factory, nn.Module)
                    else factory(**_arguments(self, factory, classes))
                )
            except Exception as error:  # a user's code may raise anything
                raise explained(error) or UserError(
                    f"{name} cannot be made: {in_one_line(error)}", where="model.args"
                ) from error
            if not isinstance(made, nn.Module):
                raise UserError(
                    f"{name} returned {type(made).__name__}, not an nn.Module", where="model.make"
                )
            return made

        return net_of_module(name, make, shape, classes, head=self.head, layers=self.layers)


def _arguments(params: Params, factory: Any, classes: int) -> dict[str, Any]:
    """What a class or function is called with: where it asks for the number of classes, the data's."""
    known = (
        ["num_classes"]
        if params.path.partition(".")[0] == "torchvision"
        else inspect.signature(factory).parameters
    )
    return {**{name: classes for name in _CLASSES if name in known}, **params.args}


def _factory(params: Params) -> Any:
    """What makes the module, or the module itself."""
    file = params.file
    if file is not None and file.suffix == _PICKLED:
        return _unpickled(params.path)
    try:
        module = (
            importlib.import_module(params.path)
            if file is None
            else _executed(params.path, file.stat().st_mtime_ns)
        )
    except ImportError as error:  # a library's module; a file's own errors are told with their line
        what = f"{params.path} cannot be imported: {in_one_line(error)}"
        raise explained(error) or UserError(what, where="model.path") from error
    if params.make is not None:
        if not callable(made := getattr(module, params.make, None)):
            known = [name for name, value in vars(module).items() if callable(value) and name[0] != "_"]
            what = f"{params.path} has no class or function {params.make!r}"
            raise UserError(what, where="model.make", hint=nearest(params.make, known))
        return made
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, nn.Module) and value.__module__ == module.__name__
    ]
    if len(own) != 1:
        names = ", ".join(one.__name__ for one in own) or "none"
        what = f"{params.path} has {len(own)} classes that are nn.Modules ({names})"
        raise UserError(what, where="model", hint="name one, or a function, with make")
    return own[0]


@lru_cache(maxsize=8)
def _executed(path: str, changed_ns: int) -> ModuleType:  # noqa: ARG001 - a changed file is read again
    """A Python file as a module."""
    dotted = f"{LOADED}modules.{Path(path).stem}"
    if b"torchvision" in Path(path).read_bytes():
        torchvision()
    spec = importlib.util.spec_from_file_location(dotted, path)
    assert spec is not None  # noqa: S101 - the suffix is .py
    assert spec.loader is not None  # noqa: S101 - as above
    module = importlib.util.module_from_spec(spec)
    sys.modules[dotted] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[dotted]
        raise explained(error) or UserError(f"{path} cannot be imported: {in_one_line(error)}") from error
    return module


@lru_cache(maxsize=8)
def _unpickled(path: str) -> Any:
    try:
        return pickle.loads(Path(path).read_bytes())  # noqa: S301 - as trusted as a Python file
    except Exception as error:
        raise UserError(
            f"the module cannot be read again: {in_one_line(error)}",
            where=path,
            hint="put its class into a file and name that: model: {name: module, path: my.py}",
        ) from error


def given(model: nn.Module | Callable[..., nn.Module]) -> dict[str, Any]:
    """The component for a module, which starts from its own weights, or for what makes one.

    It is kept in the cache, by content, for workers and for a run that is resumed or exported.

    Raises:
        UserError: it cannot be pickled.
    """
    import cloudpickle  # type: ignore[import-untyped]

    try:
        content = cloudpickle.dumps(model)
    except Exception as error:
        what = f"the model cannot be kept for a run: {in_one_line(error)}"
        raise UserError(
            what,
            where="model",
            hint="put its class into a file and give model={'name': 'module', 'path': 'my.py'}",
        ) from error
    name = getattr(model, "__name__", type(model).__name__).strip("<>")
    path = cache_folder() / "modules" / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}{_PICKLED}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        atomically({path: content})
    return {"name": "module", "path": str(path)}
