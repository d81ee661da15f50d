"""Small images for tests."""

import io

import numpy as np
from PIL import Image


def image(level, size=(6, 4), mode="RGB"):
    """An image of one level, width x height."""
    return Image.new(mode, size, (level,) * len(Image.new(mode, (1, 1)).getbands()))


def encoded(picture, kind="PNG", **settings):
    """A picture as a file's content."""
    out = io.BytesIO()
    picture.save(out, kind, **settings)
    return out.getvalue()


def tree(root, counts, size=(6, 4)):
    """Writes ``counts[folder]`` PNG files of random pixels into each folder under ``root``."""
    rng = np.random.default_rng(0)
    for folder, count in counts.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        for place in range(count):
            pixels = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / folder / f"{place}.png")
    return root
