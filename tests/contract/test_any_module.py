"""Any module is trained, profiled and exported as it is, or refused with the layer's name."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import given_modules
import numpy as np
import pytest
import torch
from commands import run_command
from nightly import mostly
from PIL import Image
from torch.nn import functional as F

import edgefl
from edgefl.compute import loop
from edgefl.core.errors import UserError
from edgefl.protocol.files import read_tree
from edgefl.store import read

pytestmark = pytest.mark.usefixtures("preloaded_processes")

FILE = str(Path(given_modules.__file__))
SCENARIO = {
    "name": "given",
    "task": {"dataset": "digits", "clients": 3},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 64, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"rounds": 1},
}


def component(make, **others):
    """A module of the file by its name."""
    return {"name": "module", "path": FILE, "make": make, **others}


def trained(out, model, engine="loop", **changes):
    """The last version of a run."""
    result = edgefl.run({**SCENARIO, **changes, "model": model}, engine=engine, out=out)
    assert [run.reason for run in result.runs] == [""]
    return last(out)


def last(folder):
    """The server's weights after the last round."""
    with read(folder) as reader:
        file = [row["file"] for row in reader.rows("versions")][-1]
    return read_tree(folder / file)


def same(one, other):
    """Whether two servers' weights are equal to the bit."""
    return all(torch.equal(one[part][name], other[part][name]) for part in one for name in one[part])


@pytest.mark.parametrize("make", ["Convolutional", "Attentive", "Tied", "Noisy", "sequential"])
def test_a_module_runs_and_is_profiled_and_exported(make, tmp_path, capsys, monkeypatch):
    """With dropout, attention, shared weights and buffers of all kinds, and no second definition."""
    monkeypatch.chdir(tmp_path)
    weights = trained(tmp_path / "run", component(make))
    module = getattr(given_modules, make)()
    own = {name for name, _ in module.named_parameters()}
    assert {*weights["body"], *(name.replace("4.", "") for name in weights["head"])} >= own - {
        "fc.weight",
        "fc.bias",
        "4.weight",
        "4.bias",
    }
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
    "Recurrent": r"'lstm' \(LSTM\) is recurrent",
    "Always": "it draws random numbers in evaluation",
    "Counting": "its forward changes 'calls'",
    "Replacing": "its forward replaces the buffer 'mean'",
    "Convolved": r"it ends in 'pool' \(AdaptiveAvgPool2d\)",
    "Branching": r"failed in forward: .* \(it was called on images of 1x8x8\)",
    "Frozen": "its 'fc.bias' is frozen",
    "Averaging": r"'norm' \(BatchNorm2d\) averages over all batches",
    "Switching": "in training its result is not the output of its head 'fc'",
    "Shaking": "it draws by NumPy or Python",
    "Wide": r"failed in forward: .* \(it was called on images of 1x8x8\)",
}


@pytest.mark.parametrize("make", REFUSED)
def test_what_cannot_be_trained_is_refused_by_name(make, tmp_path):
    """Before anything runs; where a line is to blame, with the line."""
    with pytest.raises(UserError, match=REFUSED[make]) as caught:
        edgefl.run({**SCENARIO, "model": component(make)}, out=tmp_path / "run")
    assert caught.value.hint or make in {"Recurrent", "Wide"}
    if make in {"Always", "Branching", "Wide"}:
        line = int(caught.value.where.removeprefix(f"{FILE}:"))
        assert "self.fc(" in Path(FILE).read_text(encoding="utf-8").splitlines()[line - 1]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (component("Convolutional", head="fc1"), "not the output of its last linear layer, 'fc1'"),
        (component("Convolutional", head="conv1"), "its head 'conv1' is no linear layer"),
        (component("Convolutionl"), "has no class or function 'Convolutionl'"),
        (component("Convolutional", args={"depth": 3}), "unexpected keyword argument 'depth'"),
        ({"name": "module", "path": FILE}, "classes that are nn.Modules"),
        ({"name": "module", "path": "nowhere.py"}, "no file 'nowhere.py'"),
        ({"name": "module", "path": "torchvision.modls"}, "no module 'torchvision.modls'"),
        (component("Convolutional", layers=["conv9"]), "has no layer 'conv9'"),
    ],
)
def test_a_wrong_component_is_one_message(model, message, tmp_path):
    """Each mistake in the component's own keys."""
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


@pytest.mark.parametrize("make", ["Convolutional", "Noisy"])
def test_what_is_drawn_does_not_depend_on_the_engine(make, tmp_path):
    """With dropout and noise: the same bits again and with any number of workers; another seed, others."""
    model = component(make)
    once = trained(tmp_path / "once", model)
    torch.manual_seed(9)
    assert same(once, trained(tmp_path / "again", model))
    assert same(once, trained(tmp_path / "workers", model, {"name": "processes", "workers": 2}))
    assert not same(once, trained(tmp_path / "other", model, seed=1))


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


