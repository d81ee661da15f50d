"""``edgefl new``: what it writes works as it is, and nothing is overwritten."""

import re
import shlex

import pytest
from commands import run_command
from nightly import sampled

from edgefl.core.sourced import sourced
from edgefl.planning.fleets import device


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("EDGEFL_PATH", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@sampled(
    2,
    "arguments",
    [
        ("device", "my-own"),
        ("device", "my-own", "--like", "coral-edge-tpu"),
        ("fleet", "my-own", "--like", "homes"),
        ("scenario", "my-own"),
    ],
)
def test_a_start_file_works_at_once(capsys, arguments):
    """The command that it prints next ends well, and so does showing it; it is written once."""
    status, out, _ = run_command(capsys, "new", *arguments)
    assert status == 0
    wrote, following = out.splitlines()
    kind = {"fleet": "profile"}.get(arguments[0], arguments[0])
    assert wrote == f"wrote {kind}s/my-own.yaml"
    for command in (following.removeprefix("next: "), f"edgefl show {kind} my-own"):
        status, out, err = run_command(capsys, *shlex.split(command)[1:])
        assert status == 0, err
    status, _, err = run_command(capsys, "new", *arguments)
    assert status == 2
    assert f"{kind}s/my-own.yaml already exists" in err


@sampled(1, "like", ["raspberry-pi-4b", "vc707-systolic", "galaxy-s22", "stm32f746"])
def test_what_a_device_comments_out_are_its_parents_numbers(capsys, folder, like):
    """Without the comment signs the file is valid, and has the same numbers to three digits, now its own."""
    assert run_command(capsys, "new", "device", "own", "--like", like)[0] == 0
    path = folder / "devices" / "own.yaml"
    path.write_text(re.sub(r"(?m)^# (\w+: )", r"\1", path.read_text(encoding="utf-8")), encoding="utf-8")
    own, others = dict(sourced(device("own"))), dict(sourced(device(like)))
    stated = {key for key, one in own.items() if one.source == "given without a source in own.yaml"}
    assert stated
    for key in stated:
        assert own[key].value == pytest.approx(others[key].value, rel=5e-3)
    assert {key: one.value for key, one in own.items() if key not in stated} == {
        key: one.value for key, one in others.items() if key not in stated
    }


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("device", "pixel-6"), "the name 'pixel-6' belongs to another device"),
        (("device", "My board"), "invalid device name 'My board'"),
        (("scenario", "mine", "--like", "async"), "a scenario is like no other"),
    ],
)
def test_what_cannot_be_written_is_refused(capsys, folder, arguments, what):
    status, _, err = run_command(capsys, "new", *arguments)
    assert (status, list(folder.iterdir())) == (2, [])
    assert what in err
