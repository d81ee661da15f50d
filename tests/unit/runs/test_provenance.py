"""What a run's last bits depend on beside its plan is known, and what has changed is told in words."""

import json
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

import edgefl
from edgefl.core.user_code import LOADED
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.group import drafts
from edgefl.runs.provenance import differences, digests, provenance

PACKAGE = Path(edgefl.__file__).parent
# What only shows or exports what a run did, and what needs no run.
OTHERS = {"analysis", "calibrate", "cli", "export", "importing", "show", "trackers"}

METHOD = """
from helping_hand import NOTHING
from edgefl.methods import fedavg


class Params(fedavg.Params):
    def build(self, site):
        NOTHING()
        return super().build(site)
"""
SAMPLER = """
import numpy as np
from edgefl.core.samplers import Sampler


class Params(Sampler):
    def draw(self, uniform):
        return np.ones_like(uniform)
"""
MEMBER = {"device": "raspberry-pi-4b", "link": "wifi-pi5"}
OWN = {
    "methods/mine.py": METHOD,
    "methods/unused.py": METHOD,
    "selectors/own_choice.py": "from edgefl.world.selectors.random import Params\n",
    "samplers/ones.py": SAMPLER,
    "profiles/slow.yaml": json.dumps({"title": "Slow", "members": [MEMBER], "slowdown": {"name": "ones"}}),
    "helping_hand.py": "import deeper\n\n\ndef NOTHING():\n    return deeper\n",
    "deeper.py": "",
}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """What other tests of this process have loaded of their own is not there."""
    for name in [name for name in sys.modules if name.startswith(LOADED)]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A directory on EDGEFL_PATH with components of the user's own, one of them unused, and two helpers."""
    for name, text in OWN.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith((LOADED, "helping_hand", "deeper"))]:
        del sys.modules[name]


def planned(**settings):
    scenario = {
        "task": {"dataset": "digits", "clients": 2},
        "model": "mlp",
        "method": "fedavg",
        "fleet": {"members": [MEMBER]},
    }
    return plan(drafts({**scenario, **settings})[0], DataAccess(need="labels"))


def test_versions_machine_and_code_are_told_as_plain_data(monkeypatch):
    found = provenance(planned())
    assert json.loads(json.dumps(found)) == found
    assert found["versions"]["torch"] == version("torch")
    assert found["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert set(found["versions"]) >= {"python", "torch", "torchvision", "numpy", "simpy"}
    assert found["machine"]["capability"] == torch.backends.cpu.get_cpu_capability()
    assert "cuda" not in found["machine"]
    assert found["code"] == digests(PACKAGE)
    assert found["files"] == {}
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"card {device.index}")
    assert provenance(planned(), torch.device("cuda", 1))["machine"]["cuda"] == "card 1"


def test_every_room_of_the_package_is_digested_or_cannot_change_a_result():
    """A new folder of the package must be put into one of the two."""
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert set(digests(PACKAGE)) == folders - OTHERS


def test_files_that_appear_vanish_or_are_renamed_are_changes(tmp_path):
    """A room is its files' paths and contents; what is no source is not in it."""
    ignored = shutil.ignore_patterns("__pycache__", "show", "export", "cli", "calibrate")
    package = shutil.copytree(PACKAGE, tmp_path / "edgefl", ignore=ignored)
    before = digests(package)
    (package / "methods" / "notes.txt").touch()
    (package / "methods.py").touch()
    assert digests(package) == before
    (package / "methods" / "fedper.py").rename(package / "methods" / "fedpar.py")
    (package / "models" / "new.py").touch()
    (package / "world" / "blind.py").unlink()
    assert differences({"code": before}, {"code": digests(package)}) == [
        "edgefl's models, methods and world have changed since"
    ]


def test_a_users_files_are_those_that_the_run_uses(own):
    """Components, also of the fleet and below another method, with what they import; no others."""
    found = planned(
        method={"name": "fedprox", "mu": 0.1, "base": "mine"},
        server={"selector": "own-choice", "participants": 1, "until": {"rounds": 1}},
        fleet="slow",
    )
    before = provenance(found)
    assert differences({}, before) == []
    used = set(OWN) - {"methods/unused.py", "profiles/slow.yaml"}
    assert {name.removeprefix(f"{own.name}/") for name in before["files"]} == used
    for name in ("methods/mine.py", "helping_hand.py"):
        (own / name).write_text((own / name).read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert differences(before, provenance(found)) == [
        f"{own.name}/helping_hand.py has changed since",
        "methods/mine.py has changed since",
    ]
