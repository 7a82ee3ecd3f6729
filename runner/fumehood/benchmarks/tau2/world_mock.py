"""τ²-bench's small domain for trying things out: a list of tasks, and a user with a box of notifications.

Written anew from what the original says of its tools, because the package has its tasks and no tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fumehood.benchmarks.tau2.database import merged
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import refuse

STATUSES = ("pending", "completed")


def _tool(name: str, says: str, required: tuple[str, ...], **properties: Json) -> ToolSpec:
    schema: JsonObject = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, {**schema, "additionalProperties": False}, says)


_TEXT: JsonObject = {"type": "string"}
AGENT_TOOLS = (
    _tool(
        "create_task",
        "Create a task for a user; it is pending.",
        ("user_id", "title"),
        user_id=_TEXT,
        title=_TEXT,
        description=_TEXT,
    ),
    _tool("get_users", "List all users with their tasks.", ()),
    _tool(
        "update_task_status",
        "Give a task another status.",
        ("task_id", "status"),
        task_id=_TEXT,
        status={"type": "string", "enum": list(STATUSES)},
    ),
    _tool(
        "transfer_to_human_agents",
        "Hand the user over to a human agent, with a summary of what is wanted.",
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
    """State: ``agent`` with ``tasks`` and ``users`` by id, ``user`` with ``notifications`` by id."""

    toolset_id = "tau2_mock"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: one of these is something else.
        """
        self._agent = _tables(state, "agent", ("tasks", "users"))
        self._user = _tables(state, "user", ("notifications",))
        self._state = state
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """Both databases."""
        return self._state

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the agent's tools, then the user's."""
        return (*AGENT_TOOLS, *USER_TOOLS)

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call whose arguments fit its tool's schema."""
        try:
            said = _CALLS[call.tool_name](self, dict(call.arguments))
        except KeyError as missing:
            return refuse("tool_error", f"{missing.args[0]} not found")
        return Value({"result": said if isinstance(said, str) else json.dumps(said)})

    def set_up(self, data: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]) -> None:
        """Do what a task says has happened before.

        Args:
            data: is merged into the agent's database.
            actions: each is ``func_name`` and ``arguments``.

        Raises:
            ValueError: there is no such action.
        """
        self._agent.update(merged(self._agent, data))
        self._changed({})
        for action in actions:
            name = action["func_name"]
            if name == "add_notification":
                self._add_notification(**action["arguments"])
            elif name in _CALLS:
                _CALLS[name](self, action["arguments"])
            else:
                raise ValueError(f"{name} is not of this domain")

    def _add_notification(
        self, notification_id: str, message: str, task_id: str | None = None
    ) -> None:
        self._user["notifications"][notification_id] = {
            "notification_id": notification_id,
            "message": message,
            "status": "unread",
            "task_id": task_id,
        }
        self._changed({})

    def _create_task(self, given: Mapping[str, Any]) -> Json:
        user = _found(self._agent["users"], "User", given["user_id"])
        task_id = f"task_{len(self._agent['tasks']) + 1}"
        user["tasks"].append(task_id)
        about = {"title": given["title"], "description": given.get("description")}
        self._agent["tasks"][task_id] = {"task_id": task_id, **about, "status": STATUSES[0]}
        return self._changed(self._agent["tasks"][task_id])

    def _update_task_status(self, given: Mapping[str, Any]) -> Json:
        task = _found(self._agent["tasks"], "Task", given["task_id"])
        task["status"] = given["status"]
        return self._changed(task)

    def _get_users(self, given: Mapping[str, Any]) -> Json:
        return list(self._agent["users"].values())

    def _transfer(self, given: Mapping[str, Any]) -> Json:
        return "Transfer successful"

    def _check_notifications(self, given: Mapping[str, Any]) -> Json:
        return list(self._user["notifications"].values())

    def _dismiss_notification(self, given: Mapping[str, Any]) -> Json:
        name = given["notification_id"]
        _found(self._user["notifications"], "Notification", name)["status"] = "read"
        self._changed({})
        return f"Notification {name} dismissed"

    def _changed(self, what: JsonObject) -> Json:
        self.revision += 1
        self._state.update(agent=self._agent, user=self._user)
        return copy_object(what)


def _tables(state: JsonObject, side: str, names: tuple[str, ...]) -> Any:
    """Return a side's tables, empty ones where there are none."""
    tables = state.get(side, {})
    if isinstance(tables, dict) and all(isinstance(tables.get(name, {}), dict) for name in names):
        return {**tables, **{name: tables.get(name, {}) for name in names}}
    raise SpecError(f"initial_state.{side}", f"must have {' and '.join(names)}, each by id")


def _found(table: Any, kind: str, key: str) -> Any:
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
