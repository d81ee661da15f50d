"""Runs ``edgefl run quickstart`` until its first round is merged, and prints the seconds since launch."""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from edgefl.cli import main as edgefl_main
from edgefl.runs.progress import Display


def main() -> None:
    """Runs the command in this process, with a display that stops it."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--launched", type=float, required=True)
    arguments.add_argument("--engine")
    given = arguments.parse_args()

    def merged(display: Display, round_: int, t_s: float, loss: float | None) -> None:  # noqa: ARG001 - Callbacks
        if round_ >= 0:
            print(time.time() - given.launched, flush=True)
            # As Ctrl-C does; any other error would end the run alone, and the next would begin.
            raise KeyboardInterrupt

    Display.merged = merged
    with tempfile.TemporaryDirectory() as folder:
        engine = ["--engine", given.engine] if given.engine else []
        with suppress(SystemExit):
            edgefl_main(["run", "quickstart", "--out", str(Path(folder) / "run"), *engine])


if __name__ == "__main__":
    main()
