"""What each simulator can be asked. A world without an example fails the suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.core.tools import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A state to live in, and calls that fit the tools."""

    state: Mapping[str, Any]
    reading: tuple[ToolCall, ...]
    """Answered, and nothing changes."""
    changing: tuple[ToolCall, ...] = ()
    """Answered, and something changes, one after the other."""
    refused: tuple[ToolCall, ...]
    """The world says no, and nothing changes."""
    unlivable: tuple[Mapping[str, Any], ...]
    """States that the world says it cannot live in."""


def _call(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments)


EXAMPLES: Mapping[str, Example] = {
    "crud": Example(
        state={"accounts": {"a1": {"id": "a1", "tier": "basic", "tags": ["x"]}}, "kept": [1, 1.0]},
        reading=(_call("get_account", id="a1"),),
        changing=(
            _call("update_account", id="a1", patch={"tier": "pro", "deep": {"list": [1]}}),
            _call("create_account", fields={"id": "a2"}),
            _call("create_account", fields={}),
            _call("create_account", fields={"id": 7}),
            _call("close_account", id="a1", reason="asked"),
        ),
        refused=(
            _call("get_account", id="nobody"),
            _call("update_account", id="nobody", patch={}),
            _call("close_account", id="nobody", reason=""),
            _call("create_account", fields={"id": "a1"}),
        ),
        unlivable=({"accounts": []}, {"accounts": None}),
    ),
    "files": Example(
        state={"files": {"/a.txt": "one", "/b/c.txt": "two"}},
        reading=(
            _call("read_file", path="/a.txt"),
            _call("list_dir", path="/"),
            _call("list_dir", path="/none"),
        ),
        changing=(
            _call("write_file", path="/a.txt", content="é\0"),
            _call("write_file", path="", content=""),
        ),
        refused=(_call("read_file", path="/b"),),
        unlivable=({"files": ["/a.txt"]}, {"files": 1}),
    ),
    "retrieval": Example(
        state={"docs": [{"id": "d1", "title": "Pump", "text": "pump noise"}, {"id": "d2", "title": None}]},
        reading=(
            _call("get_doc", doc_id="d1"),
            _call("search_docs", query="pump", top_k=1),
            _call("search_docs", query="none", top_k=3.0),
            _call("search_docs", query="", top_k=10**30),
            _call("search_docs", query="pump", top_k=-5),
        ),
        refused=(_call("get_doc", doc_id="d9"),),
        unlivable=({"docs": {}}, {"docs": ["d1"]}),
    ),
    "scheduling": Example(
        state={"jobs": [{"name": "m", "cron": "* * * * *", "command": "x"}]},
        reading=(
            _call("list_jobs"),
            _call("validate_cron", cron="0 59 * * 007"),
            _call("validate_cron", cron="² * * * *"),
            _call("validate_cron", cron=f"{'9' * 5000} * * * *"),
        ),
        changing=(
            _call("create_job", name="z", cron="1 2 3 4 5", command="run"),
            _call("create_job", name="a", cron="٣ * * * *", command="run"),
        ),
        refused=(
            _call("create_job", name="m", cron="* * * * *", command="x"),
            _call("create_job", name="n", cron="60 * * * *", command="x"),
        ),
        unlivable=({"jobs": {}}, {"jobs": ["m"]}),
    ),
}
