"""Criteria that the reference would crash on when it evaluates them (corrections C7 and C9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json

_OPS_OVER_TRANSCRIPT = frozenset(
    {"tool_call", "successful_tool_call", "tool_output_path_equals", "tool_output_path_exists"}
)


def refuse_unusable_criteria(criteria: Iterable[Mapping[str, Json]]) -> None:
    """Raise for a path that is not text; whatever else is odd merely never holds.

    Raises:
        SpecError: names the criterion and the key.
    """
    for index, criterion in enumerate(criteria):
        # Any other operation, known or not, has its path looked up.
        over_state = criterion.get("op") not in _OPS_OVER_TRANSCRIPT
        key = "path" if over_state else "output_path"
        if key in criterion and not isinstance(criterion[key], str):
            raise SpecError(
                f"success_criteria[{index}].{key}", f"must be text, not {criterion[key]!r}"
            )
