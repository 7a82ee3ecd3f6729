"""A seat without a socket, for tests of what sits on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fumehood_agent import Failure, JsonObject, Remaining, Reply, Task, Tool, Value


def tool(name: str, /, **types: str) -> Tool:
    """Return a tool all of whose arguments are required, given as name=type."""
    parameters = {
        "type": "object",
        "properties": {argument: {"type": word} for argument, word in types.items()},
        "required": list(types),
        "additionalProperties": False,
    }
    return Tool(name, parameters)


TOOLS: Mapping[str, tuple[Tool, ...]] = {
    "crud": (
        tool("get_account", id="string"),
        tool("update_account", id="string", patch="object"),
        tool("create_account", fields="object"),
        tool("close_account", id="string", reason="string"),
    ),
    "retrieval": (
        tool("search_docs", query="string", top_k="integer"),
        tool("get_doc", doc_id="string"),
    ),
    "files": (
        tool("read_file", path="string"),
        tool("write_file", path="string", content="string"),
        tool("list_dir", path="string"),
    ),
    "scheduling": (
        tool("create_job", name="string", cron="string", command="string"),
        tool("validate_cron", cron="string"),
        tool("list_jobs"),
    ),
}
"""The tools of the four worlds, in the order in which agents see them."""

Script = Callable[[int, str, Mapping[str, Any]], Value | Failure | Reply]
"""From the number of a call (from 1), its tool and its arguments to what comes back."""


class MemorySeat:
    """Answers calls by a script; failures use up retries as a real seat's do."""

    def __init__(
        self,
        script: Script,
        *,
        instruction: str = "",
        tools: Sequence[Tool] = TOOLS["crud"],
        calls: int = 6,
        retries: int = 2,
    ) -> None:
        self._script = script
        self._calls = calls
        self._retries = retries
        self.task = Task(instruction, tuple(tools), self._remaining())
        self.calls: list[tuple[str, JsonObject]] = []
        self.end: tuple[str, str] | None = None
        self.confidence: float | None = None

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        self.calls.append((name, dict(arguments)))
        answer = self._script(len(self.calls), name, arguments)
        if isinstance(answer, Reply):
            return answer
        self._calls -= 1
        self._retries -= isinstance(answer, Failure)
        ended = self._retries < 0 or self._calls <= 0
        return Reply(answer, self._remaining(), ended)

    def submit(self, answer: str = "", confidence: float | None = None) -> bool:
        return self._finish("submitted", answer, confidence)

    def give_up(self, reason: str, confidence: float | None = None) -> bool:
        return self._finish("gave_up", reason, confidence)

    def _finish(self, how: str, text: str, confidence: float | None) -> bool:
        self.confidence = confidence
        counts, self.end = self.end is None, self.end or (how, text)
        return counts

    def _remaining(self) -> Remaining:
        return Remaining(steps=self._calls, calls=self._calls, retries=max(0, self._retries))
