"""Components with an error planted in one of their functions, for every kind and every function."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

# What is planted; ``Odd`` is an error whose constructor takes other arguments than it keeps.
ERRORS = {
    "ValueError": "raise ValueError('planted')",
    "SystemExit": "sys.exit(0)",
    "Odd": "raise Odd('planted', 7)",
}
# A function without its `return`.
FORGOTTEN = "return None"
_HEAD = '''"""Planted."""
import sys
from dataclasses import replace
import numpy as np
import torch

class Odd(Exception):
    def __init__(self, what, code):
        super().__init__(f"{what} {code}")

'''
_MARK = "  # here"

_METHOD = """
from edgefl.methods import fedavg


class Params(fedavg.Params):
    def build(self, site):
        method = super().build(site)
        (train,) = method.exchanges
        work = train.work
        (phase,) = work.phases
        traced = lambda: torch.empty(0).is_meta

        def %s(*given):
            %s
            PLANT

        return %s
"""


def _method(hook: str, made: str, original: str = "") -> str:
    """A method whose function raises; with an original, only where tensors have data."""
    first = f"if traced(): return {original}(*given)" if original else "pass"
    return _METHOD % (hook, first, made)


_WORK = "replace(method, exchanges=(replace(train, work=replace(work, %s)),))"
_EXCHANGE = "replace(method, exchanges=(replace(train, %s),))"


def _record(module: str, hook: str) -> str:
    """A shipped file's ``Params`` with one method that raises."""
    head = f"from {module} import Params as Shipped\n\nclass Params(Shipped):\n"
    return head + f"    def {hook}(self, *given):\n        PLANT\n"


_DATASET = """
from edgefl.data import Source
from edgefl.data.sources import digits

class Params(digits.Params):
    def build(self):
        return Source(digits.SPEC, load)

def load(*given, **named):
    PLANT
"""


@dataclass(frozen=True)
class Plant:
    """One planted file."""

    kind: str
    hook: str
    text: str
    settings: Mapping[str, Any]
    status: int
    expected: str = ""

    def write(self, root: Path, planted: str) -> tuple[Path, int]:
        """Writes the file; returns its path, and the line of what was planted."""
        folder = root / self.kind
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "mine.py"
        text = _HEAD + dedent(self.text).replace("PLANT", planted + _MARK)
        path.write_text(text, encoding="utf-8")
        return path, 1 + next(nth for nth, line in enumerate(text.splitlines()) if line.endswith(_MARK))


_NET = """
from edgefl.models import mlp


class Params(mlp.Params):
    def build(self, shape, classes):
        net = super().build(shape, classes)

        def hook(*given):
            PLANT

        return replace(net, %s=hook)
"""
_PREDICTOR = """
def %s(server, *state):
    predictor = method.personal_model(server, None)
    def logits(weights, x):
        PLANT
    return replace(predictor, logits=logits)
return replace(method, %s=%s)
"""


def _predictor(model: str) -> str:
    head = _METHOD.partition("        def %s")[0]
    return head + indent(_PREDICTOR % (model, model, model), "        ")


_SELECTOR = """
from edgefl.world.selectors import Selector, SelectorParams

class Params(SelectorParams):
    def build(self, world):
        return Mine()


class Mine(Selector):
    def select(self, count, candidates):
        %s
        return candidates[:count]

    def observe(self, jobs, scalars):
        %s
"""
_POLICY = """
from edgefl.world.policies import sync


class Params(sync.Params):
    def serve(self, world):
        def other():
            yield world.env.timeout(0.001)
            %s
        world.env.process(other())
        yield from super().serve(world)
"""
_ENGINE = """
from edgefl.compute.engines import loop
from edgefl.compute.job import Local
from edgefl.compute.loop import Loop

class Mine(Local):
    def outcomes(self, jobs, *, limit=None):
        PLANT


class Params(loop.Params):
    def build(self, context):
        return Mine(context, Loop(), ahead=False)
"""


