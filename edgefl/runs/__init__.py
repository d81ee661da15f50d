"""Runs: the only place that knows both the clock and the learning."""

from edgefl.runs.callbacks import Callbacks
from edgefl.runs.group import Result, RunResult, drafts, find_scenario, run

__all__ = ["Callbacks", "Result", "RunResult", "drafts", "find_scenario", "run"]
