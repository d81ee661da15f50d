import colorsys

import pytest
import torch

from edgefl.data.augmentations import contrastive, crop_flip, cutout, none, shift

STILL = {"smallest": 1.0, "flip": False, "jitter": 0.0, "hue": 0.0, "grey_probability": 0.0}


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _images(batch=64, channels=3, side=8):
    return torch.rand(batch, channels, side, side, generator=_generator(7))


def _contrast(x, **changed):
    return contrastive.Params(**{**STILL, **changed}).augment(x, _generator())


def _coloured(colour, count, side=2):
    return torch.tensor(colour).view(1, 3, 1, 1).expand(count, 3, side, side)


def _moves(x, y, reach):
    """For each sample, by how many rows and columns it was moved with zeros coming in."""
    side, steps = x.shape[-1], range(2 * reach + 1)
    padded = torch.nn.functional.pad(x, (reach,) * 4)
    return [
        [
            (down, right)
            for down in steps
            for right in steps
            if torch.equal(before[:, down : down + side, right : right + side], after)
        ]
        for before, after in zip(padded, y, strict=True)
    ]


def test_none_is_the_identity_and_draws_nothing():
    x, generator = _images(), _generator()
    before = generator.get_state()
    assert none.Params().augment(x, generator) is x
    assert torch.equal(generator.get_state(), before)


def test_shift_moves_by_whole_pixels():
    """Every image is moved by -1, 0 or 1 either way, with zeros for new pixels; all nine moves occur."""
    x = _images(200)
    found = _moves(x, shift.Params(pixels=1).augment(x, _generator()), 1)
    assert all(len(one) == 1 for one in found)
    assert len({one[0] for one in found}) == 9
    assert torch.equal(shift.Params(pixels=0).augment(x, _generator()), x)


def test_crop_flip_crops_and_mirrors():
    """Each image is a moved one, or the mirror image of a moved one; about half are mirrored."""
    x = _images(200)
    y = crop_flip.Params(padding=2).augment(x, _generator())
    straight, mirrored = ([bool(one) for one in _moves(x, z, 2)] for z in (y, y.flip(-1)))
    assert all(one != other for one, other in zip(straight, mirrored, strict=True))
    assert 70 < sum(mirrored) < 130


def test_cutout_blanks_one_square():
    """One rectangle changes, 4 x 4 unless it reaches over the border, all to the fill value."""
    x = _images(200)
    y = cutout.Params(size=4, fill=0.25).augment(x, _generator())
    changed = (x != y).all(1)
    assert ((x == y).all(1) | changed).all()
    assert (y.permute(0, 2, 3, 1)[changed] == 0.25).all()
    rows, columns = changed.any(2).sum(1), changed.any(1).sum(1)
    assert torch.equal(changed.sum((1, 2)), rows * columns)
    assert rows.max() == columns.max() == 4
    assert rows.min() == 2  # size // 2 rows are left of a square centred on the first
    # Centred on any pixel: of size 1, all 64 are hit.
    y = cutout.Params(size=1, fill=0.0).augment(torch.ones(2000, 1, 8, 8), _generator())
    assert ((y == 0).sum((1, 2, 3)) == 1).all()
    assert (y == 0).any(0).all()


def test_contrastive_crops():
    """A ramp's range over a crop is the crop's width: area .2 to 1 and ratio 3/4 to 4/3 bound it."""
    y = _contrast(torch.linspace(0, 1, 64).expand(400, 1, 64, 64), smallest=0.2)
    width = y[:, 0, 32, -1] - y[:, 0, 32, 0]
    assert 0.36 < width.min() < 0.45  # sqrt(.2 * 3/4) = .387, less a pixel at the ends
    assert width.max() > 0.95
    ramp = torch.linspace(0.1, 0.9, 16).expand(100, 1, 16, 16)
    y = _contrast(ramp, smallest=0.2, flip=True)
    steps = y[:, 0, 4].diff(dim=-1)
    up, down = (steps >= -1e-6).all(1), (steps <= 1e-6).all(1)
    assert (up | down).all()
    assert 25 < int(down.sum()) < 75  # about half are mirrored
    assert (y.min() >= 0.1 - 1e-6, y.max() <= 0.9 + 1e-6) == (True, True)
    assert not (_contrast(ramp, smallest=0.2)[:, 0, 4].diff(dim=-1) < -1e-6).any()  # flip off: never mirrored


def test_contrastive_greyscale():
    """With probability 1 all channels are BT.601's luminance; .2 are 200 of 1,000, within 4 deviations."""
    y = _contrast(_coloured([0.5, 0.2, 0.8], 5), grey_probability=1.0)
    assert torch.allclose(y, torch.full_like(y, 0.299 * 0.5 + 0.587 * 0.2 + 0.114 * 0.8), atol=1e-6)
    y = _contrast(_coloured([0.5, 0.2, 0.8], 1000), grey_probability=0.2)
    assert abs(int((y.amax(1) - y.amin(1)).amax((1, 2)).lt(1e-6).sum()) - 200) < 50


def test_contrastive_hue_turns_as_the_standard_library_does():
    """Hue moves by up to a tenth of the circle; saturation and value stay; against colorsys."""
    y = _contrast(_coloured([0.9, 0.4, 0.2], 100), hue=0.1, jitter_probability=1.0)[:, :, 0, 0].tolist()
    hue, saturation, value = colorsys.rgb_to_hsv(0.9, 0.4, 0.2)
    after = [colorsys.rgb_to_hsv(*colour) for colour in y]
    turns = [(one[0] - hue + 0.5) % 1 - 0.5 for one in after]
    assert -0.1 - 1e-5 <= min(turns) < -0.09
    assert 0.09 < max(turns) <= 0.1 + 1e-5
    assert all(one[1:] == pytest.approx((saturation, value), abs=1e-5) for one in after)


@pytest.mark.parametrize("colour", [(0.2, 0.9, 0.4), (0.4, 0.2, 0.9), (0.5, 0.5, 0.5), (0.0, 0.0, 0.0)])
def test_contrastive_hue_by_nothing_keeps_colours(colour):
    x = _coloured(colour, 4)
    assert torch.allclose(_contrast(x, jitter_probability=1.0), x, atol=1e-6)


def test_contrastive_brightness():
    """A flat image has no contrast: it changes by the factor of brightness, 0.6 to 1.4, alone."""
    y = _contrast(torch.full((300, 1, 4, 4), 0.5), jitter=0.4, jitter_probability=1.0)[:, 0]
    assert torch.allclose(y, y[:, :1, :1].expand_as(y), atol=1e-6)
    assert 0.3 - 1e-6 <= y.min() < 0.32
    assert 0.68 < y.max() <= 0.7 + 1e-6
