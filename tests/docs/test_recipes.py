"""README's recipes work as they are pasted into a shell."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from nightly import sampled
from PIL import Image

README = Path(__file__).parents[2] / "README.md"
RECIPES = re.findall(r"<!-- recipe -->\n```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.nightly
@sampled(1, "recipe", RECIPES, ids=["fleet", "module", "board"])
def test_a_recipe_works_as_pasted(recipe, tmp_path):
    """With 240 photos of any sizes in a folder, and nothing else there."""
    rng = np.random.default_rng(0)
    for number in range(240):
        folder = tmp_path / "photos" / ["cat", "dog", "frog", "ship"][number % 4]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (*rng.integers(40, 60, 2), 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.jpg")
    shorter = recipe.replace("edgefl run quickstart", "edgefl run quickstart --set server.rounds=2")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", shorter],  # noqa: S607 - where a user's shell is
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "fedclassavg" in done.stdout
