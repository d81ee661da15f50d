"""Why rounds took as long as they did: their critical paths, and what other clients would have saved."""

from edgefl.report.critical.explain import explain
from edgefl.report.critical.records import Explanation, RoundExplanation

__all__ = ["Explanation", "RoundExplanation", "explain"]
