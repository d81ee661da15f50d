"""Runs: the only place that knows both the clock and the learning."""

from edgefl.runs.callbacks import Callbacks, Progress
from edgefl.runs.group import drafts, find_scenario, run
from edgefl.runs.results import Result, RunResult, open_result

__all__ = [
    "Callbacks",
    "Progress",
    "Result",
    "RunResult",
    "drafts",
    "find_scenario",
    "open_result",
    "run",
]
