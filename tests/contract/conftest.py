"""What several files of contracts share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import NETS, build_net

from edgefl.compute.process import one_thread
from edgefl.protocol import Net


@pytest.fixture
def as_engines_work() -> Iterator[None]:
    """One thread."""
    with one_thread():
        yield


@pytest.fixture(scope="session")
def mlp() -> Net:
    """The smallest net."""
    name, shape, settings = NETS["mlp"]
    return build_net(name, shape, 10, **settings)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], Path]:
    """(kind, name, text): writes a component of the user's own, which scenarios find."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / "own"))

    def write(kind: str, name: str, text: str) -> Path:
        path = tmp_path / "own" / kind / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write
