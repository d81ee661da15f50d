"""Names and components of a file: all wrong ones are told at once, and case does not matter."""

import pytest

from edgefl.core.components import component
from edgefl.core.drafts import load
from edgefl.core.errors import UserError
from edgefl.core.params import Component
from edgefl.core.yamls import Document

WRONG = """\
task: {dataset: digitz, clients: 4, partition: {name: dirichlet, alhpa: 3}}
model: [mlp, {name: cnn3}]
method: {name: fedprox, mu: -1}
fleet:
  members:
    - {device: raspbery-pi-4b, link: 4g}
    - {device: raspberry-pi-4b, link: wier}
  links:
    wire:
      {title: a cable}
server: {policy: {name: sync, participants: 3}, rounds: 0}
engine: {name: lop}
published: {paper: a paper, runs: [{metod: fedavg, accuracy: 0.4}]}
wire: {up: {name: raw, bits: 1}}
"""


def test_mistakes_of_all_kinds_are_told_together():
    """Values, keys, and names of components, devices, links and methods, each with its line and its hint."""
    with pytest.raises(UserError) as caught:
        load(Document.parse(WRONG, "s.yaml"))
    found = {
        (each.where.split(", ")[0], each.what, each.hint) for each in (caught.value, *caught.value.others)
    }
    assert found >= {
        ("s.yaml:1", "unknown dataset 'digitz'", "did you mean 'digits'?"),
        ("s.yaml:1", "unknown key 'alhpa'", "did you mean 'alpha'?"),
        ("s.yaml:2", "unknown model 'cnn3'", "did you mean 'cnn2'?"),
        ("s.yaml:3", "method.mu should be greater than or equal to 0; got -1", ""),
        ("s.yaml:6", "unknown device 'raspbery-pi-4b'", "did you mean 'raspberry-pi-4b'?"),
        ("s.yaml:7", "unknown link 'wier'", "did you mean 'wire'?"),
        ("s.yaml:11", "server.rounds should be greater than 0; got 0", ""),
        ("s.yaml:11", "unknown key 'participants'", "'participants' is a key of 'server'"),
        ("s.yaml:12", "unknown engine 'lop'", "did you mean 'loop'?"),
        ("s.yaml:14", "unknown key 'bits'", "it has no parameters"),
    }
    assert any("'metod' is no setting, and as a figure must be a number" in what for _, what, _ in found)
    with pytest.raises(UserError) as caught:
        load(Document.parse("rounds: 3\n", "s.yaml"))
    assert "'rounds' is a key of 'server'" in str(caught.value)


GOOD = """\
task: {dataset: Digits, clients: 4, partition: IID}
model: [MLP, {name: mobilenet_v2}]
method: {name: FedProx, mu: 0.1}
local: {optimizer: {name: Adam, lr: 0.01}}
fleet:
  members:
    - {device: Raspberry-Pi-4B, link: 4G, dtype: FP32}
    - {device: raspberry-pi-4b, link: Wire}
  links:
    wire:
      title: a cable
      down: {value: 1 Mbit/s, status: assumed, source: a test}
      up: {value: 1 Mbit/s, status: assumed, source: a test}
      latency: {value: 1 ms, status: assumed, source: a test}
      radio: {status: unknown, source: a test}
server: {policy: Sync, selector: Random}
engine: Loop
"""


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("method=null", "method"),
        ("model=[mlp, null]", "model.1"),
        ("server.policy=null", "server.policy"),
        ("local.optimizer=null", "local.optimizer"),
        ("evaluate.measures=[null]", "evaluate.measures.0"),
    ],
)
def test_nothing_is_no_component(override, key):
    with pytest.raises(UserError, match=f"^{key} should be a name, or a mapping .*; got null"):
        load(Document.parse(GOOD, "s.yaml"), [override])


def test_a_component_by_its_name_alone_is_its_files():
    """As a default of a user's own may be."""
    document = Document.of({}, "mine.py")
    assert component("methods", Component(name="fedavg"), document) == component(
        "methods", "fedavg", document
    )


def test_a_cell_needs_cells():
    with pytest.raises(UserError, match="unknown cell 'x'; give it under 'cells'"):
        load(Document.parse(GOOD, "s.yaml"), ["fleet={members: [{device: laptop-cpu, link: 4g, cell: x}]}"])


def test_a_name_has_one_spelling():
    """That of its file, whatever the case, hyphens and underscores, so that it is the same run."""
    (draft,) = load(Document.parse(GOOD, "s.yaml"))
    scenario = draft.scenario
    names = [
        *(scenario.task.dataset.name, scenario.task.partition.name, *(one.name for one in scenario.models)),
        *(scenario.method.name, scenario.local.optimizer.name, scenario.engine.name),
        *(scenario.server.policy.name, scenario.server.selector.name),
    ]
    assert names == ["digits", "iid", "mlp", "mobilenet-v2", "fedprox", "adam", "loop", "sync", "random"]
    members = [(one.device, one.link, one.dtype) for one in scenario.fleet.members]
    assert members == [("raspberry-pi-4b", "4g", "fp32"), ("raspberry-pi-4b", "wire", "fp32")]
    (named,) = load(Document.parse(GOOD, "s.yaml"), ["fleet=Home-Lab"])
    assert named.scenario.fleet == "home-lab"
