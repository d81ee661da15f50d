"""The catalogue: shipped components and users' own."""

import pytest

from edgefl.core import catalogue
from edgefl.core.errors import UnknownNameError, UserError
from edgefl.core.notes import note

METHOD = '"""Mine: nothing at all."""\n\nVALUE = 5\nbuild = None\n'


@pytest.fixture
def noted(caplog):
    """A function that returns what was noted since it was last called."""
    note.cache_clear()

    def take():
        texts = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return texts

    return take


def test_every_kind_has_entries_that_say_what_they_are():
    for kind in catalogue.KINDS:
        found = catalogue.entries(kind)
        assert found, kind
        for name, entry in found.items():
            assert (entry.name, catalogue.find(kind, name)) == (name, entry)
            assert catalogue.summary(entry), name


def test_own_files_are_found_and_described_without_being_executed(own, tmp_path):
    """Hyphens and underscores are alike; scenarios may lie in folders; helpers and others are not listed."""
    path = own("methods/my_method.py", METHOD)
    assert catalogue.find("methods", "my-method").path == path
    assert catalogue.load("methods", "my_method").VALUE == 5
    assert catalogue.load("methods", "My-Method") is catalogue.load("methods", "my_method")
    # Case does not matter, unless a file is spelled so.
    mine = own("devices/My-Board.yaml", "# Mine.\n")
    assert catalogue.find("devices", "my-board").path == mine
    other = own("devices/my-board.yaml", "# Another.\n")
    assert [catalogue.find("devices", name).path for name in ("My-Board", "my-board")] == [mine, other]
    own("methods/boom.py", '"""Boom."""\nraise RuntimeError("at import")\n')
    own("methods/latin.py", "").write_bytes(b'# -*- coding: latin-1 -*-\n"""Gr\xfc\xdfe."""\n')
    own("methods/null.py", "\0")
    own("methods/_shared.py", METHOD)
    own("scenarios/papers/mine.yaml", "# One, which\n# goes on.\n# Two.\nname: x\n")
    own("scenarios/late.yaml", "name: x\n# Two.\n")
    own("devices/titled.yaml", "# One.\ntitle: 'A board'\n")
    for name in ("boom.py", "tools/boom.py", "methods/boom.txt"):
        own(name, "raise SystemExit('executed')\n")
    told = {
        entry.name: catalogue.summary(entry)
        for kind in catalogue.KINDS
        for entry in catalogue.entries(kind).values()
        if tmp_path in entry.path.parents
    }
    assert told.pop("null").startswith("(not valid Python: ")
    code = {"my-method": "Mine: nothing at all.", "boom": "Boom.", "latin": "Gr\u00fc\u00dfe."}
    assert told == {
        **code,
        "My-Board": "Mine.",
        "my-board": "Another.",
        "papers/mine": "One, which goes on.",
        "late": "Two.",
        "titled": "A board",
    }


def test_a_name_claimed_twice_names_both_files(own):
    """A user's file never silently replaces a shipped one; hyphen and underscore claim the same name."""
    shipped = catalogue.shipped("methods") / "fedavg.py"
    for paths in ([own("methods/my-method.py", METHOD), own("methods/my_method.py", METHOD)], [shipped]):
        own(f"methods/{paths[-1].name}", METHOD)
        with pytest.raises(UserError, match="two files claim the name") as caught:
            catalogue.entries("methods")
        assert all(str(path) in caught.value.where for path in paths)
        own("methods/my-method.py", METHOD).unlink()


@pytest.mark.parametrize("text", ["import nonsense_module\n", "def f(:\n", "1 / 0\n", '"\xe9\n'])
def test_a_broken_own_file_names_itself(own, text):
    path = own("methods/broken.py", text)
    for _ in range(2):
        with pytest.raises(UserError, match=r"broken\.py (fails to import|is not valid)") as caught:
            catalogue.load("methods", "broken")
        assert caught.value.where == f"{path}:1"


def test_own_files_are_read_again(own, tmp_path, monkeypatch):
    for folder, value in (("one", 1), ("two", 2)):
        own(f"{folder}/methods/mine.py", f"VALUE = {value}\nbuild = None\n")
        monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / folder))
        assert value == catalogue.load("methods", "mine").VALUE


