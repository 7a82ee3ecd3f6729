"""A failed check states what its criterion found in the episode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fumehood.core.tools import FailureKind
from fumehood.scorers.found import found
from fumehood.scorers.native_criteria import EpisodeFacts
from tests.unit.scorers.answered_calls import answered, evidence, failed, task

CALLS = (
    replace(answered("get", id="a1"), output={"tier": "basic"}),
    failed(FailureKind.WORLD, "put", code="not_found", id="a2"),
)
ORDER = {"op": "called_before", "first": {"tool_name": "get"}, "second": {"tool_name": "put"}}


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        (
            {"op": "tool_output_path_equals", "tool_name": "get", "output_path": "tier"},
            '"basic"',
        ),
        (
            {"op": "tool_output_path_equals", "tool_name": "get", "output_path": "name"},
            "no such output",
        ),
        ({"op": "not_called", "tool_name": "get"}, 'get {"id":"a1"}'),
        (ORDER, 'get {"id":"a1"}; put {"id":"a2"} which failed with not_found'),
        ({**ORDER, "first": {"tool_name": "put"}}, 'put {"id":"a2"} which failed with not_found'),
        (
            {"op": "tried_any", "calls": [{"tool_name": "stop"}, {"tool_name": "ask"}]},
            "no call of ask or stop",
        ),
    ],
)
def test_what_was_found_is_the_output_or_the_calls(
    criterion: dict[str, Any], expected: str
) -> None:
    assert found(criterion, EpisodeFacts.of(task(), evidence(*CALLS))) == expected
