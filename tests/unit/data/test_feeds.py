from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.core.steps import Passes
from edgefl.data import Arrays, Spec
from edgefl.data import batching as batching_module
from edgefl.data.augmentations import shift
from edgefl.data.batching import Together, batches
from edgefl.data.federation import federate
from edgefl.protocol import Phase

SHAPE = (1, 4, 4)
PUBLIC = 11
SPEC = Spec("noise", SHAPE, 3, 400, 1, ("a", "b", "c"), (0.5,), (0.25,))
SHIFT = shift.Params(pixels=1).augment


def federation(sizes):
    """Clients of so many images, which lie scattered over the dataset."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (400, *SHAPE), dtype=np.uint8)

    def scattered(labels, *_):
        parts = np.split(rng.permutation(len(labels)), np.cumsum(sizes))
        return [np.sort(part) for part in parts[:-1]]

    arrays = Arrays(x, rng.integers(0, 3, 400), x[:1], np.zeros(1, dtype=np.int64))
    return federate(SPEC, arrays, scattered, len(sizes), seed=0, public=PUBLIC)


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 23), min_size=1, max_size=5),
    batch_size=st.integers(1, 8),
    passes=st.lists(
        st.one_of(st.builds(Passes, epochs=st.integers(0, 3)), st.builds(Passes, steps=st.integers(0, 9))),
        min_size=5,
        max_size=5,
    ),
    equal=st.booleans(),
    data=st.sampled_from(["train", "plain", "public"]),
    views=st.integers(1, 2),
    augment=st.sampled_from([None, SHIFT]),
    order=st.randoms(use_true_random=False),
)
def test_together_as_alone(sizes, batch_size, passes, equal, data, views, augment, order):
    """In any order of clients, each with a phase of its own length or not, row by row and bit for bit."""
    fed = federation(sizes)
    clients, seeds = list(range(len(sizes))), [100 + client for client in range(len(sizes))]
    if data == "public":
        passes = [replace(one, samples=PUBLIC) for one in passes]
    phases = [
        Phase("train", lambda carry, _: carry, passes[0 if equal else client], data=data, views=views)
        for client in clients
    ]
    feed = Together(fed, clients, phases, batch_size, seeds, augment=augment)
    alone = [
        list(batches(fed, client, phase, batch_size, seed, augment=augment))
        for client, phase, seed in zip(clients, phases, seeds, strict=True)
    ]
    assert [list(each) for each in feed.sizes] == [[len(batch.y) for batch in each] for each in alone]
    done = [0] * len(sizes)
    while waiting := [client for client in clients if done[client] < len(feed.sizes[client])]:
        first = order.choice(waiting)
        size = feed.sizes[first][done[first]]
        chosen = [
            one
            for one in waiting
            if feed.sizes[one][done[one]] == size and (one == first or order.random() < 0.7)
        ]
        batch = feed.take(chosen, done)
        for row, client in enumerate(chosen):
            expected = alone[client][done[client]]
            assert torch.equal(batch.x[row], expected.x)
            assert torch.equal(batch.y[row], expected.y)
            done[client] += 1


def test_blocks_are_cut_where_they_end(monkeypatch):
    monkeypatch.setattr(batching_module, "_BLOCK_BYTES", 4 * 2 * 16 * 7)
    fed = federation([20, 20])
    phase = Phase("train", lambda carry, _: carry, Passes(epochs=2))
    feed = Together(fed, [0, 1], [phase, phase], 6, [5, 6])
    for step, alone in enumerate(zip(*(batches(fed, n, phase, 6, 5 + n) for n in (0, 1)), strict=True)):
        batch = feed.take([0, 1], [step, step])
        assert torch.equal(batch.x, torch.stack([one.x for one in alone]))
        assert torch.equal(batch.y, torch.stack([one.y for one in alone]))
