"""τ²-bench's telecom: a company's customers and one customer's phone, in the hands of one seat or of two.

Every tool is the package's own, on both sides of the line. Beside both databases the state has what a look at
the phone would show, worked out by the package, so that whoever judges the state needs no package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count
from typing import Any

from pydantic import ValidationError

from fumehood.benchmarks.tau2.package import Domain, answer_of, calling, domain
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec


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
        library, user = telecom(), telecom().user
        assert user is not None
        self._state = state
        agent_database = _database(library.agent.database, state, "agent")
        self._agent = library.agent.tools_class(db=agent_database, initialized=True)
        self._user = user.tools_class(db=_database(user.database, state, "user"), initialized=True)
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
        with calling(self._agent, self._user, numbers=self._numbers):
            execute = telecom().executes[call.tool_name]
            said = answer_of(execute, call.arguments, self._synchronise)
        self._look()
        return said

    def set_up(self, data: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]) -> None:
        """Do what a task says has happened before; each is ``env_type``, ``func_name`` and ``arguments``.

        Raises:
            ValueError: something is to be merged into the databases, which no task of this domain has.
        """
        if data:
            raise ValueError("initialization_data is not of this domain")
        with calling(self._agent, self._user, numbers=self._numbers):
            self._synchronise()
            for action in actions:
                side = self._user if action["env_type"] == "user" else self._agent
                getattr(side, action["func_name"])(**action["arguments"])
                self._synchronise()
        self._shown = self._show()
        self._state = {**self._state, **self._shown}

    def _synchronise(self) -> None:
        synchronise = telecom().synchronise
        assert synchronise is not None
        synchronise(self._user, self._agent)

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


def telecom() -> Domain:
    """Return the imported domain.

    Raises:
        InputError: the package is not installed.
    """
    return domain("telecom")


@cache
def _tools() -> tuple[ToolSpec, ...]:
    return telecom().tools


def _database(kind: Any, state: JsonObject, side: str) -> Any:
    given: Json = state.get(side, {})
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (side, *first["loc"])))
        raise SpecError(f"initial_state.{where}", first["msg"]) from None
