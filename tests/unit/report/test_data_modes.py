"""First differences between episodes, and pages that are unavailable or changed."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.evidence import AnsweredCall, ShownFailure
from fumehood.core.tools import FailureKind
from fumehood.report.compare.by_data_mode import (
    Divergence,
    DivergenceKind,
    changed_pages,
    count_pages,
    first_divergence,
)


def made(
    tool: str,
    sent: dict[str, Any],
    output: Any = None,
    failed: str = "",
    fired_rules: tuple[int, ...] = (),
) -> AnsweredCall:
    code, _, message = failed.partition("|")
    failure = ShownFailure(FailureKind.WORLD, code, message, {}) if failed else None
    return AnsweredCall(
        "agent", tool, sent, sent, None if failed else output or {}, failure, fired_rules, ""
    )


def opened(url: str, text: str = "text", offset: int = 0) -> AnsweredCall:
    return made("open_page", {"page": url}, {"url": url, "id": url, "text": text, "offset": offset})


SEARCH = made("search", {"query": "owls"}, {"results": []})
OTHER_ANSWER = made("search", {"query": "owls"}, {"results": [1]})
OTHER_CALL = made("search", {"query": "cats"}, {"results": []})


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ([SEARCH], [SEARCH], None),
        ([], [], None),
        ([SEARCH], [OTHER_ANSWER], Divergence(1, DivergenceKind.ANSWER)),
        ([SEARCH, SEARCH], [SEARCH, OTHER_CALL], Divergence(2, DivergenceKind.CALL)),
        ([SEARCH], [SEARCH, OTHER_CALL], Divergence(2, DivergenceKind.END)),
        ([OTHER_CALL], [], Divergence(1, DivergenceKind.END)),
        (
            [OTHER_ANSWER, SEARCH],
            [OTHER_ANSWER, made("search", {"query": "owls"}, failed="not_found|")],
            Divergence(2, DivergenceKind.ANSWER),
        ),
    ],
)
def test_the_first_difference_is_found_and_named(
    first: list[AnsweredCall], second: list[AnsweredCall], found: Divergence | None
) -> None:
    assert first_divergence(first, second) == found
    assert first_divergence(second, first) == found


def test_unavailable_and_refused_pages_are_counted_by_reason() -> None:
    counts = count_pages(
        [
            SEARCH,
            opened("a"),
            made("open_page", {}, failed="fetch_failed|timed_out: no answer in 20 s"),
            made("open_page", {}, failed="fetch_failed|timed_out: no answer in 20 s"),
            made("open_page", {}, failed="not_found|gone"),
            made("open_page", {}, failed="fetch_failed|host_not_allowed: other.example is not"),
            made("open_page", {}, failed="invalid_argument|an invalid call"),
            made("open_page", {}, failed="fetch_failed|x", fired_rules=(0,)),
        ]
    )
    assert (counts.opened, counts.read, counts.lost, counts.refused, counts.lost_share) == (
        4,
        1,
        {"not_found": 1, "timed_out": 2},
        {"host_not_allowed": 1},
        0.75,
    )
    assert count_pages([SEARCH]).lost_share is None


def test_a_page_has_changed_if_its_beginning_differs() -> None:
    first = [opened("a"), opened("b"), opened("c"), opened("c", "rest", 9)]
    second = [opened("a"), opened("b", "other"), opened("d")]
    assert changed_pages(first, second) == (2, 1)
    assert changed_pages([], second) == (0, 0)
