"""Why rounds took as long as they did: their critical paths, and what other clients would have saved."""

from edgefl.analysis.explain.explain import explain
from edgefl.analysis.explain.records import Explanation, RoundExplanation

__all__ = ["Explanation", "RoundExplanation", "explain"]
