"""What a user's own function returns on data alone: a wrong value is told by the function's file and line."""

from __future__ import annotations

from textwrap import indent

import pytest
from mistakes import written

import edgefl

SCENARIO = {
    "name": "own",
    "task": {"dataset": "digits", "clients": 3},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 256, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"rounds": 1, "participants": 2},
}
METHODS = {
    "down": "def down(server, client):\n    return {real} if server['head']['bias'].is_meta else {wrong}\n"
    "return exchanging(down=down)",
    "start": "def start(payload, state, ctx):\n"
    "    return fold.start(payload, state, ctx) if payload['head']['bias'].is_meta else {wrong}\n"
    "return working(start=start)",
    "step": "def step(carry, batch):\n"
    "    return fold.phases[0].step(carry, batch) if batch.x.is_meta else {wrong}\n"
    "return stepping(step)",
    "finish": "def finish(carry, ctx):\n"
    "    upload, state = fold.finish(carry, ctx)\n"
    "    return upload if upload['head']['bias'].is_meta else {wrong}, state\n"
    "return working(finish=finish)",
    "client": "def client(weights):\n    return None if weights['head']['bias'].is_meta else [{wrong}]\n"
    "return replace(method, client=client)",
    "logits": "def model(server):\n"
    "    def logits(weights, x):\n"
    "        return {wrong}\n"
    "    return replace(method.global_model(server), logits=logits)\n"
    "return replace(method, global_model=model)",
}
OWN = {
    "models": (
        "head",
        (
            "from dataclasses import replace\nfrom edgefl.models import mlp\nParams = mlp.Params\n"
            "def build(params, shape, classes):\n"
            "    net = mlp.build(params, shape, classes)\n"
            "    def head(weights, features):\n"
            "        return net.head(weights, features) if features.is_meta else {wrong}\n"
            "    return replace(net, head=head)\n"
        ),
        lambda name: {"model": name},
    ),
    "selectors": (
        "select",
        (
            "from edgefl.core.params import Component\nclass Params(Component):\n    '''None.'''\n"
            "class Selector:\n    def select(self, count, candidates):\n        return {wrong}\n"
            "def build(params, world):\n    return Selector()\n"
        ),
        lambda name: {"server": {**SCENARIO["server"], "selector": name}},
    ),
    "policies": (
        "serve",
        (
            "from edgefl.core.params import Component\nclass Params(Component):\n    '''None.'''\n"
            "def serve(world, params):\n    yield {wrong}\n"
        ),
        lambda name: {"server": {**SCENARIO["server"], "policy": name}},
    ),
    "measures": (
        "measure",
        (
            "from edgefl.core.params import Component\nfrom edgefl.protocol import Row\n"
            "class Params(Component):\n    '''None.'''\n"
            "def measure(params, seen):\n    return [Row([{wrong}])]\n"
        ),
        lambda name: {"evaluate": {"measures": [name]}},
    ),
}


def _fails(folder, changes, engine="loop"):
    (run,) = edgefl.run({**SCENARIO, **changes}, engine=engine, out=folder / "run").runs
    assert run.status == "failed"
    return run.reason


def _line(path, function):
    lines = path.read_text(encoding="utf-8").splitlines()
    return f"{path}:{next(nth for nth, text in enumerate(lines, 1) if f'def {function}(' in text)}"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder on EDGEFL_PATH."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("engine", ["loop", "vmapped"])
@pytest.mark.parametrize("function", METHODS)
def test_a_methods_function_is_named(own, function, engine):
    """None in place of a carry, an upload or logits; and a list in place of a state."""
    name = f"wrong-{function}-{engine}".replace("-", "_")
    code = METHODS[function].replace("{wrong}", "None").replace("{real}", "train.down(server, client)")
    path = written(own, name, indent(code, "    "))
    assert _line(path, function) in _fails(own, {"method": name}, engine)


@pytest.mark.parametrize("kind", OWN)
def test_another_components_function_is_named(own, kind):
    """Also where it is a method of what the file builds."""
    function, code, changes = OWN[kind]
    path = own / kind / f"wrong_{kind}.py"
    path.parent.mkdir()
    path.write_text('"""Wrong."""\n' + code.replace("{wrong}", "None"), encoding="utf-8")
    assert _line(path, function) in _fails(own, changes(path.stem))
