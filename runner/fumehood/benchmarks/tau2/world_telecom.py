"""τ²-bench's telecom: a company's customer database and one customer's phone, for one or two seats.

All tools are the package's own. The state also contains the phone's observable status, computed by
the package, so that scoring does not need the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count
from typing import Any

from pydantic import ValidationError

from fumehood.benchmarks.tau2.package import Domain, calling, domain, execute_tool
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec


def preload() -> None:
    """Import the package while this process can still read it."""
    _tools()


class Tau2Telecom:
    """The company and the phone. State: the databases ``agent`` and ``user``, and the status
    ``seen``."""

    toolset_id = "tau2_telecom"

    def __init__(self, state: JsonObject) -> None:
        """Use ``state`` as the state of the world.

        Raises:
            SpecError: a database is invalid.
            InputError: the package is not installed.
        """
        library, user = telecom(), telecom().user
        assert user is not None
        self._state = state
        agent_database = _database(library.agent.database, state, "agent")
        self._agent = library.agent.tools_class(db=agent_database, initialized=True)
        self._user = user.tools_class(db=_database(user.database, state, "user"), initialized=True)
        self._numbers = count(1)
        self._status = self._observe()
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """Both databases and the phone's status."""
        return self._state

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the agent's tools, then the user's."""
        return _tools()

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call whose arguments fit its tool's schema."""
        with calling(self._agent, self._user, numbers=self._numbers):
            execute = telecom().executes[call.tool_name]
            result = execute_tool(execute, call.arguments, self._synchronise)
        self._update()
        return result

    def set_up(self, data: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]) -> None:
        """Apply a task's initial actions, each with ``env_type``, ``func_name`` and ``arguments``.

        Raises:
            ValueError: ``data`` is not empty; tasks of this domain have none.
        """
        if data:
            raise ValueError("initialization_data is not supported in this domain")
        with calling(self._agent, self._user, numbers=self._numbers):
            self._synchronise()
            for action in actions:
                side = self._user if action["env_type"] == "user" else self._agent
                getattr(side, action["func_name"])(**action["arguments"])
                self._synchronise()
        self._status = self._observe()
        self._state = {**self._state, **self._status}

    def _synchronise(self) -> None:
        synchronise = telecom().synchronise
        assert synchronise is not None
        synchronise(self._user, self._agent)

    def _update(self) -> None:
        status = self._observe()
        if status != self._status:
            self._status = status
            self._state = {**self._state, **status}
            self.revision += 1

    def _observe(self) -> JsonObject:
        speed, description = self._user._run_speed_test()
        return {
            "agent": self._agent.db.model_dump(mode="json"),
            "user": self._user.db.model_dump(mode="json"),
            "seen": {
                "can_send_mms": self._user._can_send_mms(),
                "mobile_data_working": self._user._get_mobile_data_working(),
                "speed_mbps": speed or 0.0,
                "speed": (description or "").lower(),
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
    database: Json = state.get(side, {})
    try:
        return kind.model_validate(database)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, (side, *first["loc"])))
        raise SpecError(f"initial_state.{location}", first["msg"]) from None
