"""Scorer ``frugal``: success means at most a number of calls."""

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.score import UNGRADED, Score
from fumehood.core.task import Task


class Frugal:
    """Criteria: ``{"max_calls": N}``; the agent may make at most N calls."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Compare the number of calls with each bound; no criterion means no score."""
        bounds = [criterion["max_calls"] for criterion in gold.criteria]
        calls = len(evidence.calls)
        checks = {
            f"at most {bound} calls": calls <= bound for bound in bounds if isinstance(bound, int)
        }
        if not checks:
            return UNGRADED
        return Score(all(checks.values()), checks, {"tool_calls": calls})
