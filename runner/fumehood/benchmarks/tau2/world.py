"""τ²-bench's airline, shop and bank: an agent works in a company's database and serves a user.

All tools are the package's own. A state names the database's file by the digest of its content and
lists the differences from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError

from fumehood.benchmarks.tau2.checkout import SIDES
from fumehood.benchmarks.tau2.database import (
    DATABASES,
    Change,
    LazyDatabase,
    WholeDatabase,
    applied,
    differences,
    merged,
    read_bytes,
    read_database,
)
from fumehood.benchmarks.tau2.package import (
    REJECTION_CHARS_MAX,
    calling,
    data_folder,
    domain,
    execute_tool,
)
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.third_party.process import checker
from fumehood.worlds.schema import reject

SEARCH = "grep"
SEARCHING = ("banking",)
"""Domains in which the agent searches documents. The search runs in a separate process."""
READS = ("folder",)
"""Parts of the state that name what an episode reads."""
CHECKER = "tau2"
"""Answers the calls that run elsewhere."""


def preload() -> None:
    """Import the package and read its files while this process can still read them."""
    for name in DATABASES:
        _tools(name)
        read_bytes(data_folder(name))


class Tau2Company:
    """A company's tools over its database.

    State: ``domain``, ``folder`` (its data; empty for the package's), ``database`` (digest of its
    file), ``changes`` to it, and ``kept`` (other attributes of each side's tools). With a
    ``checkout``, its tools are called instead of the package's, and ``logged_reads`` names the
    discoverable tools whose reads are part of the database.
    """

    toolset_id = "tau2_company"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Use ``state`` as the state of the world; the first call opens the database.

        Raises:
            SpecError: the domain is unknown, or the database is missing or has another digest.
            InputError: the package is not installed.
        """
        match state:
            case {"domain": str(name), "folder": str(folder), "database": str(digest)} if (
                name in DATABASES
            ):
                self._name, self._folder = name, folder
            case _:
                domains = ", ".join(DATABASES)
                raise SpecError(
                    "initial_state", f"must have domain ({domains}), folder and database"
                )
        self._published = read_database(name, folder)
        if self._published.digest != digest:
            raise SpecError(
                "initial_state.database", f"is {digest}, but the file has {self._published.digest}"
            )
        self._state: JsonObject = {"changes": [], "kept": {}, **state}
        self._checkout = str(state.get("checkout", ""))
        self._database: LazyDatabase | WholeDatabase | None = None
        self._toolboxes: list[Any] = []
        self._state_revision = 0
        self.revision = 0
        """Number of calls. Changes are computed only when the state is read."""

    @property
    def state(self) -> JsonObject:
        """The digest of the database, its changes, and the attributes of the tools."""
        if self._state_revision != self.revision:
            self._state_revision = self.revision
            self._state = {**self._state, **self._read_state()}
        return self._state

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the agent's tools, then the user's."""
        return _tools(self._name, self._checkout, self._place)

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call; the package validates its arguments."""
        if call.tool_name == SEARCH:
            return self._search(call)
        if self._checkout:
            user_tools = checkout_tools(self._name, self._checkout, self._place)["user"]
            is_of_user = call.tool_name in {tool.name for tool in user_tools}
            return self._call_checkout("user" if is_of_user else "agent", call)
        execute = domain(self._name).executes.get(call.tool_name)
        if execute is None:
            return reject("unknown_tool", f"there is no {call.tool_name}")
        self._open()
        self.revision += 1
        with calling(*self._toolboxes):
            return execute_tool(execute, _copied(call.arguments), _do_nothing)

    def set_up(self, data: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]) -> None:
        """Apply a task's initial data and actions.

        Args:
            data: merged into the database.
            actions: each has ``env_type``, ``func_name`` and ``arguments``.
        """
        if data:
            tables = self._published.tables
            now = merged(applied(tables, self._changes()), data)
            self._state = {**self._state, "changes": list(differences(tables, now))}
            self.revision += 1
            self._open()
        for action in actions:
            if self._checkout:
                side = "user" if action["env_type"] == "user" else "agent"
                call = ToolCall(action["func_name"], action["arguments"])
                result = self._call_checkout(side, call)
                if not isinstance(result, Value):
                    raise ValueError(f"{call.tool_name}: {result}")
                continue
            self._open()
            self.revision += 1
            with calling(*self._toolboxes):
                side = self._toolboxes[-1 if action["env_type"] == "user" else 0]
                getattr(side, action["func_name"])(**_copied(action["arguments"]))

    def _changes(self) -> list[Change]:
        changes = self._state["changes"]
        return (
            [change for change in changes if isinstance(change, dict)]
            if isinstance(changes, list)
            else []
        )

    @property
    def _place(self) -> str:
        """Folder of the database."""
        return self._folder or str(data_folder(self._name))

    def _call_checkout(self, side: str, call: ToolCall) -> ToolResult:
        self.revision += 1
        self._state_revision = self.revision
        question: JsonObject = {
            **{"op": "call", "domain": self._name, "checkout": self._checkout},
            **{"folder": self._place, "side": side, "name": call.tool_name},
            "arguments": _copied(call.arguments),
            **{key: self._state.get(key, []) for key in ("changes", "kept", "logged_reads")},
        }
        try:
            reply = checker("tau2").ask(question)
        except InfraError as error:
            return reject("tool_error", f"the call had no effect: {error}"[:REJECTION_CHARS_MAX])
        self._state = {**self._state, "changes": reply["changes"], "kept": reply["kept"]}
        if "error" in reply:
            return reject("tool_error", str(reply["error"])[:REJECTION_CHARS_MAX])
        return Value({"result": reply["text"]})

    def _open(self) -> None:
        if self._checkout:
            # The changes in the state are current.
            self._state_revision = self.revision
            return
        if self._database is not None:
            return
        company = domain(self._name)
        try:
            self._database = DATABASES[self._name](
                company.agent.database, self._published, self._changes()
            )
        except ValidationError as error:
            raise SpecError("initial_state.changes", str(error.errors()[0]["msg"])) from None
        kept = self._state["kept"]
        for side in company.sides:
            name = side.tools_class.__name__
            attributes = kept.get(name) if isinstance(kept, dict) else None
            copied = _copied(attributes) if isinstance(attributes, dict) else {}
            tools = side.tools_class(db=self._database.database, initialized=True, **copied)
            self._toolboxes.append(tools)

    def _read_state(self) -> JsonObject:
        assert self._database is not None
        kept: dict[str, Json] = {}
        for side in self._toolboxes:
            attributes = side.model_dump(mode="json", exclude={"db", "initialized"})
            if attributes:
                kept[type(side).__name__] = attributes
        return {"changes": list(self._database.changes()), "kept": kept}

    def _search(self, call: ToolCall) -> ToolResult:
        pattern = call.arguments.get("pattern")
        if not isinstance(pattern, str):
            return reject("tool_error", "pattern must be a string")
        try:
            reply = checker("tau2").ask({"folder": self._folder, "pattern": pattern})
        except InfraError:
            return reject("tool_error", "the search for this pattern takes too long")
        return Value({"result": reply["matches"]})


