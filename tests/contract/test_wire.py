"""Runs with codecs: bytes, time and what is learned follow from what travels; wrong codecs are told."""

from __future__ import annotations

import json

import pytest
import torch
from builders import merge_need
from commands import run_command

import edgefl
from edgefl.compute.local import Local
from edgefl.compute.loop import Loop, work
from edgefl.core.errors import UserError
from edgefl.core.event import TrainingJob
from edgefl.planning.learning import DataAccess, channel
from edgefl.planning.plan import plan
from edgefl.protocol import flatten, leaves, read_tree, tree_map, weighted_mean
from edgefl.protocol.codecs import fp16, int8, topk
from edgefl.runs import drafts
from edgefl.runs.context import Context
from edgefl.runs.learner import Learner
from edgefl.runs.states import States

pytestmark = pytest.mark.usefixtures("preloaded_processes")

HEAD = "from edgefl.protocol.codecs import Codec\nclass Params(Codec):\n"
SCENARIO = {
    "task": {"dataset": "digits", "clients": 4},
    "model": {"name": "mlp", "hidden": [16]},
    "method": "fedavg",
    "local": {"epochs": 2, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.3}},
    "fleet": "home-lab",
    "server": {"rounds": 8},
    "evaluate": {"every": 8, "models": ["global"]},
}
SHORT = {**SCENARIO, "server": {"rounds": 2}, "evaluate": {"every": 2, "models": ["global"]}}
NUMBERS = {"body": 64 * 16 + 16, "head": 16 * 10 + 10}
TOPK = {"name": "topk", "share": 0.25}
# codec -> bytes of an upload
BYTES = {
    "raw": 4 * 1210,
    "fp16": 2 * 1210,
    "int8": 1210 + 4 * 8,
    "topk": 8 * (256 + 4 + 40 + 3),
}
WAYS = {"raw": "raw", "fp16": "fp16", "int8": "int8", "topk": TOPK}


def run_with(folder, *, up="raw", down="raw", engine="loop", scenario=SCENARIO):
    (only,) = edgefl.run({**scenario, "wire": {"up": up, "down": down}}, engine=engine, out=folder).runs
    assert only.status == "done"
    return only


def learned(run):
    """The tensors of a run's last version."""
    path = max((run.folder / "versions").iterdir(), key=lambda path: int(path.stem))
    return flatten(read_tree(path))


def upload_parts(run):
    """Bytes of an upload by part; the model has no buffers."""
    rows = [row for row in run.table("payloads") if row["direction"] == "up" and row["bytes"]]
    return {row["part"]: row["bytes"] for row in rows}


def global_row(run):
    return run.table("evaluations")[-1]


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(leaf, other[key]) for key, leaf in one.items())


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    return run_with(tmp_path_factory.mktemp("raw") / "run")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes a codec of the user's own."""
    folder = tmp_path / "own" / "codecs"
    folder.mkdir(parents=True)
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / "own"))
    monkeypatch.chdir(tmp_path)
    return lambda name, text: (folder / f"{name}.py").write_text(text, encoding="utf-8")


def seconds(run, kind):
    """How long all events of a kind took."""
    return sum(event["seconds"] for event in run.table("events") if event["kind"] == kind)


@pytest.mark.parametrize("name", ["fp16", "int8", "topk"])
def test_a_lossy_upload_is_smaller_and_still_learns(tmp_path, raw, name):
    """Bytes are those computed by hand; weights differ from raw's; digits are learned."""
    run = run_with(tmp_path / "run", up=WAYS[name])
    arrived = [event["up_bytes"] for event in run.table("events") if event["kind"] == "arrived"]
    assert arrived == [BYTES[name]] * 32
    assert global_row(run)["up_bytes"] == 32 * BYTES[name]
    assert global_row(run)["down_bytes"] == global_row(raw)["down_bytes"]
    # A small payload takes longer to encode than it saves on the way.
    assert seconds(run, "arrived") < seconds(raw, "arrived")
    assert seconds(run, "worked") > seconds(raw, "worked")
    assert not equal(learned(run), learned(raw))
    assert global_row(run)["accuracy"] > 0.85
    parts = upload_parts(run)
    assert parts.keys() == NUMBERS.keys()
    assert sum(parts.values()) == BYTES[name]


@pytest.mark.parametrize("name", ["fp16", "int8"])
def test_a_lossy_download_is_smaller_and_still_learns(tmp_path, raw, name):
    """The way down has a codec of its own."""
    run = run_with(tmp_path / "run", down=name)
    received = [event["down_bytes"] for event in run.table("events") if event["kind"] == "received"]
    assert received == [BYTES[name]] * 32
    assert global_row(run)["up_bytes"] == global_row(raw)["up_bytes"]
    assert not equal(learned(run), learned(raw))
    assert global_row(run)["accuracy"] > 0.85


