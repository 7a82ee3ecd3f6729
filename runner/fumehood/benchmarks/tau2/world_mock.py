"""τ²-bench's mock domain: a task list, and a user with notifications.

The package contains its tasks but not its tools, so this module implements the tools
from their documentation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fumehood.benchmarks.tau2.database import merged
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject

STATUSES = ("pending", "completed")


def _tool(name: str, text: str, /, required: tuple[str, ...], **properties: Json) -> ToolSpec:
    schema: JsonObject = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, {**schema, "additionalProperties": False}, text)


_TEXT: JsonObject = {"type": "string"}
AGENT_TOOLS = (
    _tool(
        "create_task",
        "Create a task for a user. Its status is pending.",
        ("user_id", "title"),
        user_id=_TEXT,
        title=_TEXT,
        description=_TEXT,
    ),
    _tool("get_users", "List all users with their tasks.", ()),
    _tool(
        "update_task_status",
        "Set the status of a task.",
        ("task_id", "status"),
        task_id=_TEXT,
        status={"type": "string", "enum": list(STATUSES)},
    ),
    _tool(
        "transfer_to_human_agents",
        "Transfer the user to a human agent, with a summary of the request.",
        ("summary",),
        summary=_TEXT,
    ),
)
USER_TOOLS = (
    _tool("check_notifications", "List all notifications.", ()),
    _tool(
        "dismiss_notification",
        "Mark a notification as read.",
        ("notification_id",),
        notification_id=_TEXT,
    ),
)


class Tau2Mock:
    """The mock domain. State: ``agent`` (``tasks``, ``users``) and ``user`` (``notifications``),
    each by id."""

    toolset_id = "tau2_mock"

    def __init__(self, state: JsonObject) -> None:
        """Use ``state`` as the state of the world.

        Raises:
            SpecError: a table is missing or invalid.
        """
        self._agent = _tables(state, "agent", ("tasks", "users"))
        self._user = _tables(state, "user", ("notifications",))
        self.state = state
        """Both databases."""
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the agent's tools, then the user's."""
        return (*AGENT_TOOLS, *USER_TOOLS)

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call whose arguments fit its tool's schema."""
        try:
            result = _CALLS[call.tool_name](self, dict(call.arguments))
        except KeyError as missing:
            return reject("tool_error", f"{missing.args[0]} not found")
        return Value({"result": result if isinstance(result, str) else json.dumps(result)})

    def set_up(self, data: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]) -> None:
        """Apply a task's initial data and actions.

        Args:
            data: merged into the agent's database.
            actions: each has ``func_name`` and ``arguments``.

        Raises:
            ValueError: an action is unknown.
        """
        self._agent.update(merged(self._agent, data))
        self._record_change({})
        for action in actions:
            name = action["func_name"]
            if name == "add_notification":
                self._add_notification(**action["arguments"])
            elif name in _CALLS:
                _CALLS[name](self, action["arguments"])
            else:
                raise ValueError(f"{name} is not an action of this domain")

    def _add_notification(
        self, notification_id: str, message: str, task_id: str | None = None
    ) -> None:
        self._user["notifications"][notification_id] = {
            "notification_id": notification_id,
            "message": message,
            "status": "unread",
            "task_id": task_id,
        }
        self._record_change({})

    def _create_task(self, arguments: Mapping[str, Any]) -> Json:
        user = _lookup(self._agent["users"], "User", arguments["user_id"])
        task_id = f"task_{len(self._agent['tasks']) + 1}"
        user["tasks"].append(task_id)
        text = {"title": arguments["title"], "description": arguments.get("description")}
        self._agent["tasks"][task_id] = {"task_id": task_id, **text, "status": STATUSES[0]}
        return self._record_change(self._agent["tasks"][task_id])

    def _update_task_status(self, arguments: Mapping[str, Any]) -> Json:
        task = _lookup(self._agent["tasks"], "Task", arguments["task_id"])
        task["status"] = arguments["status"]
        return self._record_change(task)

    def _get_users(self, arguments: Mapping[str, Any]) -> Json:
        return list(self._agent["users"].values())

    def _transfer(self, arguments: Mapping[str, Any]) -> Json:
        return "Transfer successful"

    def _check_notifications(self, arguments: Mapping[str, Any]) -> Json:
        return list(self._user["notifications"].values())

    def _dismiss_notification(self, arguments: Mapping[str, Any]) -> Json:
        name = arguments["notification_id"]
        _lookup(self._user["notifications"], "Notification", name)["status"] = "read"
        self._record_change({})
        return f"Notification {name} dismissed"

    def _record_change(self, result: JsonObject) -> Json:
        self.revision += 1
        self.state.update(agent=self._agent, user=self._user)
        return copy_object(result)


def _tables(state: JsonObject, side: str, names: tuple[str, ...]) -> Any:
    """Return a side's tables; a missing table is empty."""
    tables = state.get(side, {})
    if isinstance(tables, dict) and all(isinstance(tables.get(name, {}), dict) for name in names):
        return {**tables, **{name: tables.get(name, {}) for name in names}}
    raise SpecError(
        f"initial_state.{side}", f"must have {' and '.join(names)}, each an object by id"
    )


def _lookup(table: Any, kind: str, key: str) -> Any:
    if key not in table:
        raise KeyError(f"{kind} {key}")
    return table[key]


_CALLS: Mapping[str, Callable[[Tau2Mock, Mapping[str, Any]], Json]] = {
    "create_task": Tau2Mock._create_task,
    "get_users": Tau2Mock._get_users,
    "update_task_status": Tau2Mock._update_task_status,
    "transfer_to_human_agents": Tau2Mock._transfer,
    "check_notifications": Tau2Mock._check_notifications,
    "dismiss_notification": Tau2Mock._dismiss_notification,
}
