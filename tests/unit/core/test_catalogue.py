"""The catalogue: shipped components and users' own."""

from __future__ import annotations

import pytest

from edgefl.core import catalogue
from edgefl.core.components import component as component_of
from edgefl.core.drafts import load
from edgefl.core.errors import UnknownNameError, UserError
from edgefl.core.notes import note
from edgefl.core.yamls import Document
from edgefl.planning.fleets import device

METHOD = '"""Mine: nothing at all."""\n\nVALUE = 5\nbuild = None\n'


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that writes a file under a directory on EDGEFL_PATH."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("kind", catalogue.KINDS)
def test_every_kind_has_entries_that_say_what_they_are(kind):
    """Each shipped component is found, and its file has a one-line description."""
    found = catalogue.entries(kind)
    assert found
    for name, entry in found.items():
        assert entry.name == name
        assert catalogue.find(kind, name) == entry
        assert catalogue.summary(entry)


def test_an_own_method_is_found_and_loaded(own):
    """A file in methods/ on the path is a method; hyphens and underscores are equivalent."""
    path = own("methods/my_method.py", METHOD)
    assert catalogue.find("methods", "my-method").path == path
    assert catalogue.load("methods", "my_method").VALUE == 5
    assert catalogue.load("methods", "my-method") is catalogue.load("methods", "my_method")
    assert catalogue.summary(catalogue.find("methods", "my-method")) == "Mine: nothing at all."


def test_an_own_device_is_found_and_read(own):
    """A YAML file in devices/ on the path is a device."""
    shipped = catalogue.find("devices", "raspberry-pi-5").path.read_text(encoding="utf-8")
    own("devices/my-board.yaml", shipped.replace("153.5 GFLOP/s", "100 GFLOP/s"))
    assert device("my-board").peak["fp32"].value == 100e9


def test_an_own_scenario_may_lie_in_a_folder(own):
    """A scenario's name includes its folder."""
    own("scenarios/papers/mine.yaml", "name: mine\n")
    assert "papers/mine" in catalogue.entries("scenarios")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("methods/fedavg.py", "methods"),
        ("devices/raspberry-pi-5.yaml", "devices"),
        ("policies/sync.py", "policies"),
    ],
)
def test_a_name_claimed_twice_names_both_files(own, name, kind):
    """A user's file never silently replaces a shipped one."""
    path = own(name, METHOD)
    with pytest.raises(UserError) as caught:
        catalogue.entries(kind)
    assert "two files claim the name" in caught.value.what
    assert str(path) in caught.value.where
    assert str(catalogue.shipped(kind)) in caught.value.where


def test_hyphen_and_underscore_claim_the_same_name(own):
    """my-method.py and my_method.py cannot exist side by side."""
    own("methods/my-method.py", METHOD)
    own("methods/my_method.py", METHOD)
    with pytest.raises(UserError, match="two files claim the name 'my-method'"):
        catalogue.entries("methods")


def test_files_that_start_with_an_underscore_are_helpers(own):
    """They are not components."""
    own("methods/_shared.py", METHOD)
    assert "-shared" not in catalogue.entries("methods")


def test_nothing_else_on_the_path_is_executed(own, tmp_path):
    """Other files and folders are neither listed nor executed."""
    own("boom.py", "raise SystemExit('executed')\n")
    own("tools/boom.py", "raise SystemExit('executed')\n")
    own("methods/boom.txt", "raise SystemExit('executed')\n")
    for kind in catalogue.KINDS:
        assert not [entry for entry in catalogue.entries(kind).values() if tmp_path in entry.path.parents]


def test_listing_executes_nothing(own):
    """A broken file is listed, and fails only when it is loaded."""
    own("methods/boom.py", '"""Boom."""\nraise RuntimeError("at import")\n')
    assert catalogue.summary(catalogue.entries("methods")["boom"]) == "Boom."


@pytest.mark.parametrize("text", ["import nonsense_module\n", "def f(:\n", "1 / 0\n", '"\xe9\n'])
def test_a_broken_own_file_names_itself(own, text):
    """An import error in a user's file is a user error that names the file, each time it is loaded."""
    path = own("methods/broken.py", text)
    for _ in range(2):
        with pytest.raises(UserError, match=r"broken\.py (fails to import|is not valid)") as caught:
            catalogue.load("methods", "broken")
        assert caught.value.where == f"{path}:1"


