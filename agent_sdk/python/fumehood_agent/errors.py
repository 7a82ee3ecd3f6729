"""The exceptions of this package.

::

    FumehoodError
    ├── Refused              the service refused the message; nothing was executed or charged
    │   └── Ended            your work has ended
    ├── DeadlinePassed       no response within your deadline; the call may have been executed
    ├── NotAnAction          ``act`` returned something that is not an action
    ├── UsageError           the command names no agent, or a file that cannot be read
    └── ServiceUnavailable   not caused by the agent
        ├── NotReachable     no service answers at the socket
        ├── ConnectionLost   the connection broke; the last call may have been executed
        └── ServiceFailed    this client does not understand the response

The set is closed: data from the service never selects an exception by name. A failure of a tool is
never an exception; it is a returned :class:`~fumehood_agent.seat.Failure`.
"""

from __future__ import annotations

from enum import Enum


class FumehoodError(Exception):
    """Base class of the exceptions of this package."""


class RefusalKind(Enum):
    """Why the service refused a message. The numbers are those of the protocol."""

    MALFORMED = 1
    """The arguments are not one JSON object, or contain NaN, Infinity or a lone surrogate."""
    TOO_LARGE = 2
    """The text is longer than the limit, in bytes."""
    TOO_DEEP = 3
    """The arguments are nested deeper than the limit, in levels."""
    ENDED = 4
    """The work has ended."""
    CALL_ID_REUSED = 5
    """A different call used this ``call_id`` before."""
    TOO_MANY_REFUSALS = 6
    """The service refused more messages than the limit, a count."""


class Refused(FumehoodError):
    """The service refused the message: no tool received it, and nothing was charged."""

    def __init__(
        self, kind: RefusalKind, limit: int = 0, actual: int = 0, reason: str = ""
    ) -> None:
        """Create the exception.

        Args:
            kind: why the message was refused.
            limit: the limit, in the unit of the kind; 0 if the kind has none.
            actual: the value that was sent, in the same unit.
            reason: details, if the client knows any.
        """
        numbers = f": {actual} is more than the limit {limit}" if limit or actual else ""
        detail = f": {reason}" if reason else ""
        super().__init__(f"refused, {kind.name.lower()}{numbers}{detail}")
        self.kind = kind
        self.limit = limit
        self.actual = actual


class Ended(Refused):
    """The work has ended: submitted, given up, out of budget or out of time."""

    def __init__(self) -> None:
        super().__init__(RefusalKind.ENDED)


class DeadlinePassed(FumehoodError):
    """No response arrived in time.

    If it is sent again with the same ``call_id``, it is executed once.
    """

    def __init__(self, path: str, deadline_ms: int) -> None:
        super().__init__(f"{path}: no response within {deadline_ms} ms")
        self.path = path
        self.deadline_ms = deadline_ms


class NotAnAction(FumehoodError):
    """``act`` returned something that is not an action."""

    def __init__(self, returned: object) -> None:
        keys = f" with the keys {sorted(map(str, returned))}" if isinstance(returned, dict) else ""
        super().__init__(
            f"act() returned {type(returned).__name__}{keys}; "
            "expected tool_name and args, Answer, GiveUp or None"
        )
        self.returned = returned


class UsageError(FumehoodError):
    """The command line is invalid; the message is one line with the remedy."""


class ServiceUnavailable(FumehoodError):
    """The service cannot be used. This is not caused by the agent."""


class NotReachable(ServiceUnavailable):
    """No service answers at the socket."""

    def __init__(self, path: str, waited_ms: int, reason: str) -> None:
        super().__init__(f"{path}: {reason} (waited {waited_ms} ms)")
        self.path = path
        self.waited_ms = waited_ms


class ConnectionLost(ServiceUnavailable):
    """The connection broke; it is unknown whether the last call was executed."""

    def __init__(self, path: str, answered: int) -> None:
        super().__init__(f"{path}: connection lost after {answered} answered calls")
        self.path = path
        self.answered = answered
        """Calls of this session that got a response before."""


class ServiceFailed(ServiceUnavailable):
    """This client does not understand the response of the service."""
