"""One task in the making: what is asked, what does it, and how it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fumehood.core.json_values import Json, JsonObject

READING_TOOLS = frozenset(
    {"get_account", "get_doc", "list_dir", "list_jobs", "read_file", "search_docs", "validate_cron"}
)
"""Tools that change nothing."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the oracle."""

    tool_name: str
    args: Mapping[str, Json]

    def to_json(self) -> JsonObject:
        """Return it as an oracle's move, and as a pattern of criteria."""
        return {"tool_name": self.tool_name, "args": dict(self.args)}


def call(tool_name: str, /, **args: Json) -> Call:
    """Return a call."""
    return Call(tool_name, args)


@dataclass(frozen=True, slots=True)
class Source:
    """An entry of the state that the story reads, and that may fall silent."""

    tool_name: str
    argument: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A story, with or without troubles."""

    world: str
    instruction: str
    state: JsonObject
    calls: tuple[Call, ...]
    """The oracle's, in order."""
    criteria: tuple[JsonObject, ...]
    answer: str = ""
    """What the oracle submits."""
    gives_up: str | None = None
    """Why the oracle gives up; None where the task can be solved."""
    faults: tuple[JsonObject, ...] = ()
    source: Source | None = None
    telling: frozenset[str] = frozenset()
    """Tools whose refusals carry meaning in this story, and must not be hidden."""

    def saying(self, sentence: str) -> Scene:
        """Return the scene with one more sentence in its instruction."""
        return replace(self, instruction=f"{self.instruction} {sentence}")

    def tools(self) -> tuple[str, ...]:
        """Return the tools that the oracle calls, each once, in order."""
        return tuple(dict.fromkeys(each.tool_name for each in self.calls))


def equals(path: str, value: Json) -> JsonObject:
    """The state has this value there."""
    return {"op": "equals", "path": path, "value": value}


def file_is(path: str, content: str) -> JsonObject:
    """The file has this content."""
    return {"op": "map_value_equals", "path": "files", "key": path, "value": content}


def has_job(job: JsonObject) -> JsonObject:
    """The job is among the jobs."""
    return {"op": "in", "path": "jobs", "value": job}


def only_changed(*paths: tuple[str, ...]) -> JsonObject:
    """Nothing else differs."""
    return {"op": "only_changed", "paths": [list(path) for path in paths]}


def unchanged() -> JsonObject:
    """Nothing differs."""
    return {"op": "unchanged"}


def called_with(made: Call) -> JsonObject:
    """Such a call was answered."""
    return {"op": "called_with", **made.to_json()}


def not_called(tool_name: str, /, **args: Json) -> JsonObject:
    """No such call was tried."""
    return {"op": "not_called", "tool_name": tool_name, **({"args": args} if args else {})}


def tried_any(*made: Call) -> JsonObject:
    """One of these was tried."""
    return {"op": "tried_any", "calls": [each.to_json() for each in made]}


def called_before(first: Call, second: Call) -> JsonObject:
    """The second was not tried before the first was answered."""
    return {"op": "called_before", "first": first.to_json(), "second": second.to_json()}


def answer_is(text: str) -> JsonObject:
    """The answer is this."""
    return {"op": "answer_equals", "value": text}
