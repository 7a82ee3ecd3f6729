"""A task that is being generated: instruction, state, oracle calls and criteria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fumehood.core.json_values import Json, JsonObject

READING_TOOLS = frozenset(
    {"get_account", "get_doc", "list_dir", "list_jobs", "read_file", "search_docs", "validate_cron"}
)
"""Tools that do not change the state."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the oracle."""

    tool_name: str
    args: Mapping[str, Json]

    def to_json(self) -> JsonObject:
        """Return it as an oracle move, which is also a call pattern for criteria."""
        return {"tool_name": self.tool_name, "args": dict(self.args)}


def call(tool_name: str, /, **args: Json) -> Call:
    """Return a call."""
    return Call(tool_name, args)


@dataclass(frozen=True, slots=True)
class Source:
    """An entry of the state that the task reads and whose reading may time out."""

    tool_name: str
    argument: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTask:
    """A task that is being generated, with or without obstacles."""

    world: str
    instruction: str
    state: JsonObject
    calls: tuple[Call, ...]
    """Calls of the oracle, in order."""
    criteria: tuple[JsonObject, ...]
    answer: str = ""
    """The answer that the oracle submits."""
    gives_up: str | None = None
    """Reason with which the oracle gives up; None for a solvable task."""
    faults: tuple[JsonObject, ...] = ()
    source: Source | None = None
    meaningful_errors: frozenset[str] = frozenset()
    """Tools whose errors carry meaning in this task; obstacles must not hide these errors."""

    def with_sentence(self, sentence: str) -> DraftTask:
        """Return the draft with one more sentence in its instruction."""
        return replace(self, instruction=f"{self.instruction} {sentence}")

    def tools(self) -> tuple[str, ...]:
        """Return the distinct tools that the oracle calls, in order of first call."""
        return tuple(dict.fromkeys(made.tool_name for made in self.calls))


def rate_limited(tool_name: str, /, **args: Json) -> JsonObject:
    """Return a permanent fault: calls with these arguments are rate-limited."""
    return {
        "family": "rate_limit",
        "trigger": {"on_tool": tool_name, "when_arg_matches": args},
        "payload": {"retry_after_ms": 60_000},
    }


def equals(path: str, value: Json) -> JsonObject:
    """Require this value at the path of the state."""
    return {"op": "equals", "path": path, "value": value}


def file_is(path: str, content: str) -> JsonObject:
    """Require this content of the file."""
    return {"op": "map_value_equals", "path": "files", "key": path, "value": content}


def has_job(job: JsonObject) -> JsonObject:
    """Require this job in the list of jobs."""
    return {"op": "in", "path": "jobs", "value": job}


def only_changed(*paths: tuple[str, ...]) -> JsonObject:
    """Allow changes at these paths only."""
    return {"op": "only_changed", "paths": [list(path) for path in paths]}


def unchanged() -> JsonObject:
    """Allow no change."""
    return {"op": "unchanged"}


def called_with(made: Call) -> JsonObject:
    """Require a successful call of this form."""
    return {"op": "called_with", **made.to_json()}


def not_called(tool_name: str, /, **args: Json) -> JsonObject:
    """Forbid calls of this form, even unsuccessful ones."""
    return {"op": "not_called", "tool_name": tool_name, **({"args": args} if args else {})}


def tried_any(*calls: Call) -> JsonObject:
    """Require an attempt at one of these calls."""
    return {"op": "tried_any", "calls": [call.to_json() for call in calls]}


def called_before(first: Call, second: Call) -> JsonObject:
    """Forbid an attempt at the second call before the first has succeeded."""
    return {"op": "called_before", "first": first.to_json(), "second": second.to_json()}


def answer_is(text: str) -> JsonObject:
    """Require this submitted answer."""
    return {"op": "answer_equals", "value": text}
