"""Who decides whether a free answer is right."""

from __future__ import annotations

import pytest

from fumehood.benchmarks.browsecomp.scorer import read_confidence
from fumehood.core.errors import InputError
from fumehood.scorers.judges.question import Opinion, Question, majority
from fumehood.scorers.judges.registry import JUDGES
from fumehood.scorers.judges.rules import Rule, Rules


@pytest.mark.parametrize(
    ("right", "response", "answer"),
    [
        ("The Owl", "Explanation: no\nExact Answer: an owl.\nConfidence: 9%", "yes"),
        ("Müller", "muller", "yes"),
        ("12", "Exact Answer: 112", "no"),
        ("owl", "Exact Answer: cat\nExact Answer: owl", "yes"),
        ("owl", "It is an owl, I am sure of it", "no"),
        ("owl", "", "no"),
    ],
)
def test_the_exact_judge_looks_at_the_final_answer(right: str, response: str, answer: str) -> None:
    question = Question(name="q", asks="Which?", texts={"response": response}, right_answer=right)
    assert JUDGES.load("exact")().judge(question) == answer


@pytest.mark.parametrize(
    ("text", "share"),
    [("Confidence: 85%", 0.85), ("confidence: 7", 0.07), ("Confidence: 850%", None), ("", None)],
)
def test_a_confidence_is_a_share(text: str, share: float | None) -> None:
    assert read_confidence(text) == share


def test_a_judge_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no judge is called 'gpt'"):
        JUDGES.load("gpt")


def test_the_exact_judge_says_nothing_where_there_is_nothing_to_compare() -> None:
    question = Question(name="q", asks="Is it polite?", texts={"response": "yes"})
    assert JUDGES.load("exact")().judge(question) is None


def test_rules_are_tried_in_order_and_decide_only_what_they_are_about() -> None:
    judge = Rules([Rule("no", contains="RUDE"), Rule("yes", criterion="polite*"), Rule("maybe")])
    polite = Question(name="polite_1", asks="Is it?", texts={"answer": "thank you"})
    rude = Question(name="polite_1", asks="Is it?", texts={"answer": "how rude"})
    other = Question(name="other", asks="Is it?", texts={"answer": "thank you"})
    assert [judge.judge(each) for each in (polite, rude, other)] == ["yes", "no", None]


@pytest.mark.parametrize(
    ("votes", "answer", "agreement"),
    [
        (("yes", "yes", "yes"), "yes", 1.0),
        (("yes", "no", "yes"), "yes", 1 / 3),
        (("yes", "no", None), None, 0.0),
        (("yes", None, None), None, 0.0),
        (("yes", "yes", None), "yes", 1 / 3),
        (("yes", "no"), None, 0.0),
        ((None, None, None), None, 0.0),
        (("yes",), "yes", None),
        ((), None, None),
    ],
)
def test_more_than_half_of_all_who_were_asked_must_say_the_same(
    votes: tuple[str | None, ...], answer: str | None, agreement: float | None
) -> None:
    opinion = majority(votes)
    assert (opinion.answer, opinion.agreement) == (answer, agreement)


def test_an_opinion_of_nobody_is_none() -> None:
    assert Opinion(None).votes == ()
