"""What a client's work does to what it is given, and what it sends and keeps."""

from typing import Any

import torch

from edgefl.compute import loop
from edgefl.compute.job import Task
from edgefl.compute.process import one_thread
from edgefl.protocol import bytes_by_part, tree_map
from edgefl.runs.contract.findings import Broken
from edgefl.runs.contract.merging import server_shapes, unlike
from edgefl.runs.contract.setting import Call, Round, Setting, calls, differences, driven, identical


def traced_bytes(setting: Setting) -> Broken | None:
    """Every client receives and sends what was traced."""
    for one in setting.rounds():
        for task in one.tasks:
            found = _other_bytes(setting, one, task)
            if found is not None:
                return found
    return None


def _other_bytes(setting: Setting, one: Round, task: Task) -> Broken | None:
    trace = setting.planned.plan.price(one.name).traces[0]
    upload, down = loop.work(task).upload, one.learner.context.builder.exchange(task.job).down
    ways = (("down", trace.down, task.payload, down), ("up", trace.up, upload, task.fold.finish))
    for way, traced, real, function in ways:
        found = bytes_by_part(real)
        if dict(traced) != found:
            what = f"{one.name}, {way}, client {task.job.client}: traced {dict(traced)}, real {found}"
            return Broken(what, (function,), "shapes may depend on the net and the settings only")
    return None


def unmodified(setting: Setting) -> Broken | None:
    """No function writes to what it is given."""
    for one in setting.rounds():
        with one_thread():
            found = driven(calls(one), _written)
        if found is not None:
            return found
    return None


def _written(call: Call) -> tuple[Any, Broken | None]:
    before = {name: tree_map(torch.clone, tree) for name, tree in call.kept.items()}
    result = call.function(*call.arguments)
    for name, tree in call.kept.items():
        if differences(tree, before[name], identical):
            return None, Broken(f"{call.name} modifies its {name}", (call.function,), "copy it first")
    return result, None


def states(setting: Setting) -> Broken | None:
    """States have the keys and shapes that they began with, at the server and at clients."""
    for one in setting.rounds():
        for task in one.tasks:
            state = loop.work(task).state
            begun = one.learner.context.initial_state(task.job.client) or {}
            found = unlike({key: begun.get(key, {}) for key in state or {}}, state or {})
            if found:
                what = f"{one.name}'s finish changes {found} of the client's state"
                return Broken(what, (task.fold.finish,), "client() makes it, with all its keys and shapes")
        broken = server_shapes(one)
        if broken is not None:
            return broken
    return None


def stateful(setting: Setting) -> Broken | None:
    """An exchange that says so writes its clients' states, and no other."""
    for one in setting.firsts():
        task = one.tasks[0]
        writes = loop.work(task).state is not None
        if writes != one.exchange.stateful:
            does = "returns a client state" if writes else "returns None for the client's state"
            what = f"{one.name} has stateful={one.exchange.stateful}, and its finish {does}"
            return Broken(what, (task.fold.finish, setting.build), f"set stateful={writes}, or change finish")
    return None