def test_an_own_file_is_read_again_from_another_place(tmp_path, monkeypatch):
    """Two directories in turn with a file of the same name give two modules."""
    for folder, value in (("one", 1), ("two", 2)):
        (tmp_path / folder / "methods").mkdir(parents=True)
        (tmp_path / folder / "methods" / "mine.py").write_text(
            f"VALUE = {value}\nbuild = None\n", encoding="utf-8"
        )
        monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / folder))
        assert value == catalogue.load("methods", "mine").VALUE


@pytest.mark.parametrize(
    ("kind", "name", "what", "hint"),
    [
        ("methods", "fedagv", "unknown method 'fedagv'", "did you mean 'fedavg'?"),
        ("policies", "synk", "unknown policy 'synk'", "did you mean 'sync'?"),
        ("devices", "raspbery-pi-5", "unknown device 'raspbery-pi-5'", "did you mean 'raspberry-pi-5'?"),
        ("codecs", "zzz", "unknown codec 'zzz'", "known: fp16, int8, raw, safetensors, topk"),
    ],
)
def test_unknown_names_suggest_the_nearest(kind, name, what, hint):
    """The kind in the singular, the name as given, and the nearest known name."""
    with pytest.raises(UnknownNameError) as caught:
        catalogue.find(kind, name, where="s.yaml:3")
    assert (caught.value.what, caught.value.where) == (what, "s.yaml:3")
    assert caught.value.hint.startswith(hint)


ALONE = "'fleet={members: [{device: raspberry-pi-4b, link: ethernet}]}'"


@pytest.mark.parametrize(
    ("kind", "names", "hint"),
    [
        ("devices", "rpi4 pi-4 RPi4B raspi_4 raspberrypi4", "did you mean 'raspberry-pi-4b'?"),
        ("devices", "rpi5 pi5", "did you mean 'raspberry-pi-5'?"),
        ("devices", "rpi-zero pi-zero-2w", "did you mean 'raspberry-pi-zero-2w'?"),
        ("devices", "h100", "did you mean 'h100-sxm'?"),
        ("devices", "nano", "did you mean 'arduino-nano-33-ble', 'jetson-nano' or 'jetson-orin-nano'?"),
        ("measures", "cka", "did you mean 'linear-cka'?"),
        ("methods", "cka", "did you mean 'fedcka'?"),
        (
            "methods",
            "fedavgm FedAvgM fed-avgm",
            "there is the method 'fedopt': --set 'method={name: fedopt, optimizer: avgm}'",
        ),
        (
            "methods",
            "fedasync FedAsync async",
            "there is the policy 'fedasync': --set server.policy=fedasync",
        ),
        ("policies", "async", "did you mean 'fedasync'?"),
        (
            "profiles",
            "rpi4 raspberry-pi-4b",
            f"there is the device 'raspberry-pi-4b': --set {ALONE}",
        ),
        ("scenarios", "lognormal", "there is the sampler 'lognormal': edgefl show sampler lognormal"),
    ],
)
def test_what_others_call_so_leads_to_what_to_write(kind, names, hint):
    """Before the name that is spelled most alike: fedavgm is no fedavg, and async is no sync."""
    for name in names.split():
        with pytest.raises(UnknownNameError) as caught:
            catalogue.find(kind, name)
        assert caught.value.hint == hint


@pytest.mark.parametrize("alias", catalogue.ALIASES)
def test_an_alias_is_no_name_and_leads_to_one(alias):
    """Its kind has what it leads to, with the parameters that it gives."""
    kind, value = catalogue.kind_of(catalogue.ALIASES[alias][0]), catalogue.ALIASES[alias][1]
    assert catalogue.SPELLING.sub("", alias) == alias
    assert catalogue.ALIASES[alias][0] not in catalogue.called(alias)
    given = Document.parse(f"it: {value}", "x").data["it"]
    entry = catalogue.find(kind, given if isinstance(given, str) else given["name"])
    if entry.path.suffix == ".py":
        component_of(kind, given, Document("x", {}))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("device", "jetson-nano"),
        ("measure", "linear-cka"),
        ("method", "fedopt"),
        ("policy", "fedasync"),
        ("selector", "tiers"),
    ],
)
def test_a_hint_to_another_kind_works_as_pasted(kind, name):
    """What it says to set is set."""
    scenario = catalogue.find("scenarios", "quickstart").path
    (draft,) = load(scenario, ["sweep=null", catalogue.SETTINGS[kind].format(name)])
    assert f"'{name}'" in str(draft.scenario.resolved())


