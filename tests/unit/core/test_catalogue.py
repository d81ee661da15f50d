"""The catalogue: shipped components and users' own."""

from __future__ import annotations

import pytest

from edgefl.core import catalogue
from edgefl.core.errors import UnknownNameError, UserError
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
    own("devices/my-board.yaml", shipped.replace("153.6 GFLOP/s", "100 GFLOP/s"))
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


def test_unknown_kinds_suggest_the_nearest():
    """An unknown kind is a user error, too."""
    with pytest.raises(UnknownNameError) as caught:
        catalogue.entries("method")
    assert caught.value.hint == "did you mean 'methods'?"


def test_a_path_that_is_no_directory_is_named(tmp_path, monkeypatch):
    """EDGEFL_PATH is checked, so that a typo in it does not go unnoticed."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="is not a directory") as caught:
        catalogue.entries("methods")
    assert caught.value.where == "EDGEFL_PATH"
