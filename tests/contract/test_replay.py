"""A replay is what a run trained there would be, in every row, or it is refused and names the first merge."""

import gc
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from commands import run_command
from nightly import mostly, sampled
from PIL import Image
from replayed import SMALL, assert_same, merges, small
from small import Stop

import edgefl
from edgefl.compute import meta
from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.core.yamls import Document
from edgefl.runs.replaying import Replayer
from edgefl.store.reader import read
from edgefl.world.driver import simulate

ELSEWHERE = "city-phones"
LATE = {"name": "deadline", "quantile": 0.5}
SETTINGS = {
    "stateful": {"method": "scaffold"},
    "at the start and at the end": {"method": "spherefed"},
    "unequal models": {
        "method": "fedclassavg",
        "model": [{"name": "mlp", "hidden": [8]}, {"name": "mlp", "hidden": [12, 8]}],
    },
    "public images": {"method": "ktpfl", "task__public": {"samples": 50}},
    "coded": {"wire__up": {"name": "topk", "share": 0.2}, "wire__down": "fp16"},
    "until an accuracy": {"server__until": {"rounds": 40, "accuracy": 0.3}},
    "losses choose": {"server__selector": "power-of-choice"},
}
BY_TIME = {
    "deadline": {"server__policy": LATE, "method": "scaffold"},
    "partial": {"server__policy": {**LATE, "allow_partial": True}},
    "semi-sync": {"server__policy": {"name": "semi-sync", "interval": "20 ms"}},
    "fedbuff": {"server__policy": {"name": "fedbuff", "buffer": 2}, "method": "fedclassavg"},
    "oort": {"server__selector": "oort"},
    "charging": {"fleet": "city-phones-at-night"},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return small(tmp_path_factory.mktemp("replay") / "run")


def replayed(run, **how):
    (found,) = edgefl.replay(run, **how).runs
    return found


def hash_of(folder):
    with read(folder) as reader:
        return reader.event_hash()


@sampled(1, "name", mostly(SETTINGS, ("stateful", "unequal models", "coded", "losses choose")))
def test_it_is_a_new_run_there(tmp_path, name):
    """All rows of a replay, but those of files, are those of a run trained on that fleet, or its own."""
    run = small(tmp_path / "here", **SETTINGS[name])
    fresh = small(tmp_path / "there", **SETTINGS[name], fleet=ELSEWHERE)
    there, here = replayed(run, fleet=ELSEWHERE), replayed(run)
    assert_same(there.folder, fresh.folder)
    assert_same(here.folder, run.folder)
    assert hash_of(here.folder) == hash_of(run.folder) != hash_of(there.folder)


@sampled(1, "name", mostly(BY_TIME, ("deadline", "fedbuff", "oort", "charging")))
def test_where_merges_go_by_time(tmp_path, name):
    """On its own fleet it is the run; elsewhere the message names the first merge that would be another."""
    run = small(tmp_path / "here", **BY_TIME[name])
    own = replayed(run)
    assert_same(own.folder, run.folder)
    there = {**BY_TIME[name], "fleet": ELSEWHERE if name != "charging" else "home-lab"}
    fresh = small(tmp_path / "there", **there)
    pairs = enumerate(zip(merges(run.folder), merges(fresh.folder), strict=False))
    first = next(place for place, (one, other) in pairs if one != other)
    with pytest.raises(UserError, match=rf"merge {first + 1} \(round \d+\) would") as raised:
        edgefl.replay(run, fleet=there["fleet"])
    assert raised.value.where == str(run.folder)
    assert "--set 'fleet=" in raised.value.hint


def test_nothing_is_traced_or_trained_again(trained, monkeypatch):
    """The recorded traces price every fleet; another codec alone is traced."""
    traced = []
    trace = meta.trace
    monkeypatch.setattr(meta, "trace", lambda *given: traced.append(given) or trace(*given))
    edgefl.replay(trained, fleet=[ELSEWHERE, "home-lab-heavy-tail"])
    assert not traced
    edgefl.replay(trained, overrides={"wire.up": "int8"})
    assert traced


def test_no_data_are_needed(tmp_path, monkeypatch):
    """A run on a folder of images that is gone is replayed, in all rows as it was."""
    images, generator = tmp_path / "images", np.random.default_rng(0)
    for part, count in (("train", 12), ("test", 4)):
        for label, level in (("dark", 40), ("light", 200)):
            (images / part / label).mkdir(parents=True)
            for place in range(count):
                pixels = generator.normal(level, 10, (6, 6, 3)).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(images / part / label / f"{place}.png")
    own = {"dataset": {"name": "folder", "path": str(images)}, "clients": 3}
    changed = {**SMALL, "task": own, "server": {"rounds": 2}}
    (run,) = edgefl.run(changed, out=tmp_path / "run", progress=False).runs
    shutil.rmtree(images)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    found = replayed(run)
    assert_same(found.folder, run.folder)
    replayed(run, fleet=ELSEWHERE)


def test_a_part_of_the_fleet(trained, tmp_path):
    """The rest of it stays, and with it what is assumed."""
    jitter = {"name": "half-normal", "scale": 0.2}
    fresh = small(tmp_path / "there", fleet={"like": "home-lab", "jitter": jitter})
    found = replayed(trained, overrides={"fleet.jitter": jitter})
    assert hash_of(found.folder) == hash_of(fresh.folder) != hash_of(trained.folder)
    assert found.summary().assumed == fresh.summary().assumed


def test_other_codecs(trained, tmp_path):
    """Bytes and times are a run's with the codec, accuracies those that were learned, and a note says so."""
    coded = small(tmp_path / "coded", wire__up="int8")
    found = replayed(trained, overrides=["wire.up=int8"])
    assert found.table("jobs") != trained.table("jobs")
    assert hash_of(found.folder) == hash_of(coded.folder)
    ours, theirs = found.summary(), trained.summary()
    assert ours.accuracy == theirs.accuracy
    note = "wire.up: bytes are those of int8, and accuracies were learned with raw"
    assert note in ours.assumed
    assert note in found.notes
    # Of a replay of this replay, the codec that was learned with is still raw.
    again = replayed(found, overrides={"wire.up": "fp16"})
    assert "wire.up: bytes are those of fp16, and accuracies were learned with raw" in again.notes
    assert sum(note.startswith("wire.") for note in again.notes) == 1
    assert again.source == found.source
    back = replayed(again, overrides={"wire.up": "safetensors"})
    assert not any(note.startswith("wire.") for note in back.notes)
    assert back.summary().up_bytes > ours.up_bytes


@pytest.mark.nightly
def test_fewer_and_more_rounds(trained, tmp_path):
    """A lower server.until is a prefix, whose evaluations may lack accuracies; a higher one is refused."""
    shorter = small(tmp_path / "two", server__until={"rounds": 2})
    found = replayed(trained, overrides={"server.rounds": 2})
    assert_same(found.folder, shorter.folder)
    with pytest.raises(UserError, match=r"was trained for 4 rounds, and here it would go on") as raised:
        edgefl.replay(trained, overrides={"server.until.rounds": 5})
    assert "resume" in raised.value.hint
    found = replayed(trained, overrides={"server.until.rounds": 3})
    assert found.summary().rounds == 3
    assert [row["version"] for row in found.table("evaluations") if row["model"] == "global"] == [2]
    assert any(
        "1 evaluation has no accuracy: the run did not evaluate version 3" in note for note in found.notes
    )


@pytest.mark.nightly
def test_what_the_server_tells_clients_is_compared(tmp_path):
    """A schedule over other rounds, and a temperature by device, would learn something else."""
    run = small(tmp_path / "cosine", local__optimizer__schedule="cosine")
    with pytest.raises(UserError, match=r"merge 2 \(round 1\) would have client \d with learning rate"):
        edgefl.replay(run, overrides={"server.until.rounds": 3})
    chilled = {"name": "flexchill", "temperature": {"by": "device", "values": {"phone-low": 2.0}}}
    run = small(tmp_path / "chill", method=chilled)
    with pytest.raises(
        UserError, match=r"merge 1 \(round 0\) would have client \d with temperature 2 instead"
    ):
        edgefl.replay(run, fleet=ELSEWHERE)


def test_a_run_that_would_come_out_otherwise_today(trained, monkeypatch):
    """Where the clock, a policy or a selector has changed since the run, there is nothing to compare with."""

    def changed(plan):
        return simulate(replace(plan, scenario=plan.scenario.model_copy(update={"seed": 99})))

    monkeypatch.setattr("edgefl.runs.recording.simulate", changed)
    with pytest.raises(edgefl.UserError, match="merge 1 comes out otherwise than it was recorded"):
        edgefl.replay(trained)


def test_refused_clients_are_named(trained, tmp_path, monkeypatch):
    """Where a client's device cannot do the work, the message says why it is missing."""
    tiny = dict(Document.read(catalogue.find("devices", "arduino-nano-33-ble").path).data)
    tiny["memory"] = {"value": "52 kB", "status": "assumed", "source": "too small"}
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "tiny.yaml").write_text(json.dumps(tiny))
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    members = [{"device": "tiny", "link": "ethernet"}]
    with pytest.raises(UserError, match="every client was refused: train needs"):
        edgefl.replay(trained, fleet={"members": members})
    members.append({"device": "raspberry-pi-5", "link": "ethernet"})
    with pytest.raises(UserError, match=r"merge 1 .* in place of .* since client \d is refused: train needs"):
        edgefl.replay(trained, fleet={"members": members})


