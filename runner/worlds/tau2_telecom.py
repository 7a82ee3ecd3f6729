"""τ²-bench's telecom: a company's customers and one customer's phone, in the hands of whoever works alone.

Every tool is the package's own, on both sides of the line. Beside both databases the state has what a look at
the phone would show, worked out by the package, so that whoever judges the state needs no package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count
from typing import Any

from pydantic import ValidationError

from runner.core.errors import SpecError
from runner.core.json_values import Json, JsonObject
from runner.core.tools import ToolCall, ToolResult, ToolSpec, Value
from runner.worlds.refusals import refuse
from runner.worlds.tau2_library import calling, completed, parameters_of, telecom

TEXT_CHARS_MAX = 2000
"""Of a refusal: some repeat the whole of what was sent."""


def preload() -> None:
    """Import the package, before a process may no longer read it."""
    _tools()


class Tau2Telecom:
    """State: ``agent`` and ``user``, the databases, and ``seen``, what the phone shows."""

    toolset_id = "tau2_telecom"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: a database is none of the package's.
            InputError: the package is not installed.
        """
        library = telecom()
        self._state = state
        self._agent = library.agent_class(
            db=_database(library.agent_database, state, "agent"), initialized=True
        )
        self._user = library.user_class(db=_database(library.user_database, state, "user"), initialized=True)
        self._numbers = count(1)
        self._shown = self._show()
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """Both databases and what the phone shows; as it was given while nothing has changed."""
        return self._state

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the agent's tools, then the user's."""
        return _tools()

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call whose arguments fit its tool's schema."""
        execute = telecom().executes[call.tool_name]
        try:
            with calling(self._agent, self._user, self._numbers):
                said: ToolResult = Value({"result": completed(execute(**call.arguments))})
                self._synchronise()
        except Exception as error:
            # As the original does: whatever a tool raises is what it says.
            said = refuse("tool_error", str(error)[:TEXT_CHARS_MAX] or type(error).__name__)
        self._look()
        return said

    def set_up(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """Do what a task says has happened before; each is ``env_type``, ``func_name`` and ``arguments``."""
        with calling(self._agent, self._user, self._numbers):
            self._synchronise()
            for action in actions:
                side = self._user if action["env_type"] == "user" else self._agent
                getattr(side, action["func_name"])(**action["arguments"])
                self._synchronise()
        self._shown = self._show()
        self._state = {**self._state, **self._shown}

    def _synchronise(self) -> None:
        telecom().environment(self._user, self._agent)

    def _look(self) -> None:
        shown = self._show()
        if shown != self._shown:
            self._shown = shown
            self._state = {**self._state, **shown}
            self.revision += 1

    def _show(self) -> JsonObject:
        speed, word = self._user._run_speed_test()
        return {
            "agent": self._agent.db.model_dump(mode="json"),
            "user": self._user.db.model_dump(mode="json"),
            "seen": {
                "can_send_mms": self._user._can_send_mms(),
                "mobile_data_working": self._user._get_mobile_data_working(),
                "speed_mbps": speed or 0.0,
                "speed": (word or "").lower(),
            },
        }


@cache
def _tools() -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(name, parameters_of(execute), _sentence(execute.__doc__ or name))
        for name, execute in telecom().executes.items()
    )


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    return words if words.endswith(".") else f"{words}."


def _database(kind: Any, state: JsonObject, side: str) -> Any:
    given: Json = state.get(side, {})
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (side, *first["loc"])))
        raise SpecError(f"initial_state.{where}", first["msg"]) from None