def test_a_name_alone_has_its_kind(own):
    """Where one kind has it; else both are told, or the nearest of all kinds."""
    own("methods/raspberry_pi_4.py", METHOD)
    assert catalogue.only_kind_of("raspberry-pi-4b") == "device"
    assert catalogue.only_kind_of("FedAvg") == "method"
    assert catalogue.only_kind_of("raspberry_pi_4") == "method"
    for name, what, hint in (
        (
            "deadline",
            "'deadline' is the name of several",
            "did you mean scenario deadline or policy deadline?",
        ),
        ("rpi5", "nothing is named 'rpi5'", "did you mean device raspberry-pi-5?"),
        ("quikstart", "nothing is named 'quikstart'", "did you mean scenario quickstart?"),
        (
            "cka",
            "nothing is named 'cka'",
            "did you mean method fedcka, model fedcka-cnn or measure linear-cka?",
        ),
        ("methods", "nothing is named 'methods'", "edgefl list methods has the names"),
        ("zzz", "nothing is named 'zzz'", "edgefl list has the names"),
    ):
        with pytest.raises(UnknownNameError) as caught:
            catalogue.only_kind_of(name)
        assert (caught.value.what, caught.value.hint) == (what, hint)


def test_unknown_kinds_suggest_the_nearest():
    """An unknown kind is a user error, too."""
    with pytest.raises(UnknownNameError) as caught:
        catalogue.entries("method")
    assert caught.value.hint == "did you mean 'methods'?"


@pytest.fixture
def noted(caplog):
    """A function that returns what was noted since it was last called."""
    note.cache_clear()

    def take():
        texts = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return texts

    return take