@cache
def checkout_tools(name: str, checkout: str, folder: str) -> Mapping[str, tuple[ToolSpec, ...]]:
    """Return the tools of a checkout by side.

    Raises:
        SpecError: The checkout cannot be imported.
    """
    question: JsonObject = {"op": "describe", "domain": name, "checkout": checkout}
    try:
        reply: Any = checker("tau2").ask({**question, "folder": folder})
    except InfraError as error:
        raise SpecError(
            "checkout", f"{checkout} must be a checkout that all users can read: {error}"
        ) from None
    return {side: tuple(ToolSpec(**tool) for tool in reply.get(side, ())) for side in SIDES}


@cache
def _tools(name: str, checkout: str = "", folder: str = "") -> tuple[ToolSpec, ...]:
    tools = domain(name).tools
    if checkout:
        sides = checkout_tools(name, checkout, folder)
        tools = (*sides["agent"], *sides["user"])
    if name not in SEARCHING:
        return tools
    pattern: JsonObject = {"pattern": {"type": "string"}}
    parameters: JsonObject = {"type": "object", "properties": pattern, "required": ["pattern"]}
    description = (
        "Search the documents for a regular expression. Returns full documents, those with most "
        "matches first."
    )
    return (*tools, ToolSpec(SEARCH, {**parameters, "additionalProperties": False}, description))


def _copied(arguments: Mapping[str, Json]) -> dict[str, Any]:
    return {name: copy_json(value) for name, value in arguments.items()}


def _do_nothing() -> None:
    """Synchronise nothing: both sides share one database."""
