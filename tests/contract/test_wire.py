"""Runs with codecs: bytes, time and what is learned follow from what travels; wrong codecs are told."""

import json

import pytest
import torch
from builders import merge_need
from commands import run_command
from nightly import sampled
from small import SMALL

import edgefl
from edgefl.compute.job import Local
from edgefl.compute.loop import Loop, work
from edgefl.core.errors import UserError
from edgefl.core.event import TrainingJob
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.protocol import flatten, read_tree, tree_map, weighted_mean
from edgefl.protocol.codecs import fp16, topk
from edgefl.runs.context import Context
from edgefl.runs.group import drafts
from edgefl.runs.learner import Learner
from edgefl.runs.states import States

pytestmark = pytest.mark.usefixtures("preloaded_processes")

HEAD = "from edgefl.protocol.codecs import Codec\nclass Params(Codec):\n"
SCENARIO = {
    **SMALL,
    "model": {"name": "mlp", "hidden": [16]},
    "local": {"epochs": 2, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.3}},
    "server": {"rounds": 8},
    "evaluate": {"every": 8, "models": ["global"]},
}
SHORT = {**SCENARIO, "server": {"rounds": 2}, "evaluate": {"every": 2, "models": ["global"]}}
NUMBERS = {"body": 64 * 16 + 16, "head": 16 * 10 + 10}
TOPK = {"name": "topk", "share": 0.25}
# codec -> bytes of an upload
BYTES = {"raw": 4 * 1210, "fp16": 2 * 1210, "int8": 1210 + 4 * 8, "topk": 8 * (256 + 4 + 40 + 3)}
WAYS = {"raw": "raw", "fp16": "fp16", "int8": "int8", "topk": TOPK}


def run_with(folder, *, up="raw", down="raw", engine="loop", scenario=SCENARIO):
    (only,) = edgefl.run({**scenario, "wire": {"up": up, "down": down}}, engine=engine, out=folder).runs
    assert only.status == "done"
    return only


def learned(run):
    path = max((run.folder / "versions").iterdir(), key=lambda path: int(path.stem))
    return flatten(read_tree(path))


def upload_parts(run):
    rows = [row for row in run.table("payloads") if row["direction"] == "up" and row["bytes"]]
    return {row["part"]: row["bytes"] for row in rows}


def global_row(run):
    return run.table("evaluations")[-1]


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(leaf, other[key]) for key, leaf in one.items())


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    return run_with(tmp_path_factory.mktemp("raw") / "run")


def seconds(run, kind):
    return sum(event["seconds"] for event in run.table("events") if event["kind"] == kind)


@sampled(1, "name", ["fp16", "int8", "topk"])
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


def test_a_file_format_costs_its_header_and_changes_no_bit(tmp_path, raw):
    run = run_with(tmp_path / "run", up="safetensors", down="safetensors")
    parts = upload_parts(run)
    assert parts == {"body": 4 * NUMBERS["body"], "head": 4 * NUMBERS["head"], "header": parts["header"]}
    assert parts["header"] % 8 == 0
    assert global_row(run)["up_bytes"] == 32 * sum(parts.values())
    assert equal(learned(run), learned(raw))


@pytest.mark.nightly
def test_engines_carry_the_same(tmp_path):
    """Again the same bits; workers the same bits; stacked clients each have their own scale and entries."""
    wire = {"up": TOPK, "down": "int8", "scenario": SHORT}
    loop, again, workers, stacked = (
        run_with(tmp_path / str(place), engine=engine, **wire)
        for place, engine in enumerate(
            ("loop", "loop", {"name": "processes", "workers": 2, "inner": "loop"}, "vmapped")
        )
    )
    assert {event["down_bytes"] for event in loop.table("events") if event["down_bytes"]} == {BYTES["int8"]}
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


