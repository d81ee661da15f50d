"""Trees some of whose leaves hold one value per client."""

from __future__ import annotations

import pytest
import torch

from edgefl.compute.stacked import (
    Stack,
    chosen,
    fixed,
    over,
    put_back,
    rows,
    spread,
    stack,
    turned,
    with_fixed,
)
from edgefl.protocol import Batch

SHARED = torch.tensor([1.0, 2.0])


def own(*values):
    return Stack(torch.tensor(values))


def test_stacking_keeps_what_is_shared():
    """One tensor that all trees hold stays one; others become rows; equal numbers stay numbers."""
    trees = [{"a": SHARED, "b": [torch.tensor(value)], "n": 3} for value in (1.0, 2.0)]
    found = stack(trees)
    assert found["a"] is SHARED
    assert found["b"][0].value.tolist() == [1, 2]
    assert found["n"] == 3
    assert stack([None, None]) is None
    with pytest.raises(ValueError, match="3 is not the same"):
        stack([{"n": 3}, {"n": 4}])


def test_over_keeps_shared_leaves_and_numbers():
    """An unchanged leaf is the same object; a new constant is a row for each client."""
    counted = []

    def function(tree, factor):
        counted.append(1)
        return {
            "same": tree["shared"],
            "own": tree["own"] * factor + tree["shared"],
            "new": torch.zeros(2),
            "steps": tree["steps"] + 1,
            "none": None,
        }

    found = over(function, {"shared": SHARED, "own": own([1.0, 1.0], [2.0, 2.0], [3.0, 3.0]), "steps": 4}, 10)
    assert counted == [1]
    assert found["same"] is SHARED
    assert found["own"].value.tolist() == [[11, 12], [21, 22], [31, 32]]
    assert (found["steps"], found["none"]) == (5, None)
    found["new"].value[0] += 1.0
    assert found["new"].value.tolist() == [[1, 1], [0, 0], [0, 0]]


def test_writes_in_place_reach_the_stack():
    """Rows are views of the stack, matrices that lie transposed included."""
    weights = turned({"w": Stack(torch.zeros(3, 4, 2)), "b": Stack(torch.zeros(3, 4))})
    assert weights["w"].value.stride() == (8, 1, 4)
    left, right = torch.randn(3, 4, 5), torch.randn(3, 5, 2)

    def function(tree, left, right):
        tree["w"].add_(left @ right)
        tree["b"].add_(1.0)
        return tree

    found = over(function, weights, Stack(left), Stack(right))
    torch.testing.assert_close(weights["w"].value, left @ right)
    assert weights["b"].value.tolist() == [[1] * 4] * 3
    torch.testing.assert_close(found["w"].value, weights["w"].value)


def test_over_takes_named_tuples_and_draws_nothing():
    """A batch stays a batch; a random number would depend on a client's place and is refused."""
    batch = Batch(own([1.0], [2.0]), own(0, 1))
    found = over(lambda one: one._replace(x=one.x + one.y), batch)
    assert isinstance(found, Batch)
    assert found.x.value.tolist() == [[1], [3]]
    with pytest.raises(RuntimeError, match="randomness"):
        over(lambda one: one.x + torch.rand(1), batch)


def test_rows_taken_out_and_put_back():
    """Chosen rows are copies; put back, they overwrite in place, and shared leaves stay shared."""
    tree = {"own": own(1.0, 2.0, 3.0), "shared": SHARED, "n": 1}
    part = chosen(tree, [0, 2])
    part["own"].value += 10
    assert tree["own"].value.tolist() == [1, 2, 3]
    held = tree["own"].value
    back = put_back(tree, [0, 2], part, 3)
    assert back["own"].value is held
    assert held.tolist() == [11, 2, 13]
    assert back["shared"] is SHARED


@pytest.mark.parametrize("new", [own([7.0, 7.0]), torch.tensor([7.0, 7.0])], ids=["own", "another shared"])
def test_a_shared_leaf_becomes_each_clients_own(new):
    """If some clients' step replaces it, the others keep the value; the shared tensor is not written to."""
    back = put_back({"x": SHARED}, [1], {"x": new}, 3)
    assert back["x"].value.tolist() == [[1, 2], [7, 7], [1, 2]]
    assert SHARED.tolist() == [1, 2]


def test_rows_and_copies():
    """Rows are consecutive in memory; shared tensors are expanded, or spread into copies."""
    tree = {"w": turned(Stack(torch.arange(12.0).view(2, 3, 2))), "shared": SHARED}
    found = rows(tree, 2)
    assert found["w"].is_contiguous()
    assert found["w"].flatten().tolist() == list(range(12))
    assert found["shared"].tolist() == [[1, 2], [1, 2]]
    copies = spread(SHARED, 2).value
    copies[0] += 1
    assert copies.tolist() == [[2, 3], [1, 2]]
    assert SHARED.tolist() == [1, 2]


def test_leaves_that_are_not_tensors_are_replaced():
    """In the order of the tree, tensors between them or not."""
    tree = {"a": 1, "b": own(1.0), "c": [SHARED, None, "x"]}
    assert fixed(tree) == [1, None, "x"]
    other = with_fixed(tree, [2, 3, 4])
    assert fixed(other) == [2, 3, 4]
    assert other["b"] is tree["b"]
