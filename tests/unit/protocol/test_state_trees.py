"""Trees: their parts lead back to them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgefl.protocol import flatten, leaves, rebuild, tree_map, weighted_mean
from edgefl.protocol.trees import unflatten

KEYS = st.text("ab.-", min_size=1, max_size=3)
TREES = st.recursive(
    st.integers(0, 99).map(lambda value: torch.tensor(float(value))),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def plain(tree, kind=list):
    """A tree as comparable data, the order of its dicts included unless the kind is dict."""
    if isinstance(tree, torch.Tensor):
        return tree.item()
    return kind((key, plain(one, kind)) for key, one in tree.items())


def empties(tree, path=()):
    """The paths of a tree's empty dicts."""
    if isinstance(tree, torch.Tensor):
        return []
    if not tree:
        return ["/".join(path)]
    return [found for key, one in tree.items() for found in empties(one, (*path, key))]


@given(TREES)
def test_flat_names_lead_back(tree):
    """``unflatten`` inverts ``flatten``, given the empty dicts; also for a bare tensor and for {}."""
    assert plain(unflatten(flatten(tree), empties(tree)), dict) == plain(tree, dict)


@given(TREES)
def test_leaves_lead_back(tree):
    """``rebuild`` puts leaves back where ``leaves`` took them, and ``tree_map`` keeps their order."""
    assert plain(rebuild(tree, leaves(tree))) == plain(tree)
    assert plain(tree_map(lambda leaf: leaf + 1, tree)) == plain(
        rebuild(tree, [leaf + 1 for leaf in leaves(tree)])
    )
    assert list(flatten(tree).values()) == leaves(tree)


@pytest.mark.parametrize("key", ["", "a/b"])
def test_a_key_that_cannot_be_in_a_path_is_refused(key: str):
    """A key that would be read back as another place is an error, not a lost tensor."""
    with pytest.raises(ValueError, match="without"):
        flatten({"body": {key: torch.zeros(1)}})


def test_a_mean_by_hand():
    """(1 * 2 + 3 * 6) / 4 = 5, matched by key whatever the order; the inputs stay. One tree is itself."""
    trees = [
        {"body": {"w": torch.tensor([2.0]), "b": torch.tensor([8.0])}, "buffers": {}},
        {"body": {"b": torch.tensor([0.0]), "w": torch.tensor([6.0])}, "buffers": {}},
    ]
    assert plain(weighted_mean(trees, [1, 3])) == [("body", [("w", 5.0), ("b", 2.0)]), ("buffers", [])]
    assert [tree["body"]["w"].item() for tree in trees] == [2.0, 6.0]
    tree = {"w": torch.randn(100, generator=torch.Generator().manual_seed(0))}
    found = weighted_mean([tree], [17])
    assert torch.equal(found["w"], tree["w"])
    assert found["w"] is not tree["w"]
