"""docs/gallery.md: its commands make pictures that show something; ``--bless`` keeps them beside the page."""

import io
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from seen import blank, faults, scrolled
from visits import visiting

from edgefl.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"
TEXT = PAGE.read_text(encoding="utf-8")
PICTURES = re.findall(r"\(gallery/(\S+)\)", TEXT)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder in which the page's commands were run."""
    folder = tmp_path_factory.mktemp("gallery")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for command in re.findall(r"^edgefl (.*)$", TEXT, re.MULTILINE):
            with pytest.raises(SystemExit, match=r"^0$"):
                main(command.split())
    return folder


def test_every_picture_is_there():
    """Those of the page, and no others."""
    assert len(PICTURES) == 8
    assert {path.name for path in (PAGE.parent / "gallery").iterdir()} == set(PICTURES)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["protocols", "policies"])
def test_report_pages_show_their_plots(opened, made, name, request):
    """In a browser; a picture of a plot is ``PAGE.PLOT.png``."""
    with visiting(opened, (made / f"{name}.html").as_uri(), width=1000, still=True) as visit:
        visit.ready()
        scrolled(visit)
        assert faults(visit) == []
        assert blank(visit) == []
        # It would cover the top of what is photographed.
        visit.page.add_style_tag(content="nav { position: static }")
        for picture in PICTURES:
            page, _, rest = picture.partition(".")
            if page == name and rest.endswith(".png"):
                taken = visit.page.locator(f"#plot-{rest.removesuffix('.png')}").screenshot()
                if request.config.getoption("--bless"):
                    (PAGE.parent / "gallery" / picture).write_bytes(taken)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["protocols.svg", "policies.svg"])
def test_figures_are_drawn(opened, made, name, request):
    """A browser shows their colours."""
    visit = opened.new_page()
    visit.goto((made / name).as_uri())
    pixels = np.asarray(Image.open(io.BytesIO(visit.screenshot())).convert("RGB"))
    visit.close()
    assert np.count_nonzero(np.ptp(pixels, axis=2) > 30) > 200
    if request.config.getoption("--bless"):
        shutil.copy(made / name, PAGE.parent / "gallery" / name)
