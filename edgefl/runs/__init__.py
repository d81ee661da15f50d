"""Runs: the only place that knows both the clock and the learning."""
