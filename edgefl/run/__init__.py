"""Runs: the only place that knows both the clock and the learning."""

from edgefl.run.group import ENGINES, Result, RunResult, drafts, find_scenario, run
from edgefl.run.watch import Watch

__all__ = ["ENGINES", "Result", "RunResult", "Watch", "drafts", "find_scenario", "run"]