def test_a_file_format_costs_its_header_and_changes_no_bit(tmp_path, raw):
    """Safetensors both ways: more bytes, the same weights."""
    run = run_with(tmp_path / "run", up="safetensors", down="safetensors")
    parts = upload_parts(run)
    assert parts == {"body": 4 * NUMBERS["body"], "head": 4 * NUMBERS["head"], "header": parts["header"]}
    assert parts["header"] % 8 == 0
    assert global_row(run)["up_bytes"] == 32 * sum(parts.values())
    assert equal(learned(run), learned(raw))


@pytest.mark.parametrize("name", ["int8", "topk"])
def test_engines_carry_the_same(tmp_path, name):
    """Again the same bits; workers the same bits; stacked clients each have their own scale and entries."""
    wire = {"up": WAYS[name], "down": "int8", "scenario": SHORT}
    loop, again, workers, stacked = (
        run_with(tmp_path / str(place), engine=engine, **wire)
        for place, engine in enumerate(
            ("loop", "loop", {"name": "processes", "workers": 2, "inner": "loop"}, "vmapped")
        )
    )
    assert equal(learned(again), learned(loop))
    assert equal(learned(workers), learned(loop))
    for run in (again, workers, stacked):
        assert run.table("events") == loop.table("events")
    found, apart, count = learned(stacked), 0, 0
    for key, leaf in learned(loop).items():
        # A number at the edge between two places of the grid, or the k-th, may fall to the other side.
        apart += int((~torch.isclose(found[key], leaf, rtol=1e-3, atol=1e-4)).sum())
        count += leaf.numel()
        assert torch.allclose(found[key], leaf, atol=0.05)
    assert apart <= count / 50


def test_a_payload_without_tensors_is_not_coded(own):
    """A codec of the user's own that has a header for everything has none for nothing, and is not called."""
    own(
        "headed",
        f"{HEAD}    def sizes(self, payload, reference):\n        return {{'header': 16}}\n"
        "    def carried(self, payload, reference):\n        return {'body': payload['body']}\n",
    )
    (draft,) = drafts({**SCENARIO, "wire": {"up": "headed"}})
    found = channel(draft.scenario.wire, "up", draft.document)
    assert found.sizes({}) == {}
    assert found.carried({}) == {}
    payload = {"body": {"w": torch.ones(2)}}
    assert found.sizes(payload) == {"header": 16}
    # Nothing, coming first, says nothing about whether the codec is lossless.
    found.carried_all([{}], [None])
    assert len(found.carried_all([payload, payload], [None, None])) == 2
    assert found._apart is False  # noqa: SLF001


def learner_of(**wire):
    planned = plan(drafts({**SHORT, "wire": wire})[0], DataAccess())
    context = Context(planned, States(None, 0))
    return Learner(context, Local(context, Loop(), ahead=False))


def jobs_of(context, version, first=0):
    plan_ = context.planned.plan
    steps = plan_.prices[0].steps[plan_.clients.kind]
    return [
        TrainingJob(
            first + client, client, "train", version, version, version, first + client, int(steps[client])
        )
        for client in range(4)
    ]


def test_clients_begin_with_what_the_codec_carried():
    """All with the very same tensors, so that an engine need not stack them."""
    context = learner_of(down="int8").context
    tasks = context.group(jobs_of(context, 0)).tasks
    sent = context.versions[0]
    expected = int8.Params().carried({part: sent[part] for part in NUMBERS}, None)
    for task in tasks:
        assert equal(flatten(task.payload), flatten(expected))
        assert all(
            one is other for one, other in zip(leaves(task.payload), leaves(tasks[0].payload), strict=True)
        )
    context.versions[1] = tree_map(lambda leaf: leaf + 1, sent)
    (later,) = context.group(jobs_of(context, 1)[:1]).tasks
    assert not equal(flatten(later.payload), flatten(expected))


def merge_of(jobs, version):
    return merge_need(jobs, version, live=(0, 1))


def test_what_is_merged_is_what_was_decoded():
    """Also late: the change is the one from the version that the client was sent, as it was received.

    A late upload u of a client that received r counts as c + (u - r), where c is what it would receive now.
    """
    learner = learner_of(up=TOPK, down="fp16")
    context = learner.context
    first, stale = jobs_of(context, 0), jobs_of(context, 0, first=4)
    uploads = [work(context.group([job]).tasks[0]).upload for job in stale]
    learner.merge(merge_of(first, 1))
    then, now = (
        fp16.Params().carried({part: context.versions[version][part] for part in NUMBERS}, None)
        for version in (0, 1)
    )
    learner.merge(merge_of(stale, 2))
    decoded = [topk.Params(share=0.25).carried(upload, then) for upload in uploads]
    worth = [
        tree_map(lambda new, old, sent: new + (sent - old), now, then, {part: one[part] for part in NUMBERS})
        for one in decoded
    ]
    expected = flatten(weighted_mean(worth, [1.0] * len(stale)))
    found = flatten({part: context.versions[2][part] for part in NUMBERS})
    for key, leaf in expected.items():
        torch.testing.assert_close(found[key], leaf, rtol=1e-6, atol=1e-7)
    assert not equal(found, flatten({part: context.versions[1][part] for part in NUMBERS}))


