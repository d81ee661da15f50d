"""A contender's measurements of itself, printed as one line of JSON."""

import argparse
import json
import re
import time
from pathlib import Path

import psutil


class Laps:
    """The ends of rounds; the time before the first is start-up.

    Attributes:
        launched: ``time.time()`` before the process was started.
        rss: the process's resident bytes at the end of each round.
    """

    def __init__(self, launched: float) -> None:
        self.launched = launched
        self.rss: list[int] = []
        self._ends: list[float] = []
        self._start_s = 0.0
        self._process = psutil.Process()

    def lap(self) -> None:
        """Records the end of a round."""
        self._ends.append(time.perf_counter())
        if len(self._ends) == 1:
            self._start_s = time.time() - self.launched
        self.rss.append(self._process.memory_info().rss)

    def report(self, *, loss: float, steps: int, parameters: int) -> None:
        """Prints the line.

        Args:
            loss: the mean over the last round's steps.
            steps: of all rounds and clients.
            parameters: the model's.
        """
        found = {
            "start_s": self._start_s,
            "rounds_s": [end - start for start, end in zip(self._ends, self._ends[1:], strict=False)],
            "loss": loss,
            "steps": steps,
            "parameters": parameters,
            "rss_bytes": self.rss,
            "peak_rss_bytes": _peak(max(self.rss)),
        }
        print(json.dumps(found), flush=True)


def parser() -> argparse.ArgumentParser:
    """The arguments that every contender takes."""
    found = argparse.ArgumentParser()
    found.add_argument("--rounds", type=int, required=True, help="including the warm-up")
    found.add_argument("--launched", type=float, required=True, help="time.time() before the launch")
    return found


def _peak(seen: int) -> int:
    """The peak of this process's resident bytes: Linux's own figure, or else the highest seen.

    Not from ``getrusage``, where a child starts at its parent's peak.
    """
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) * 1024 if found else seen
