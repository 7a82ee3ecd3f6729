"""From opinions to a score: what nobody could decide is ungraded, what a rule refutes is a failure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fumehood.core.json_values import JsonObject
from fumehood.core.score import Score
from fumehood.scorers.judges.question import Opinion


def judged_score(
    checks: Mapping[str, bool | None], opinions: Collection[Opinion], metrics: JsonObject
) -> Score:
    """Return the score of checks of which some may be undecided.

    Args:
        checks: by name; None where nobody could tell.
        opinions: that were asked for.
        metrics: of the scorer.
    """
    success = (
        False if False in checks.values() else None if None in checks.values() else bool(checks)
    )
    decided = {name: held for name, held in checks.items() if held is not None}
    return Score(success, decided, {**metrics, **opinion_metrics(opinions)})


def opinion_metrics(opinions: Collection[Opinion]) -> JsonObject:
    """Return how far the judges agreed and what they cost; nothing where none was asked."""
    asked = [opinion for opinion in opinions if opinion.votes]
    if not asked:
        return {}
    agreements = [each.agreement for each in asked if each.agreement is not None]
    spent: dict[str, int] = {}
    for opinion in asked:
        for kind, amount in opinion.spent.items():
            spent[kind] = spent.get(kind, 0) + amount
    return {
        "judge_questions": len(asked),
        "judge_undecided": sum(each.answer is None for each in asked),
        "judge_failed_votes": sum(each.votes.count(None) for each in asked),
        "judge_agreement": sum(agreements) / len(agreements) if agreements else None,
        **{f"judge_{kind}": amount for kind, amount in sorted(spent.items())},
    }
