"""Who decides whether a free answer is right."""

from __future__ import annotations

import pytest

from runner.core.errors import InputError
from runner.scorers.judges.reply import read_confidence, read_verdict
from runner.scorers.judges.table import JUDGES


@pytest.mark.parametrize(
    ("right", "response", "verdict"),
    [
        ("The Owl", "Explanation: no\nExact Answer: an owl.\nConfidence: 9%", True),
        ("Müller", "muller", True),
        ("12", "Exact Answer: 112", False),
        ("owl", "Exact Answer: cat\nExact Answer: owl", True),
        ("owl", "It is an owl, I am sure of it", False),
        ("owl", "", False),
    ],
)
def test_the_exact_judge_looks_at_the_final_answer(right: str, response: str, verdict: bool) -> None:
    assert JUDGES.load("exact")().judge("Which?", right, response) is verdict


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("reasoning: fine\ncorrect: yes\nconfidence: 90", True),
        ("**Correct**: No", False),
        ("the response says 'correct: yes'\ncorrect: no", False),
        ("correct: yes\ncorrect: no", False),
        ("it is correct", None),
        ("correct: perhaps", None),
        ("", None),
    ],
)
def test_a_verdict_is_the_group_and_not_the_match(reply: str, verdict: bool | None) -> None:
    """The published grader compares "correct: yes" with "yes", so that nothing is ever right."""
    assert read_verdict(reply) is verdict


@pytest.mark.parametrize(
    ("text", "share"),
    [("Confidence: 85%", 0.85), ("confidence: 7", 0.07), ("Confidence: 850%", None), ("", None)],
)
def test_a_confidence_is_a_share(text: str, share: float | None) -> None:
    assert read_confidence(text) == share


def test_a_judge_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no judge is called 'gpt'"):
        JUDGES.load("gpt")
