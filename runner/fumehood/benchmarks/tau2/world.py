"""τ²-bench's airline, shop and bank: an agent works in the company's database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import ValidationError

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
from fumehood.benchmarks.tau2.package import answer_of, calling, data_folder, domain
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.third_party.process import checker
from fumehood.worlds.schema import refuse

SEARCH = "grep"
SEARCHING = ("banking",)
"""Domains whose agent searches documents, with expressions of its own: in a process of its own."""
_FOUND_LATE = ("_strptime",)


def preload() -> None:
    """Import the package and read its files, before a process may no longer read them."""
    for name in DATABASES:
        _tools(name)
        read_bytes(data_folder(name))
    for late in _FOUND_LATE:
        import_module(late)
    checker("tau2")


class Tau2Company:
    """State: ``domain``, ``folder`` (of its data, empty for the package's own), ``database`` (the digest of
    its file), ``changes`` since, and ``kept``, what a side's tools remember besides."""

    toolset_id = "tau2_company"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``; the database is opened at the first call.

        Raises:
            SpecError: there is no such domain or database, or it is another.
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
                "initial_state.database", f"is {digest}, and there is {self._published.digest}"
            )
        self._state: JsonObject = {"changes": [], "kept": {}, **state}
        self._database: LazyDatabase | WholeDatabase | None = None
        self._objects: list[Any] = []
        self._looked_at = 0
        self.revision = 0
        """Counts calls: what has changed is only worked out when somebody asks for the state."""

    @property
    def state(self) -> JsonObject:
        """Which database it is, and what has changed."""
        if self._looked_at != self.revision:
            self._looked_at = self.revision
            self._state = {**self._state, **self._look()}
        return self._state

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the agent's tools, then the user's."""
        return _tools(self._name)

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call, whatever its arguments are."""
        if call.tool_name == SEARCH:
            return self._search(call)
        execute = domain(self._name).executes.get(call.tool_name)
        if execute is None:
            return refuse("unknown_tool", f"there is no {call.tool_name}")
        self._open()
        self.revision += 1
        with calling(*self._objects):
            return answer_of(execute, _copied(call.arguments), _nothing)

    def set_up(self, data: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]) -> None:
        """Do what a task says has happened before.

        Args:
            data: is merged into the database.
            actions: each is ``env_type``, ``func_name`` and ``arguments``.
        """
        if data:
            tables = self._published.tables
            now = merged(applied(tables, self._changes()), data)
            self._state = {**self._state, "changes": list(differences(tables, now))}
            self.revision += 1
            self._open()
        for action in actions:
            self._open()
            self.revision += 1
            with calling(*self._objects):
                side = self._objects[-1 if action["env_type"] == "user" else 0]
                getattr(side, action["func_name"])(**_copied(action["arguments"]))

    def _changes(self) -> list[Change]:
        changes = self._state["changes"]
        return (
            [each for each in changes if isinstance(each, dict)]
            if isinstance(changes, list)
            else []
        )

    def _open(self) -> None:
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
            own = kept.get(name) if isinstance(kept, dict) else None
            remembered = _copied(own) if isinstance(own, dict) else {}
            made = side.tools_class(db=self._database.database, initialized=True, **remembered)
            self._objects.append(made)

    def _look(self) -> JsonObject:
        assert self._database is not None
        kept: dict[str, Json] = {}
        for side in self._objects:
            if own := side.model_dump(mode="json", exclude={"db", "initialized"}):
                kept[type(side).__name__] = own
        return {"changes": list(self._database.changes()), "kept": kept}

    def _search(self, call: ToolCall) -> ToolResult:
        pattern = call.arguments.get("pattern")
        if not isinstance(pattern, str):
            return refuse("tool_error", "pattern must be a text")
        try:
            found = checker("tau2").ask({"folder": self._folder, "pattern": pattern})
        except InfraError:
            return refuse("tool_error", "searching for this pattern takes too long")
        return Value({"result": found["found"]})


@cache
def _tools(name: str) -> tuple[ToolSpec, ...]:
    tools = domain(name).tools
    if name not in SEARCHING:
        return tools
    pattern: JsonObject = {"pattern": {"type": "string"}}
    parameters: JsonObject = {"type": "object", "properties": pattern, "required": ["pattern"]}
    says = "Search the documents for a regular expression; those with most matches come first, in full."
    return (*tools, ToolSpec(SEARCH, {**parameters, "additionalProperties": False}, says))


def _copied(arguments: Mapping[str, Json]) -> dict[str, Any]:
    return {name: copy_json(value) for name, value in arguments.items()}


def _nothing() -> None:
    """Do nothing: both sides share one database."""
