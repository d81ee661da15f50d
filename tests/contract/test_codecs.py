"""Every codec: its sizes depend on shapes alone, and what is carried is the payload but for its rounding."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from safetensors.torch import save

from edgefl.core import catalogue
from edgefl.protocol import bytes_by_part, flatten, leaves, tree_map
from edgefl.protocol.codecs import TensorCodec, fp16, int8, topk
from edgefl.protocol.codecs import safetensors as file_format

SETTINGS = {"topk": ({"share": 0.1}, {"share": 0.5}, {"share": 1.0})}
CODECS = [
    pytest.param(module.Params(**settings), id=f"{name} {settings or ''}".strip())
    for name in catalogue.entries("codecs")
    for module in [catalogue.load("codecs", name)]
    for settings in SETTINGS.get(name, ({},))
]
REAL = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


names = st.text('ab.é"\\\n0', min_size=1, max_size=4)
shapes = st.lists(st.integers(0, 7), max_size=3).map(tuple)


def tensor(shape, dtype, seed, scale=1.0, offset=0.0):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (values * scale + offset).to(dtype)


def tensors(dtypes=REAL, among=shapes, exponents=(-6, 4)):
    exponent = st.integers(*exponents).map(lambda power: 10.0**power)
    offset = st.sampled_from((0.0, 1.0, -300.0))
    return st.builds(tensor, among, st.sampled_from(dtypes), st.integers(0, 2**31), exponent, offset)


@st.composite
def payloads(draw):
    """A payload and a reference that has some of its tensors, some of them in another shape."""
    parts = st.dictionaries(names, tensors((*REAL, torch.int64, torch.bool)), max_size=3)
    payload = draw(st.dictionaries(names, parts, max_size=3))
    reference = {}
    for part, tree in payload.items():
        for name, leaf in tree.items():
            kind = draw(st.sampled_from(("same", "other shape", "missing")))
            if kind != "missing":
                shape = leaf.shape if kind == "same" else (*leaf.shape, 2)
                reference.setdefault(part, {})[name] = tensor(shape, leaf.dtype, draw(st.integers(0, 99)))
    return payload, draw(st.sampled_from((reference, None)))


def on_meta(tree):
    return tree_map(lambda leaf: torch.empty(leaf.shape, dtype=leaf.dtype, device="meta"), tree)


@pytest.mark.parametrize("codec", CODECS)
@given(payloads())
def test_sizes_are_told_without_values(codec, given_):
    """By part, exactly, as with values; keys, shapes, types, counts and arguments stay as they are."""
    payload, reference = given_
    before = [leaf.clone() for leaf in leaves(payload)]
    sizes = codec.sizes(on_meta(payload), reference and on_meta(reference))
    assert sizes == codec.sizes(payload, reference)
    assert set(payload) <= set(sizes)
    found = flatten(codec.carried(payload, reference))
    for name, leaf in flatten(payload).items():
        assert (found[name].shape, found[name].dtype) == (leaf.shape, leaf.dtype)
        # No codec rounds a count.
        assert (leaf.is_floating_point() and leaf.numel()) or torch.equal(found[name], leaf)
    assert all(torch.equal(leaf, old) for leaf, old in zip(leaves(payload), before, strict=True))


@pytest.mark.parametrize("codec", CODECS)
@given(st.lists(tensors((torch.float32,), st.just((3, 4))), min_size=2, max_size=5))
def test_stacked_tensors_are_coded_each_on_its_own(codec, stacked):
    """Under vmap every client has its own scale and its own largest entries, to the last bit."""
    reference = {"w": {"": tensor((3, 4), torch.float32, 0)}}["w"]
    alone = [codec.carried({"w": leaf}, {"w": reference[""]})["w"] for leaf in stacked]
    together = torch.vmap(lambda leaf: codec.carried({"w": leaf}, {"w": reference[""]})["w"])
    assert torch.equal(together(torch.stack(stacked)), torch.stack(alone))


@given(tensors((torch.float32, torch.float64), exponents=(-9, 4)))
def test_half_precision_errs_by_half_a_unit(leaf):
    """2^-11 of a number from 2^-14 on, 2^-25 below; the bounds of IEEE 754."""
    found = fp16.Params().carried({"w": leaf}, None)["w"]
    inside = leaf.abs() <= 65504
    error = (found.double() - leaf.double()).abs()
    assert (error <= torch.clamp_min(leaf.double().abs() * 2**-11, 2**-25))[inside].all()
    assert (found.abs() == 65504)[~inside].all()


@given(tensors(among=shapes.filter(lambda shape: len(shape) > 0 and math.prod(shape) > 0)))
def test_eight_bits_err_by_half_a_step(leaf):
    """At most half of (max - min) / 255, however far from zero the numbers are."""
    found = int8.Params().carried({"w": leaf}, None)["w"].double()
    leaf_ = leaf.double()
    step = (leaf_.max() - leaf_.min()) / 255
    # Besides, the type's own rounding, and the scale's, which is a float32.
    own = leaf_.abs().max() * (torch.finfo(leaf.dtype).eps + 2**-22)
    assert float((found - leaf_).abs().max()) <= float(step / 2 * (1 + 1e-4) + own)


def test_eight_bits_solved_by_hand():
    """Steps of one: -100 ... 155 lie on the grid, and halves go to the even neighbour."""
    leaf = torch.tensor([-100.0, 155.0, 0.0, 0.4, 0.6, -1.5])
    scale, zero, places = int8.Params().message(leaf, None)
    assert (scale.dtype, zero.dtype, places.dtype) == (torch.float32, torch.int32, torch.int8)
    assert (float(scale), int(zero), places.tolist()) == (1.0, -28, [-128, 127, -28, -28, -27, -30])
    found = int8.Params().carried({"w": leaf}, None)["w"]
    assert found.tolist() == [-100.0, 155.0, 0.0, 0.0, 1.0, -2.0]


@given(
    tensors(among=shapes.filter(lambda shape: len(shape) > 0 and math.prod(shape) > 0)),
    st.sampled_from((0.01, 0.1, 0.3, 0.5, 0.99, 1.0)),
    st.integers(0, 99),
)
def test_topk_keeps_the_largest_changes(leaf, share, seed):
    """K places change, by the change that was there; every other change was no larger."""
    base = tensor(leaf.shape, leaf.dtype, seed)
    codec = topk.Params(share=share)
    found = codec.carried({"w": leaf}, {"w": base})["w"]
    change, k = (leaf - base), math.ceil(Fraction(str(share)) * leaf.numel())
    kept = found != base
    assert int(kept.sum()) <= k
    torch.testing.assert_close(found[kept], (base + change)[kept], rtol=0, atol=0)
    largest = change.abs().flatten().sort(descending=True).values
    # What was left out is no larger than the k-th; with a tie any of the equal ones may stay.
    left = change[~kept & (base + change != base)].abs()
    assert bool((left <= largest[k - 1]).all())


@pytest.mark.parametrize(("share", "count"), [(0.07, 7), (0.071, 8), (1.0, 100), (1e-9, 1), (0.29, 29)])
def test_topk_counts_as_decimals_do(share, count):
    """100 times 0.07 is 7, although it is more in binary floating point; at least one entry travels."""
    payload = {"w": {"w": torch.ones(10, 10, device="meta")}}
    assert topk.Params(share=share).sizes(payload, payload) == {"w": 8 * count}


def test_topk_sends_whole_what_has_no_counterpart():
    """A tensor that the client was not sent, or was sent in another shape or type, is no change of one."""
    reference = {"body": {"w": torch.zeros(8)}, "other": {"w": torch.zeros(8).double(), "v": torch.zeros(4)}}
    upload = {
        "body": {"w": torch.arange(8.0)},
        "other": {"w": torch.arange(8.0), "v": torch.arange(8.0)},
        "gram": {"u": torch.ones(3, 3)},
    }
    codec = topk.Params(share=0.25)
    assert codec.sizes(upload, reference) == {"body": 16, "other": 64, "gram": 36}
    found = codec.carried(upload, reference)
    assert found["body"]["w"].tolist() == [0, 0, 0, 0, 0, 0, 6, 7]
    assert found["other"]["w"] is upload["other"]["w"]
    assert found["gram"]["u"] is upload["gram"]["u"]


@given(payloads())
def test_safetensors_sizes_are_the_librarys(given_):
    """The header is all that the library's own file has beside the values."""
    payload, _ = given_
    assume(leaves(payload))
    data = save({name: leaf.clone() for name, leaf in flatten(payload).items()})
    sizes = file_format.Params().sizes(on_meta(payload), None)
    header = 8 + int.from_bytes(data[:8], "little")
    assert sum(sizes.values()) == len(data)
    if "header" not in payload:
        assert sizes == {**bytes_by_part(payload), "header": header}


class Nothing(TensorCodec):
    """Sends no numbers, but integers as they are."""

    def message(self, leaf, base):  # noqa: ARG002
        return () if leaf.is_floating_point() else None

    def restored(self, message, like, base):  # noqa: ARG002
        return torch.zeros_like(like)


def test_of_an_empty_message_nothing_is_counted():
    payload = {"body": {"w": torch.ones(1000), "n": torch.ones(3, dtype=torch.int64)}}
    codec = Nothing(name="nothing")
    assert codec.sizes(payload, None) == {"body": 24}
    assert [leaf.sum().item() for leaf in leaves(codec.carried(payload, None))] == [0, 3]
