"""Any module is trained, profiled and exported as it is, or refused with the layer's name."""

import copy
import json
from pathlib import Path

import given_modules
import pytest
import torch
from commands import run_command
from small import SMALL
from torch.nn import functional as F

import edgefl
from edgefl.compute import loop
from edgefl.core.errors import UserError
from edgefl.protocol.files import read_tree
from edgefl.store.reader import read

pytestmark = pytest.mark.usefixtures("preloaded_processes")

FILE = str(Path(given_modules.__file__))
SCENARIO = {**SMALL, "server": {"rounds": 1}}


def component(make, **others):
    return {"name": "module", "path": FILE, "make": make, **others}


def trained(out, model, engine="loop", **changes):
    result = edgefl.run({**SCENARIO, **changes, "model": model}, engine=engine, out=out)
    assert [run.reason for run in result.runs] == [""]
    return last(out)


def last(folder):
    with read(folder) as reader:
        file = [row["file"] for row in reader.rows("versions")][-1]
    return read_tree(folder / file)


def same(one, other):
    return all(torch.equal(one[part][name], other[part][name]) for part in one for name in one[part])


@pytest.mark.nightly
@pytest.mark.usefixtures("one_registry")
@pytest.mark.parametrize("make", ["Attentive", "Tied", "Noisy", "sequential"])
def test_a_module_runs_and_is_profiled_and_exported(make, tmp_path, capsys, monkeypatch):
    """With dropout, attention, shared weights and buffers of all kinds, and no second definition."""
    monkeypatch.chdir(tmp_path)
    trained(tmp_path / "run", component(make))
    Path("given.yaml").write_text(json.dumps({**SCENARIO, "model": component(make)}), encoding="utf-8")
    assert run_command(capsys, "profile", "given.yaml", "--device", "raspberry-pi-5")[0] == 0
    status, out, err = run_command(capsys, "export", "run", "--out", "model.onnx")
    assert status == 0, err
    assert "100%" in out  # the same classes as PyTorch


REFUSED = {
    "Several": "it returns a tuple of 2 instead of logits",
    "Softmax": "'fc': something is computed from its output",
    "Hundred": "its head 'fc' returns 100 numbers an image, and the data have 10 classes",
    "Loose": "the tensor 'places', which is neither a parameter nor a buffer",
    "Always": "it draws random numbers in evaluation",
    "Counting": "its forward changes 'calls'",
    "Convolved": r"it ends in 'pool' \(AdaptiveAvgPool2d\)",
    "Branching": r"failed in forward: .* \(it was called on images of 1x8x8\)",
    "Frozen": "its 'fc.bias' is frozen",
    "Switching": "in training its result is not the output of its head 'fc'",
    "Shaking": "it draws by NumPy or Python",
}


@pytest.mark.parametrize("make", REFUSED)
def test_what_cannot_be_trained_is_refused_by_name(make, tmp_path):
    """Before anything runs; where a line is to blame, with the line."""
    with pytest.raises(UserError, match=REFUSED[make]) as caught:
        edgefl.run({**SCENARIO, "model": component(make)}, out=tmp_path / "run")
    assert caught.value.hint
    if make in {"Always", "Branching"}:
        line = int(caught.value.where.removeprefix(f"{FILE}:"))
        assert "self.fc(" in Path(FILE).read_text(encoding="utf-8").splitlines()[line - 1]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (component("Convolutional", head="fc1"), "not the output of its last linear layer, 'fc1'"),
        (component("Convolutionl"), "has no class or function 'Convolutionl'"),
        (component("Convolutional", args={"depth": 3}), "unexpected keyword argument 'depth'"),
        ({"name": "module", "path": "nowhere.py"}, "no file 'nowhere.py'"),
        (component("Convolutional", layers=["conv9"]), "has no layer 'conv9'"),
    ],
)
def test_a_wrong_component_is_one_message(model, message, tmp_path):
    with pytest.raises(UserError, match=message):
        edgefl.run(
            {**SCENARIO, "method": {"name": "fedcka", "layers": 1}, "model": model}, out=tmp_path / "run"
        )


