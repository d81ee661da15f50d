"""Runs ``edgefl run quickstart`` until its first round is merged, and prints the seconds since launch."""

import argparse
import tempfile
import time
from pathlib import Path

from edgefl_run import engine

from edgefl.cli import main as edgefl_main
from edgefl.runs.progress import Display
from edgefl.trackers import Progress


def main() -> None:
    """Runs the command in this process, with a display that stops it."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--launched", type=float, required=True)
    arguments.add_argument("--engine", help="NAME, or NAME:KEY=VALUE,...")
    given = arguments.parse_args()
    seconds: list[float] = []

    def told(display: Display, so_far: Progress) -> None:  # noqa: ARG001 - as the display's
        if so_far.what == "merged" and so_far.round >= 0:
            seconds.append(time.time() - given.launched)
            print(seconds[0], flush=True)
            # As Ctrl-C does; any other error would end the run alone, and the next would begin.
            raise KeyboardInterrupt

    Display.told = told
    with tempfile.TemporaryDirectory() as folder:
        command = ["run", "quickstart", "--out", str(Path(folder) / "run")]
        if given.engine:
            settings = engine(given.engine)
            command += ["--engine", settings.pop("name")]
            command += [
                word for key, value in settings.items() for word in ("--set", f"engine.{key}={value}")
            ]
        try:
            edgefl_main(command)
        except SystemExit:
            if not seconds:
                raise


if __name__ == "__main__":
    main()
