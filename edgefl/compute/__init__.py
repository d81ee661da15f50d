"""Interpreters of Folds: torch only, no simpy."""