@pytest.mark.parametrize("make", ["Convolutional", "sequential"])
def test_stacked_clients_draw_what_each_draws_alone(make, tmp_path):
    """The engines agree to rounding, dropout included."""
    alone, stacked = (trained(tmp_path / name, component(make), name) for name in ("loop", "vmapped"))
    for part, tensors in alone.items():
        for name, value in tensors.items():
            torch.testing.assert_close(stacked[part][name], value, rtol=1e-3, atol=1e-5)


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


def test_a_module_brings_its_weights_and_a_class_draws_them(tmp_path):
    """Every seed starts from a module's weights, wherever it is trained; from a class, from its own."""
    module = given_modules.Plain()
    none = {"optimizer": {"name": "sgd", "lr": 1e-12}}
    for engine in ("loop", "processes"):
        found = trained(tmp_path / engine, module, engine, local={**SCENARIO["local"], **none}, seed=5)
        torch.testing.assert_close(found["body"]["fc1.weight"], module.fc1.weight.detach())
    one, two = (trained(tmp_path / f"seed{seed}", given_modules.Plain, seed=seed) for seed in (0, 1))
    assert not torch.allclose(one["body"]["fc1.weight"], two["body"]["fc1.weight"], atol=0.05)


def test_a_module_of_a_notebook_is_resumed(tmp_path):
    """A class that is in no file is kept for workers, a resumed run and an export."""
    space = {"__name__": "__main__"}
    exec("from torch import nn\nclass Cell(nn.Sequential):\n    pass", space)  # noqa: S102 - as a notebook's cell
    model = space["Cell"](torch.nn.Flatten(), torch.nn.Linear(64, 10))
    once = trained(tmp_path / "once", model, {"name": "processes", "workers": 2}, server={"rounds": 3})
    trained(tmp_path / "run", model, server={"rounds": 2})
    edgefl.resume(tmp_path / "run", overrides={"server.rounds": 3})
    assert same(once, last(tmp_path / "run"))


SIDE = {"inception_v3": 75}
ARGS = {
    "googlenet": {"aux_logits": False, "init_weights": False},
    "inception_v3": {"aux_logits": False, "init_weights": False},
    "vit_b_32": {"image_size": 64},
}
ZOO = {
    "alexnet": "",
    "convnext_tiny": "",
    "densenet121": "",
    "efficientnet_b0": "",
    "googlenet": "",
    "inception_v3": "",
    "mnasnet0_5": "",
    "mobilenet_v2": "",
    "mobilenet_v3_small": "",
    "regnet_x_400mf": "",
    "resnet18": "",
    "resnext50_32x4d": "",
    "shufflenet_v2_x0_5": "",
    "squeezenet1_1": r"'classifier.3' \(AdaptiveAvgPool2d\)",
    "swin_t": "",
    "vgg11": "",
    "vit_b_32": "",
}


@pytest.mark.parametrize("name", mostly(ZOO, ("shufflenet_v2_x0_5", "squeezenet1_1")))
def test_torchvisions_classifiers_work_as_they_are(name, tmp_path, monkeypatch, capsys):
    """They run a round, and are profiled and exported, with dropout, stochastic depth and constants."""
    monkeypatch.chdir(tmp_path)
    side = SIDE.get(name, 64)
    for label in ("one", "two"):
        (tmp_path / "images" / label).mkdir(parents=True)
        for place in range(8):
            pixels = np.random.default_rng([place, len(label)]).integers(
                0, 255, (side, side, 3), dtype=np.uint8
            )
            Image.fromarray(pixels).save(tmp_path / "images" / label / f"{place}.png")
    model = {"name": "module", "path": "torchvision.models", "make": name}
    model["args"] = ARGS.get(name, {})
    scenario = {
        **SCENARIO,
        "task": {"dataset": {"name": "folder", "path": "images"}, "clients": 2},
        "local": {"steps": 1, "batch_size": 4, "optimizer": {"name": "sgd", "lr": 0.01}},
        "fleet": {"members": [{"device": "laptop-cpu", "link": "ethernet"}]},
        "model": model,
    }
    Path("zoo.yaml").write_text(json.dumps(scenario), encoding="utf-8")
    status, _, err = run_command(capsys, "run", "zoo.yaml", "--engine", "loop", "--out", "run")
    if ZOO[name]:
        assert status == 2
        assert re.search(ZOO[name], err)
        return
    assert status == 0, err
    assert run_command(capsys, "profile", "zoo.yaml", "--device", "raspberry-pi-5")[0] == 0
    status, _, err = run_command(capsys, "export", "run", "--out", "model.onnx")
    assert status == 0, err