def test_what_is_merged_is_what_was_decoded():
    """A late upload u of a client that received r counts as c + (u - r): c is what it would receive now."""
    context = Context(
        plan(drafts({**SHORT, "wire": {"up": TOPK, "down": "fp16"}})[0], DataAccess()), States()
    )
    learner, plan_ = Learner(context, Local(context, Loop(), ahead=False)), context.planned.plan
    steps = plan_.prices[0].demand.steps[plan_.clients.kind].tolist()
    first, stale = (
        [TrainingJob(n + job, job, "train", 0, 0, 0, n + job, steps[job]) for job in range(4)] for n in (0, 4)
    )
    uploads = [work(context.group([job]).tasks[0]).upload for job in stale]
    learner.merge(merge_need(first, 1, live=(0, 1)))
    then, now = (
        fp16.Params().carried({part: context.versions[version][part] for part in NUMBERS}, None)
        for version in (0, 1)
    )
    learner.merge(merge_need(stale, 2, live=(0, 1)))
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
    path = tmp_path / "mine.yaml"
    lines = [f"{key}: {json.dumps(value)}" for key, value in SHORT.items()]
    path.write_text("\n".join([*lines, "wire:", "  up: topk", "  down: {name: topk, share: 0.1}", ""]))
    status, _, told = run_command(capsys, "check", path)
    assert status == 2
    assert "'topk' cannot carry what clients receive" in told
    assert f"{path}:{len(lines) + 3}, key 'wire.down'" in told
    assert "wire.up" in told


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("int((x['body']['fc1.weight'] != 0).sum())", r"shapes and types alone: RuntimeError: "),
        ("2.5", "returned 2.5"),
    ],
)
def test_sizes_that_depend_on_values_are_refused(own, size, expected):
    """Time is known before training: a codec that reads values to tell a size is refused."""
    sizes = f"    def sizes(self, x, r): return {{'all': {size}}}\n"
    own("codecs", "entropy", f"{HEAD}{sizes}    def carried(self, x, r): return x")
    with pytest.raises(UserError, match=expected) as caught:
        edgefl.run({**SHORT, "wire": {"up": "entropy"}}, engine="null")
    assert caught.value.exit_status == 2
    assert "entropy.py" in caught.value.where
    assert "'wire.up'" in caught.value.where
    assert "time is known before training" in caught.value.hint


def test_a_codec_that_lacks_something_is_told(own):
    own("codecs", "mine", HEAD + "    def carried(self, payload, reference): return payload")
    with pytest.raises(UserError, match="lack 'sizes'"):
        edgefl.run({**SHORT, "wire": {"up": "mine"}}, engine="null")


SIZES = f"from edgefl.protocol import *\n{HEAD}    def sizes(self, x, r): return bytes_by_part(x)\n"


@sampled(
    1,
    ("body", "expected"),
    [("return {'body': x['body']}", "other keys, shapes or types"), ("return 1 / 0", "ZeroDivisionError")],
)
def test_a_codec_that_breaks_fails_the_run(own, tmp_path, body, expected):
    own("codecs", "mine", f"{SIZES}    def carried(self, x, r): {body}")
    (only,) = edgefl.run({**SHORT, "wire": {"up": "mine"}}, engine="loop", out=tmp_path / "run").runs
    assert only.status == "failed"
    assert expected in only.reason
    assert "the codec 'mine' fails" in only.reason


@pytest.mark.nightly
def test_a_codec_may_be_bytes_alone(own, tmp_path, raw):
    """What is carried is what is decoded; a codec that vmap cannot take works upload by upload."""
    own(
        "codecs",
        "bytes_only",
        f"""from safetensors.torch import load, save
{SIZES}
    def encode(self, x, r): return save(flatten(x))
    def decode(self, data, like, r): return rebuild(like, map(load(data).get, flatten(like)))
""",
    )
    own(
        "codecs",
        "by_value",
        f"{SIZES}    def carried(self, x, r): return tree_map(lambda leaf: leaf + 0 * int(leaf.sum()), x)",
    )
    for name in ("bytes_only", "by_value"):
        run = run_with(tmp_path / name, up=name, down=name)
        assert equal(learned(run), learned(raw))