def test_training_equals_plain_pytorch(tmp_path, monkeypatch):
    """One client's weights after two epochs are those of torch's own loop on the same batches."""
    batches, work = [], loop.work

    def watched(task):
        batches.extend(batch for phase in task.fold.phases for batch in task.batches(phase))
        return work(task)

    monkeypatch.setattr(loop, "work", watched)
    torch.manual_seed(3)
    module = given_modules.Plain()
    local = {**SCENARIO["local"], "epochs": 2}
    found = trained(tmp_path / "run", module, task={"dataset": "digits", "clients": 1}, local=local)
    theirs = copy.deepcopy(module).train()
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    assert len(batches) > 20
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(theirs(x), y).backward()
        optimizer.step()
    head = {f"fc.{name}": value for name, value in found["head"].items()}
    ours = {**found["body"], **found["buffers"], **head}
    state = {name: value for name, value in theirs.state_dict().items() if "num_batches" not in name}
    assert ours.keys() == state.keys()
    for name, value in state.items():
        torch.testing.assert_close(ours[name], value, rtol=1e-4, atol=1e-6)
    assert not torch.equal(state["fc.weight"], module.fc.weight)


@pytest.mark.nightly
def test_what_is_drawn_does_not_depend_on_the_engine(tmp_path):
    """With dropout: the same bits in workers, nearly the same if stacked; another seed, others."""
    model = component("Convolutional")
    once = trained(tmp_path / "once", model)
    torch.manual_seed(9)
    assert same(once, trained(tmp_path / "workers", model, {"name": "processes", "workers": 2}))
    assert not same(once, trained(tmp_path / "other", model, seed=1))
    stacked = trained(tmp_path / "vmapped", model, "vmapped")
    for part, tensors in once.items():
        for name, value in tensors.items():
            torch.testing.assert_close(stacked[part][name], value, rtol=1e-3, atol=1e-5)


def test_rounds_clients_and_steps_draw_different_numbers(tmp_path, monkeypatch):
    """The masks of a run are all different, and a round's are drawn again in a run of that round alone."""
    masks, dropout = [], F.dropout

    def watched(x, p, training, inplace=False):  # noqa: FBT002 - torch's signature
        out = dropout(x, p, training, inplace)
        if training and x.device.type == "cpu":
            masks.append(tuple((out != 0).flatten().tolist()))
        return out

    monkeypatch.setattr(F, "dropout", watched)
    trained(
        tmp_path / "run",
        component("Masked"),
        server={"rounds": 2},
        local={**SCENARIO["local"], "batch_size": 32},
    )
    assert len(masks) > 60
    assert len(set(masks)) == len(masks)


@pytest.mark.nightly
def test_where_clients_cannot_be_stacked_they_are_looped(tmp_path, monkeypatch):
    """Noise cannot be stacked; ``auto`` finds out, and equals the loop."""
    monkeypatch.delenv("EDGEFL_ENGINE")
    task = {"dataset": "digits", "clients": 60}
    once, auto = (trained(tmp_path / name, component("Noisy"), name, task=task) for name in ("loop", "auto"))
    assert same(once, auto)
    host = json.loads((tmp_path / "auto" / "host.json").read_text(encoding="utf-8"))
    assert "other random numbers than dropout's" in host["engine"]["auto"]["why"]
    (asked,) = edgefl.run(
        {**SCENARIO, "model": component("Noisy")}, engine="vmapped", out=tmp_path / "v"
    ).runs
    assert "use --engine loop" in asked.reason


@pytest.mark.nightly
def test_a_module_brings_its_weights_and_a_class_draws_them(tmp_path):
    """Every seed starts from a module's weights, wherever it is trained; from a class, from its own."""
    module = given_modules.Plain()
    none = {"optimizer": {"name": "sgd", "lr": 1e-12}}
    for engine in ("loop", "processes"):
        found = trained(tmp_path / engine, module, engine, local={**SCENARIO["local"], **none}, seed=5)
        torch.testing.assert_close(found["body"]["fc1.weight"], module.fc1.weight.detach())
    one, two = (trained(tmp_path / f"seed{seed}", given_modules.Plain, seed=seed) for seed in (0, 1))
    assert not torch.allclose(one["body"]["fc1.weight"], two["body"]["fc1.weight"], atol=0.05)


@pytest.mark.nightly
def test_a_module_of_a_notebook_is_resumed(tmp_path):
    """A class that is in no file is kept for workers, a resumed run and an export."""
    space = {"__name__": "__main__"}
    exec("from torch import nn\nclass Cell(nn.Sequential):\n    pass", space)  # noqa: S102 - as a notebook's cell
    model = space["Cell"](torch.nn.Flatten(), torch.nn.Linear(64, 10))
    once = trained(tmp_path / "once", model, {"name": "processes", "workers": 2}, server={"rounds": 3})
    trained(tmp_path / "run", model, server={"rounds": 2})
    edgefl.resume(tmp_path / "run", overrides={"server.rounds": 3})
    assert same(once, last(tmp_path / "run"))