def test_other_settings_of_the_server(trained):
    """A policy that merges the same is taken; one that does not is refused."""
    found = replayed(trained, overrides={"server.policy": {"name": "deadline", "seconds": "1 h"}})
    assert [merge["jobs"] for merge in found.table("merges")] == [4] * 4
    with pytest.raises(UserError, match=r"merge 1 \(round 0\) would also take clients"):
        edgefl.replay(trained, overrides={"server.participants": 8})
    with pytest.raises(
        UserError, match="the selection reads loss_rms, which the run's training did not report"
    ):
        edgefl.replay(trained, overrides={"server.selector": "oort"})


def test_a_run_that_trained_nothing(tmp_path):
    """A run of the null engine is replayed on any fleet, under policies that merge by time too."""
    policy = {"server.policy": {"name": "fedbuff", "buffer": 2}}
    how = {"engine": "null", "progress": False}
    (run,) = edgefl.run(SMALL, overrides=policy, out=tmp_path / "here", **how).runs
    there = {**policy, "fleet": ELSEWHERE}
    (fresh,) = edgefl.run(SMALL, overrides=there, out=tmp_path / "there", **how).runs
    found = replayed(run, fleet=ELSEWHERE)
    assert_same(found.folder, fresh.folder)


def test_an_interrupted_run(tmp_path):
    """What is there is replayed, up to the last merge, and a note says so; resumed, all of it is."""
    with pytest.raises(KeyboardInterrupt):
        edgefl.run(SMALL, out=tmp_path / "run", callbacks=Stop(3))
    found = replayed(tmp_path / "run", fleet=ELSEWHERE)
    assert found.status == "interrupted"
    assert any("small is recorded up to merge 3, and was not done" in note for note in found.notes)
    fresh = small(tmp_path / "fresh", fleet=ELSEWHERE)
    assert found.table("merges")[:3] != []
    assert merges(found.folder) == merges(fresh.folder)[:3]
    edgefl.resume(tmp_path / "run", progress=False)
    whole = replayed(tmp_path / "run", fleet=ELSEWHERE)
    assert_same(whole.folder, fresh.folder)