def test_what_needs_a_reference_is_refused_on_the_way_down(tmp_path, capsys):
    """With the scenario's line, and what to do instead."""
    path = tmp_path / "mine.yaml"
    lines = [f"{key}: {json.dumps(value)}" for key, value in SHORT.items()]
    path.write_text("\n".join([*lines, "wire:", "  up: topk", "  down: {name: topk, share: 0.1}", ""]))
    status, _, told = run_command(capsys, "check", path)
    assert status == 2
    assert "'topk' cannot carry what clients receive" in told
    assert f"{path}:{len(lines) + 3}, key 'wire.down'" in told
    assert "wire.up" in told


SIZED = {
    "compresses": (
        "len(zlib.compress(b''.join(leaf.numpy().tobytes() for leaf in leaves(payload))))",
        r"shapes and types alone: \w+: ",
    ),
    "counts": ("int((leaves(payload)[0] != 0).sum())", r"shapes and types alone: RuntimeError: "),
    "counts without asking": ("4 * (leaves(payload)[0] != 0).sum()", "returned a tensor without a value"),
    "halves": ("2.5", "returned 2.5"),
    "owes": ("-1", "returned -1"),
}


@pytest.mark.parametrize("kind", SIZED)
def test_sizes_that_depend_on_values_are_refused(own, kind):
    """Time is known before training: a codec that reads values to tell a size is refused."""
    size, expected = SIZED[kind]
    own(
        "entropy",
        f"""
import zlib
from edgefl.protocol import leaves
{HEAD}
    def sizes(self, payload, reference):
        return {{"all": {size}}}

    def carried(self, payload, reference):
        return payload
""",
    )
    with pytest.raises(UserError, match=expected) as caught:
        edgefl.run({**SHORT, "wire": {"up": "entropy"}}, engine="null")
    assert caught.value.exit_status == 2
    assert "'entropy'" in caught.value.what
    assert "entropy.py" in caught.value.where
    assert "'wire.up'" in caught.value.where
    assert "time is known before training" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    def carried(self, payload, reference): return payload", "lack 'sizes'"),
        ("    def sizes(self, payload, reference): return {}", "neither 'carried' nor 'encode' and 'decode'"),
        (
            "    def sizes(self, x, r): return 7\n    def carried(self, x, r): return x",
            "returned an object of class 'int'",
        ),
    ],
)
def test_a_codec_that_lacks_something_is_told(own, text, expected):
    own("mine", HEAD + text)
    with pytest.raises(UserError, match=expected):
        edgefl.run({**SHORT, "wire": {"up": "mine"}}, engine="null")


SIZES = f"from edgefl.protocol import *\n{HEAD}    def sizes(self, x, r): return bytes_by_part(x)\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return tree_map(lambda leaf: leaf.half(), x)", "other keys, shapes or types"),
        ("return {'body': x['body']}", "other keys, shapes or types"),
        ("return 1 / 0", "ZeroDivisionError"),
    ],
)
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_codec_that_breaks_fails_the_run(own, tmp_path, body, expected, way):
    """The run says whose fault it is."""
    own("mine", f"{SIZES}    def carried(self, x, r): {body}")
    (only,) = edgefl.run({**SHORT, "wire": {way: "mine"}}, engine="loop", out=tmp_path / "run").runs
    assert only.status == "failed"
    assert expected in only.reason
    assert "the codec 'mine' fails" in only.reason


def test_a_codec_may_be_bytes_alone(own, tmp_path, raw):
    """What is carried is what is decoded; a codec that vmap cannot take works upload by upload."""
    own(
        "bytes_only",
        f"""from edgefl.protocol.coding import *
{SIZES}
    def encode(self, x, r): return joined(lambda leaf, _: to_bytes(leaf), x, r)
    def decode(self, data, like, r):
        read, size = lambda data, leaf, _: from_bytes(data, leaf), lambda leaf, _: plain_size(leaf)
        return split(read, size, data, like, r)
""",
    )
    own(
        "by_value",
        f"{SIZES}    def carried(self, x, r): return tree_map(lambda leaf: leaf + 0 * int(leaf.sum()), x)",
    )
    for name in ("bytes_only", "by_value"):
        run = run_with(tmp_path / name, up=name, down=name)
        assert equal(learned(run), learned(raw))
