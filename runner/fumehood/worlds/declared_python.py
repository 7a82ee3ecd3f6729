"""A declared world whose tools without rules are Python functions (docs/declared_worlds.md).

The functions run in a checker process without rights, one call per forked child.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fumehood.core.errors import InfraError
from fumehood.core.json_values import Json, copy_object
from fumehood.core.tools import Failure, FailureKind, ToolResult, Value
from fumehood.third_party.process import NO_ANSWER, checker
from fumehood.worlds.declared import CODES, STATE_BYTES_MAX, Declared, Rejected
from fumehood.worlds.schema import reject

CHECKER = "declared"
"""Answers the calls."""


class DeclaredPython(Declared):
    """State: as in ``declared``; ``toolset.python`` is the source of the functions."""

    toolset_id = "declared_python"

    def _answer(self, tool: Mapping[str, Any], arguments: Mapping[str, Json]) -> ToolResult:
        if "rules" in tool:
            return super()._answer(tool, arguments)
        values = self.values()
        try:
            reply: Mapping[str, Any] = checker("declared").ask(
                {
                    "source": self._source,
                    "tool": tool["name"],
                    "arguments": copy_object(arguments),
                    "state": values,
                }
            )
        except InfraError as failure:
            return Failure(FailureKind.WORLD, NO_ANSWER, str(failure))
        if "raised" in reply:
            return reject("raised", str(reply["raised"]))
        if "rejected" in reply:
            code, message = reply["rejected"]
            return reject(code if code in CODES else "raised", str(message))
        output, after = reply["output"], reply["state"]
        if not isinstance(output, dict) or not isinstance(after, dict):
            return reject("raised", "The function replied with something else than objects.")
        if len(json.dumps(output, allow_nan=False)) > STATE_BYTES_MAX:
            raise Rejected("too_large", "The result is too large.")
        if json.dumps(after, sort_keys=True, allow_nan=False) != json.dumps(values, sort_keys=True):
            self.replace_values(after)
        return Value(output)
