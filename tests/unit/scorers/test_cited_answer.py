"""What an answer with citations is worth."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.errors import SpecError
from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.gold import Gold
from fumehood.core.outcome import Finished, GaveUp, SeatEnd
from fumehood.core.score import Score
from fumehood.scorers.cited_answer import CitedAnswer, citations
from tests.parts.tasks import crud_task

MENTIONS = {"op": "answer_mentions", "values": ["Nine", "weeks"], "max_words": 6}
RELEVANT = {"op": "relevant", "documents": {"farm": 2, "cheese": 1, "clock": 0}}
TASK = crud_task(world="search", initial_state={})


def found(*names: str) -> AnsweredCall:
    results: Any = [{"id": name} for name in names]
    return AnsweredCall("agent", "search", {}, {}, {"results": results}, None, (), "")


def opened(name: str) -> AnsweredCall:
    return AnsweredCall("agent", "open_page", {}, {}, {"id": name, "text": "é"}, None, (), "")


def score(
    end: SeatEnd, *calls: AnsweredCall, criteria: tuple[Any, ...] = (MENTIONS, RELEVANT)
) -> Score:
    evidence = Evidence(calls, (), {"agent": end}, {}, ())
    return CitedAnswer().score(TASK, Gold("cited_answer", criteria, True), evidence)


@pytest.mark.parametrize(
    ("answer", "is_right"),
    [
        ("after NINE weeks [farm]", True),
        ("after nine days", False),
        ("nine weeks and a bit more", True),
        ("nine weeks and a little bit more", False),
        ("nine weeks, and then some more words than allowed", False),
        ("one,two,nine,days,weeks,years", True),
        ("one,two,three,nine,days,weeks,years", False),
        ("nineweeks" + "x" * 200, False),
        ("nineweeks", False),
        ("nineteen weeks", False),
        ("nine weekss", True),
        ("nine week", False),
        ("", False),
    ],
)
def test_an_answer_is_right_if_it_mentions_every_value_within_the_limit(
    answer: str, is_right: bool
) -> None:
    assert score(Finished(answer)).success is is_right


def test_giving_up_is_not_an_answer() -> None:
    assert score(GaveUp("nine weeks")).success is False


def test_relevance_judgements_alone_are_not_a_success() -> None:
    assert score(Finished("nine weeks"), criteria=(RELEVANT,)).success is False


def test_metrics_compare_seen_and_cited_with_relevant_documents() -> None:
    metrics = score(
        Finished("nine weeks [farm, bell]"), found("farm", "clock"), opened("bell")
    ).metrics
    names = ("evidence_recall", "citation_precision", "citation_recall")
    assert [metrics[name] for name in names] == [0.5, 0.5, 0.5]
    assert (metrics["searches"], metrics["pages_opened"]) == (1, 1)
    answers = '{"results":[{"id":"farm"},{"id":"clock"}]}' + '{"id":"bell","text":"é"}'
    assert metrics["answer_bytes"] == len(answers.encode())


def test_a_share_of_zero_items_is_none() -> None:
    metrics = score(Finished("nine weeks"), criteria=(MENTIONS,)).metrics
    assert metrics["evidence_recall"] is metrics["citation_precision"] is None


def test_citations_are_ids_in_brackets_of_both_kinds() -> None:
    assert citations("It is so [a#b], 【c】 and [d, e] but not [] nor f]") == ["a#b", "c", "d", "e"]


def test_a_criterion_without_values_is_refused() -> None:
    with pytest.raises(SpecError, match=r"^criteria\[0\]\.values"):
        score(Finished("x"), criteria=({"op": "answer_mentions", "values": []},))
