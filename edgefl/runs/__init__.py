"""Runs: the only place that knows both the clock and the learning."""

from edgefl.runs.group import Result, RunResult, drafts, find_scenario, run
from edgefl.runs.watch import Watch

__all__ = ["Result", "RunResult", "Watch", "drafts", "find_scenario", "run"]
