"""Making batches and coding payloads: kernels that are no part of a method."""

import pytest
import torch

from edgefl.compute.loading import batch_kernels
from edgefl.core import catalogue
from edgefl.core.cost import ELEMENTWISE
from edgefl.core.drafts import load
from edgefl.core.steps import Passes
from edgefl.planning.learning import DataAccess, data_of, learn_from
from edgefl.planning.pricing import traced
from edgefl.protocol import Phase

AUGMENTATIONS = [name for name in catalogue.entries("augmentations") if name != "none"]
SHAPES = ((1, 8, 8), (3, 16, 16))


def phase(views=1, data="train"):
    """A phase that makes batches and does nothing with them."""
    return Phase("train", lambda carry, _: carry, Passes(epochs=1), data=data, views=views)


def augmentation(name):
    """One of the catalogue's on its defaults."""
    return catalogue.load("augmentations", name).Params().augment


@pytest.mark.parametrize(("views", "moved"), [(1, 10 * 192 * 5), (2, 10 * 192 * 9)])
def test_a_batch_is_read_as_bytes_and_written_as_floats(views, moved):
    """One kernel for ten images of 192 values; each view is written."""
    (kernel,) = batch_kernels(phase(views), None, (3, 8, 8), [10])[10]
    assert (kernel.op, kernel.kind, kernel.bytes, kernel.flops) == ("load", ELEMENTWISE, moved, 0)


@pytest.mark.parametrize(
    ("dataset", "moved"), [("mnist", 28 * 28 * (1 + 4)), ("uci-har", 9 * 128 * (4 + 4))], ids=str
)
def test_a_batch_is_read_in_the_dataset_s_type(dataset, moved):
    """Images are bytes, signals are floats already; so are they where an augmentation comes in between."""
    given = learning(f"task.dataset={dataset}", "model=cnn1d" if dataset == "uci-har" else "model=mlp")
    (trace,) = traced(given, 0, [[({8: 2},)]], {})
    assert kernels(trace.phases[0].batches[8]) == [("load", 8 * moved)]
    (load, *_) = batch_kernels(phase(2), augmentation("shift"), (9, 1, 128), [8], 4)[8]
    assert load.bytes == 8 * 9 * 128 * (4 + 4)


@pytest.mark.parametrize(
    ("name", "shape"), [(name, SHAPES[nth % 2]) for nth, name in enumerate(AUGMENTATIONS)]
)
def test_an_augmentation_costs_what_its_code_does(name, shape):
    """What is concluded from two small batches is what a batch of 12 does; each of two views does it."""
    plain = phase(data="plain")
    assert batch_kernels(plain, augmentation(name), shape, [4]) == batch_kernels(plain, None, shape, [4])
    two = batch_kernels(phase(2), augmentation(name), shape, [12, 40])
    (load, *rest) = two[12]
    view = rest[: len(rest) // 2]
    assert rest == view * 2
    assert [one.op for one in (load, view[-1])] == ["load", "normalise"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgefl.compute.loading._FEW", 12)
        assert batch_kernels(phase(2), augmentation(name), shape, [12])[12] == two[12]
    assert len(view) > 5
    assert sum(one.bytes for one in view) > 2 * 4 * 12 * shape[0] * shape[1] * shape[2]
    assert all(one.kind == ELEMENTWISE and not one.flops for kernels in two.values() for one in kernels)
    assert sum(one.bytes for one in two[40]) > 3 * sum(one.bytes for one in two[12])


@pytest.mark.parametrize(
    "augment",
    [
        lambda x, _: torch.linalg.qr(x + torch.eye(8)).R,
        lambda x, _: x if len(x) < 3 else x.flip(-1),
        lambda x, _: torch.from_numpy(x.numpy()[..., ::-1].copy()),
    ],
    ids=["unknown operator", "other work for other sizes", "without torch"],
)
def test_an_augmentation_that_cannot_be_watched_reads_and_writes_the_view(augment):
    (_, kernel, _) = batch_kernels(phase(), augment, (1, 8, 8), [10])[10]
    assert (kernel.op, kernel.bytes) == ("augment", 2 * 10 * 64 * 4)


def learning(*changes):
    """What quickstart's clients learn, without its sweep."""
    (draft,) = load(catalogue.find("scenarios", "quickstart").path, ["sweep=null", *changes])
    spec, document = draft.scenario.learning, draft.document
    return learn_from(spec, document, data_of(spec, document, DataAccess(need="nothing")))


def kernels(work):
    """The operators and bytes of some work's kernels."""
    return sorted((kernel.op, kernel.bytes) for kernel, count in work for _ in range(count))


def test_a_lossy_codec_costs_the_payload_and_its_code():
    """int8 both ways: each part is read and written once before the first step and once after the last."""
    steps, plain, coded = [[({8: 2},)]], learning(), learning("wire={down: int8, up: int8}")
    (one,), (other,) = (traced(each, 0, steps, {}) for each in (plain, coded))
    sizes = {"body": 4 * (64 * 64 + 64), "head": 4 * (64 * 10 + 10)}
    for work, expected, op, way in (
        (other.start, one.start, "decode", other.down),
        (other.finish, one.finish, "encode", other.up),
    ):
        assert kernels(work) == sorted(
            [*kernels(expected), *((op, size + way[part]) for part, size in sizes.items())]
        )
    assert way["body"] < sizes["body"] / 3