def test_replays_are_ordinary_runs(trained, tmp_path, capsys):
    """What is saved can be compared, reported and opened; export says where the models are."""
    result = edgefl.replay(trained, fleet=["home-lab-heavy-tail", ELSEWHERE], out=tmp_path / "out")
    names = ["small on home-lab-heavy-tail", "small on city-phones"]
    assert [run.name for run in edgefl.open(tmp_path / "out").runs] == names
    assert [run.fleet for run in result.runs] == ["home-lab-heavy-tail", ELSEWHERE]
    assert {run.source.run_dir for run in result.runs} == {str(trained.folder.resolve())}
    for command in (
        ["compare", tmp_path / "out", trained.folder],
        ["report", tmp_path / "out", "--out", tmp_path / "page.html"],
        ["table", tmp_path / "out", "jobs", "--out", tmp_path / "jobs.csv"],
        ["explain", result.runs[0].folder],
        ["timeline", result.runs[0].folder, "--out", tmp_path / "trace.pftrace"],
        ["runs", tmp_path / "out"],
    ):
        assert run_command(capsys, *command)[0] == 0, command
    status, _, err = run_command(capsys, "export", result.runs[0].folder)
    assert status == 2
    assert "is a replay of small and has no models of its own" in err
    assert f"export {trained.folder.resolve()}" in err
    with pytest.raises(UserError, match="is a replay of small, and trained nothing that could go on"):
        edgefl.resume(result.runs[0].folder, overrides={"server.until.rounds": 9}, progress=False)


def test_a_directory_in_use_is_refused_before_anything_is_replayed(trained, monkeypatch):
    monkeypatch.setattr(Replayer, "add", lambda *_: pytest.fail("replayed"))
    with pytest.raises(UserError, match="is not empty"):
        edgefl.replay(trained, out=trained.folder)


@pytest.mark.nightly
def test_a_replay_is_there_as_long_as_its_result(trained):
    """Without a directory of its own, it goes with the last object that reads it."""
    (found,) = edgefl.replay(trained, fleet=ELSEWHERE).runs
    folder = found.folder
    gc.collect()
    assert found.summary().status == "done"
    del found
    gc.collect()
    assert not folder.exists()


def test_the_command_prints_json(trained, capsys):
    """The document of ``run``, with each replay's fleet and source; what was refused is among it."""
    fleets = ("--fleet", ELSEWHERE, "--fleet", "city-phones-at-night")
    status, out, err = run_command(capsys, "replay", trained.folder, *fleets, "--json")
    found = json.loads(out)
    assert status == 2
    (run,) = found["runs"]
    assert (run["fleet"], run["run_dir"], found["group_dir"]) == (ELSEWHERE, "", None)
    assert run["source"]["run_dir"] == str(trained.folder.resolve())
    assert run["source"]["event_hash"] == hash_of(trained.folder)
    assert run["virtual_s"] > trained.summary().virtual_s
    (refused,) = found["refused"]
    assert refused["fleet"] == "city-phones-at-night"
    assert refused["reason"] in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fleet", "city-phone"], "did you mean 'city-phones'?"),
        (["--set", "local.epochs=2"], "a replay cannot change 'local.epochs'"),
        (["--set", "seed=3"], "a replay cannot change 'seed'"),
    ],
)
def test_mistakes(trained, capsys, arguments, words):
    status, out, err = run_command(capsys, "replay", trained.folder, *arguments)
    assert (status, out, words in err) == (2, "", True)
