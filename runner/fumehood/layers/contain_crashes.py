"""Turns an exception of a world into a failed call.

An agent chooses the arguments of its calls. A world that raises an exception on some arguments must
not let the agent choose that its attempt ends as a failure of the infrastructure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from fumehood.core.errors import InfraError, SpecError
from fumehood.core.event_forms import is_recordable
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult, Toolset, Value

CRASHED = Failure(FailureKind.WORLD, "internal_error", "The tool failed on this call.")

_log = logging.getLogger("fumehood.service")


class ContainCrashes:
    """The innermost layer: a call on which the world raises an exception is a failed call."""

    def __init__(self, reopen: Callable[[], Toolset]) -> None:
        """Create the layer.

        Args:
            reopen: returns the toolset in the state that the task gave it.
        """
        self._reopen = reopen
        self._has_logged = False

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call; return a failure if the world raises an exception.

        Raises:
            SpecError: the world cannot work with the state that the task gave it. The same call
                fails in a new world too, so earlier calls of the agent are not the cause.
            InfraError: a server that the world uses failed.
        """
        try:
            result = forward(call)
            if isinstance(result, Value) and not is_recordable(result.output):
                # Otherwise the work of all seats would end.
                raise ValueError("the trace cannot contain the result of the call")
        except InfraError:
            raise
        except SpecError:
            if self._fails_anew(call):
                raise
            return self._crashed()
        except Exception:
            return self._crashed()
        return result

    def _fails_anew(self, call: ToolCall) -> bool:
        try:
            self._reopen().call(call)
        except SpecError:
            return True
        except Exception:
            return False
        return False

    def _crashed(self) -> Failure:
        # Only the first one: the agent decides how many there are.
        if not self._has_logged:
            self._has_logged = True
            _log.exception("the world raised an exception; its call counts as failed")
        return CRASHED
