"""Rule judges and the majority of votes."""

from __future__ import annotations

import time

import pytest

from fumehood.benchmarks.browsecomp.scorer import read_confidence
from fumehood.core.errors import InputError
from fumehood.scorers.judges.question import Opinion, Question, majority
from fumehood.scorers.judges.registry import JUDGES
from fumehood.scorers.judges.rules import Rule, Rules, words


@pytest.mark.parametrize(
    ("right", "response", "answer"),
    [
        ("The Owl", "Explanation: no\nExact Answer: an owl.\nConfidence: 9%", "yes"),
        ("Müller", "muller", "yes"),
        ("12", "Exact Answer: 112", "no"),
        ("owl", "Exact Answer: cat\nExact Answer: owl", "yes"),
        ("owl", "It is an owl, I am sure of it", "no"),
        ("owl", "", "no"),
        ("5", "Exact Answer: -5", "no"),
        ("-5", "Exact Answer: \u22125.", "yes"),
        ("1.5", "Exact Answer: 1 5", "no"),
        ("C++", "Exact Answer: C", "no"),
        ("C++", "Exact Answer: (C++)", "yes"),
        ("$5", "Exact Answer: 5%", "no"),
        ("The The", "", "no"),
        ("A", "Exact Answer: the", "no"),
        ("A", "Exact Answer: a)", "yes"),
        ("1990-1995", "Exact Answer: 1990\u20131995", "yes"),
    ],
)
def test_the_exact_judge_compares_the_final_answer(right: str, response: str, answer: str) -> None:
    question = Question(name="q", asks="Which?", texts={"response": response}, right_answer=right)
    assert JUDGES.load("exact")().judge(question) == answer


def test_accents_in_an_answer_are_ignored_and_take_no_long_time() -> None:
    accents = "\u0315" * 250_000 + "\u0316" * 250_000
    began = time.process_time()
    assert words(f"Mu{accents}ller") == ["muller"]
    assert time.process_time() - began < 20, "quadratic time would take minutes"


@pytest.mark.parametrize(
    ("text", "share"),
    [("Confidence: 85%", 0.85), ("confidence: 7", 0.07), ("Confidence: 850%", None), ("", None)],
)
def test_a_stated_confidence_is_read_as_a_share(text: str, share: float | None) -> None:
    assert read_confidence(text) == share


def test_an_unknown_judge_is_named() -> None:
    with pytest.raises(InputError, match="no judge is called 'gpt'"):
        JUDGES.load("gpt")


def test_the_exact_judge_decides_nothing_without_a_known_answer() -> None:
    question = Question(name="q", asks="Is it polite?", texts={"response": "yes"})
    assert JUDGES.load("exact")().judge(question) is None


def test_the_first_matching_rule_decides() -> None:
    judge = Rules([Rule("no", contains="RUDE"), Rule("yes", criterion="polite*"), Rule("maybe")])
    polite = Question(name="polite_1", asks="Is it?", texts={"answer": "thank you"})
    rude = Question(name="polite_1", asks="Is it?", texts={"answer": "how rude"})
    other = Question(name="other", asks="Is it?", texts={"answer": "thank you"})
    assert [judge.judge(question) for question in (polite, rude, other)] == ["yes", "no", None]


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
def test_an_answer_requires_more_than_half_of_all_votes(
    votes: tuple[str | None, ...], answer: str | None, agreement: float | None
) -> None:
    opinion = majority(votes)
    assert (opinion.answer, opinion.agreement) == (answer, agreement)


def test_an_opinion_without_judges_has_no_votes() -> None:
    assert Opinion(None).votes == ()