def _plants() -> Iterator[Plant]:
    yield from _methods()
    uses = {"model": "mine"}
    yield Plant("models", "build", _record("edgefl.models.mlp", "build"), uses, 2, "Net")
    nets = {"init": "weights", "features": "(features, new buffers)", "head": "logits", "loss": "a loss"}
    for hook, expected in nets.items():
        yield Plant("models", hook, _NET % hook, uses, 2, expected)
    yield Plant("datasets", "load", _DATASET, {"task.dataset": "mine"}, 2, "Arrays")
    shipped = (
        ("partitions", "data.partitions.iid", "split", "task.partition=mine", 2, "a list of index arrays"),
        ("augmentations", "data.augmentations.crop_flip", "augment", "task.augment=mine", 2, "a tensor"),
        ("codecs", "protocol.codecs.fp16", "sizes", "wire.up=mine", 2, "instead of bytes by part"),
        ("codecs", "protocol.codecs.fp16", "carried", "wire.up=mine", 1, "the decoded payload"),
        ("codecs", "protocol.codecs.fp16", "carried", "wire.down=mine", 1, "the decoded payload"),
        ("policies", "world.policies.sync", "serve", "server.policy=mine", 1, ""),
        ("policies", "world.policies.sync", "check", "server.policy=mine", 2, ""),
        ("selectors", "world.selectors.random", "build", "server.selector=mine", 1, ""),
        ("measures", "measures.class_accuracy", "measure", "evaluate.measures=[mine]", 1, "an iterable of"),
        ("measures", "measures.linear_cka", "check", "evaluate.measures=[mine]", 2, ""),
        ("engines", "compute.engines.loop", "build", "engine=mine", 1, ""),
        ("engines", "compute.engines.loop", "check", "engine=mine", 2, ""),
    )
    for kind, module, hook, setting, status, expected in shipped:
        text = _record(f"edgefl.{module}", hook)
        yield Plant(kind, hook, text, dict([setting.split("=")]), status, expected)
    records = (
        ("optimizers", "sgd", "state", "local.optimizer={name: mine, lr: 0.1}", 2, ""),
        ("optimizers", "sgd", "update", "local.optimizer={name: mine, lr: 0.1}", 2, ""),
        ("schedules", "constant", "factor", "local.optimizer.schedule=mine", 1, "a number"),
        ("samplers", "fixed", "draw", "fleet={like: home-lab, slowdown: {name: mine}}", 2, "an array"),
        ("availability", "always", "timetable", "fleet={like: home-lab, availability: mine}", 1, ""),
        ("speed", "load", "curve", "fleet={like: home-lab, speed: [{name: mine}]}", 1, ""),
    )
    for kind, module, hook, setting, status, expected in records:
        text = _record(f"edgefl.core.{kind}.{module}", hook)
        yield Plant(kind, hook, text, dict([setting.split("=")]), status, expected)
    yield Plant("policies", "a process", _POLICY % "PLANT", {"server.policy": "mine"}, 1)
    uses = {"server.selector": "mine"}
    yield Plant("selectors", "select", _SELECTOR % ("PLANT", "pass"), uses, 1)
    yield Plant("selectors", "observe", _SELECTOR % ("pass", "PLANT"), uses, 1)
    yield Plant("engines", "outcomes", _ENGINE, {"engine": "mine"}, 1)


def _methods() -> Iterator[Plant]:
    uses = {"method": "mine"}
    yield Plant("methods", "top", "PLANT", uses, 2)
    yield Plant("methods", "build", _record("edgefl.methods.fedavg", "build"), uses, 2, "Method")
    for hook, expected in {"server": "a server state", "client": ""}.items():
        yield Plant("methods", hook, _method(hook, f"replace(method, {hook}={hook})"), uses, 2, expected)
    for hook, expected in {"down": "a payload", "settings": "a dict of numbers"}.items():
        yield Plant("methods", hook, _method(hook, _EXCHANGE % f"{hook}={hook}"), uses, 2, expected)
    for hook, expected in {"start": "a carry", "finish": "(upload, client state)", "step": "a carry"}.items():
        made = _WORK % ("phases=(replace(phase, step=step),)" if hook == "step" else f"{hook}={hook}")
        yield Plant("methods", hook, _method(hook, made), uses, 2, expected)
        original = "phase.step" if hook == "step" else f"work.{hook}"
        yield Plant("methods", f"{hook} on data", _method(hook, made, original), uses, 1, expected)
    yield Plant("methods", "merge", _method("merge", _EXCHANGE % "merge=merge"), uses, 1, "a server state")
    for hook in ("personal_model", "global_model"):
        made = f"replace(method, {hook}={hook})"
        yield Plant("methods", hook, _method(hook, made), uses, 1, "a Predictor")
    yield Plant("methods", "logits", _predictor("global_model"), uses, 1)


PLANTS = tuple(_plants())