@pytest.mark.parametrize("wrong", ["nowhere", "~nouser-of-this-name/x", "file", "a\u0000b", "x" * 5000])
def test_a_path_that_is_no_directory_is_named(wrong, tmp_path, monkeypatch, noted):
    """A note says which part of EDGEFL_PATH is left out, once; the others are used."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "mine.py").write_text(METHOD, encoding="utf-8")
    path = wrong if wrong.startswith("~") else f"{tmp_path}/{wrong}"
    monkeypatch.setattr(catalogue.os, "environ", {"EDGEFL_PATH": f"{path}:{tmp_path}"})
    assert {"mine", "fedavg"} <= set(catalogue.entries("methods"))
    catalogue.entries("models")
    (text,) = noted()
    assert text.startswith(f"EDGEFL_PATH: {path} is left out: ")


def test_what_is_no_file_is_no_component(own):
    """And code in another encoding is described."""
    own("methods/odd.py/x.txt", "")
    own("methods/latin.py", "").write_bytes(b'# -*- coding: latin-1 -*-\n"""Gr\xfc\xdfe."""\n')
    own("methods/null.py", "\0").with_name("lost.py").symlink_to("nowhere")
    found = catalogue.entries("methods")
    assert not {"odd", "lost"} & found.keys()
    assert catalogue.summary(found["latin"]) == "Gr\u00fc\u00dfe."
    assert catalogue.summary(found["null"]).startswith("(not valid Python: ")


def test_the_working_directory_is_looked_at_last(tmp_path, monkeypatch, noted):
    """For YAML files alone, which is said when one is used; a name that is taken stays with its file."""
    path, here = tmp_path / "path", tmp_path / "here"
    device = catalogue.find("devices", "raspberry-pi-5").path.read_text(encoding="utf-8")
    for folder, names in ((path, ["both"]), (here, ["both", "mine", "raspberry-pi-5"])):
        (folder / "devices").mkdir(parents=True)
        for name in names:
            (folder / "devices" / f"{name}.yaml").write_text(
                f"# In {folder.name}.\n{device}", encoding="utf-8"
            )
    (here / "methods").mkdir()
    (here / "methods" / "never.py").write_text("raise SystemExit\n", encoding="utf-8")
    (here / "profiles" / "links").mkdir(parents=True)
    (here / "profiles" / "links" / "string.yaml").write_text("# Two cans.\n", encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(path))
    monkeypatch.chdir(here)
    assert "never" not in catalogue.entries("methods")
    assert catalogue.entries("devices")["both"].path == path / "devices" / "both.yaml"
    assert noted() == []
    assert catalogue.find("devices", "MINE").path == here / "devices" / "mine.yaml"
    assert catalogue.find("devices", "mine").path == here / "devices" / "mine.yaml"
    assert noted() == ["found in ./devices: mine"]
    assert catalogue.find("links", "string").path == here / "profiles" / "links" / "string.yaml"
    assert noted() == ["found in ./profiles/links: string"]
    copied = catalogue.find("devices", "laptop-cpu").path
    (here / "devices" / "laptop-cpu.yaml").write_bytes(copied.read_bytes())
    assert catalogue.find("devices", "laptop-cpu").path == copied
    assert noted() == []
    shipped = catalogue.find("devices", "raspberry-pi-5").path
    assert shipped.parent == catalogue.shipped("devices")
    assert noted() == [f"./devices/raspberry-pi-5.yaml is not used: the device 'raspberry-pi-5' is {shipped}"]


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("# One.\n# Two.\nname: x\n", "One."),
        ("# One, which\n# goes on.\n# Two.\n", "One, which goes on."),
        ("# One\nname: x\n# Two.\n", "One"),
        ("title: 'One'\n", "One"),
        ("name: x\n# Two.\n", "Two."),
        ("", ""),
    ],
)
def test_a_description_is_a_whole_sentence(own, text, description):
    """Of the first comment, or the title."""
    own("scenarios/mine.yaml", text)
    assert catalogue.summary(catalogue.find("scenarios", "mine")) == description


def test_code_in_the_working_directory_is_pointed_out(tmp_path, monkeypatch):
    """It is not read, so the message that does not know its name says what to do."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "small_net.py").write_text("raise SystemExit\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownNameError) as caught:
        catalogue.find("models", "small-net")
    assert caught.value.hint.startswith(
        "./models/small_net.py is read only if EDGEFL_PATH lists this directory"
    )
    monkeypatch.setenv("EDGEFL_PATH", f"{tmp_path}:")
    assert catalogue.find("models", "small-net").path == tmp_path / "models" / "small_net.py"


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("nowhere/home-lab.yaml", "give the name, 'home-lab'"),
        ("mine.yaml", "give the name, 'mine'; the file goes in ./profiles"),
    ],
)
def test_a_path_to_no_file_is_explained(path, hint):
    """A fleet is given by its name, or by the path of a file that is there."""
    with pytest.raises(UnknownNameError) as caught:
        catalogue.find("profiles", path)
    assert caught.value.hint == hint


def test_a_checkout_of_edgefl_is_no_second_place(monkeypatch, noted):
    """In it the folders of the working directory are the shipped ones."""
    monkeypatch.chdir(catalogue.shipped("devices").parent)
    assert catalogue.find("devices", "raspberry-pi-5").path.parent == catalogue.shipped("devices")
    monkeypatch.setenv("EDGEFL_PATH", ".")
    monkeypatch.chdir(catalogue.shipped("devices"))
    assert catalogue.entries("links")
    assert noted() == []


def test_names_are_matched_without_regard_to_case(own):
    """Unless a file is spelled so."""
    assert catalogue.find("methods", "FedAvg") == catalogue.find("methods", "fedavg")
    mine = own("devices/My-Board.yaml", "# Mine.\n")
    assert catalogue.find("devices", "my-board").path == mine
    other = own("devices/my-board.yaml", "# Another.\n")
    assert [catalogue.find("devices", name).path for name in ("My-Board", "my-board")] == [mine, other]