@pytest.mark.parametrize(
    ("kind", "names", "hint"),
    [
        ("method", "fedagv", "did you mean 'fedavg'?"),
        ("codec", "zzz", "known: fp16, int8, raw, safetensors, topk"),
        ("device", "pi4 pi-4 Pi_4B", "did you mean 'raspberry-pi-4b'?"),
        ("method", "cka", "did you mean 'fedcka'?"),
        ("method", "fedavgm FedAdam", "did you mean 'fedopt'?"),
        ("selector", "tifl", "did you mean 'tiers'?"),
        ("method", "fedasync", "there is the policy 'fedasync': edgefl show policy fedasync"),
        ("policy", "async", "did you mean 'sync' or 'fedasync'?"),
        ("scenario", "lognormal", "there is the sampler 'lognormal': edgefl show sampler lognormal"),
    ],
)
def test_an_unknown_name_leads_to_what_to_write(kind, names, hint):
    """What a component's summary mentions comes before the name that is spelled most alike."""
    for name in names.split():
        with pytest.raises(UnknownNameError) as caught:
            catalogue.find(catalogue.kind_of(kind), name, where="s.yaml:3")
        assert (caught.value.what, caught.value.where) == (f"unknown {kind} {name!r}", "s.yaml:3")
        assert caught.value.hint == hint


def test_a_name_alone_has_its_kind(own):
    """Where one kind has it; else both are told, or where to look."""
    own("methods/raspberry_pi_4.py", METHOD)
    names = {"raspberry-pi-4b": "device", "FedAvg": "method", "raspberry_pi_4": "method"}
    assert {each: catalogue.only_kind_of(each) for each in names} == names
    with pytest.raises(UnknownNameError, match="did you mean scenario deadline or policy"):
        catalogue.only_kind_of("deadline")
    with pytest.raises(UnknownNameError, match="edgefl list has the names"):
        catalogue.only_kind_of("methods")


@pytest.mark.parametrize("wrong", ["nowhere", "~nouser-of-this-name/x", "file", "a\u0000b", "x" * 5000])
def test_a_path_that_is_no_directory_is_named(wrong, own, tmp_path, monkeypatch, noted):
    """A note says which part of EDGEFL_PATH is left out, once; the others are used."""
    own("file", "")
    own("methods/mine.py", METHOD)
    path = wrong if wrong.startswith("~") else f"{tmp_path}/{wrong}"
    monkeypatch.setattr(catalogue.os, "environ", {"EDGEFL_PATH": f"{path}:{tmp_path}"})
    assert {"mine", "fedavg"} <= set(catalogue.entries("methods"))
    catalogue.entries("models")
    (text,) = noted()
    assert text.startswith(f"EDGEFL_PATH: {path} is left out: ")


def test_the_working_directory_is_looked_at_last(own, tmp_path, monkeypatch, noted):
    """For YAML files alone, which is said when one is used; a name that is taken stays with its file."""
    path, here = tmp_path / "path", tmp_path / "here"
    shipped = catalogue.find("devices", "raspberry-pi-5").path
    for name in (
        "path/devices/both",
        "here/devices/both",
        "here/devices/mine",
        f"here/devices/{shipped.stem}",
    ):
        own(f"{name}.yaml", f"# In {name}.\n{shipped.read_text(encoding='utf-8')}")
    own("here/methods/never.py", "raise SystemExit\n")
    own("here/profiles/links/string.yaml", "# Two cans.\n")
    monkeypatch.setenv("EDGEFL_PATH", str(path))
    monkeypatch.chdir(here)
    assert "never" not in catalogue.entries("methods")
    assert catalogue.entries("devices")["both"].path == path / "devices" / "both.yaml"
    assert noted() == []
    assert catalogue.find("devices", "MINE").path == here / "devices" / "mine.yaml"
    assert noted() == ["found in ./devices: mine"]
    assert catalogue.find("links", "string").path == here / "profiles" / "links" / "string.yaml"
    assert noted() == ["found in ./profiles/links: string"]
    assert catalogue.find("devices", "raspberry-pi-5").path == shipped
    assert noted() == [f"./devices/raspberry-pi-5.yaml is not used: the device 'raspberry-pi-5' is {shipped}"]
    (here / "devices" / shipped.name).unlink()
    monkeypatch.setenv("EDGEFL_PATH", str(here))
    assert catalogue.find("devices", "mine").path == here / "devices" / "mine.yaml"
    assert noted() == []
    # In a checkout, the folders of the working directory are the shipped ones.
    monkeypatch.chdir(catalogue.shipped("devices").parent)
    assert catalogue.find("devices", "laptop-cpu").path.parent == catalogue.shipped("devices")
    assert noted() == []
