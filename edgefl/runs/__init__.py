"""Runs: the only place that knows both the clock and the learning."""

from edgefl.runs.group import drafts, find_scenario, run
from edgefl.runs.results import Result, RunResult, open_result
from edgefl.trackers import Callbacks, Progress

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
