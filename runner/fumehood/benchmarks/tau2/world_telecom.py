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

from fumehood.benchmarks.tau2.checkout import original_text
from fumehood.benchmarks.tau2.package import REJECTION_CHARS_MAX, Domain, calling, domain
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject


def preload() -> None:
    """Import the package while this process can still read it."""
    _tools()


class Tau2Telecom:
    """The company and the phone. State: the databases ``agent`` and ``user``, and the status
    ``seen``."""

    toolset_id = "tau2_telecom"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Use ``state`` as the state of the world.

        Raises:
            SpecError: a database is invalid.
            InputError: the package is not installed.
        """
        library, user = telecom(), telecom().user
        assert user is not None
        self.state = state
        """Both databases and the phone's status."""
        agent_database = _database(library.agent.database, state, "agent")
        self._agent = library.agent.tools_class(db=agent_database, initialized=True)
        self._user = user.tools_class(db=_database(user.database, state, "user"), initialized=True)
        if (vpn := self._user.device.vpn_details) is not None:
            # In the original, the details of every connection are one object, so that a VPN that
            # was made slow is still slow after it was connected again.
            self._user.default_vpn_details = vpn
        self._numbers = count(1)
        self._status = self._observe()
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the agent's tools, then the user's."""
        return _tools()

    def call(self, call: ToolCall) -> ToolResult:
        """Call the method of the company or of the phone that has the tool's name.

        An exception of the method becomes a rejection. The package's tools write numbers in another
        way than the original, so they are not used.
        """
        is_of_agent = call.tool_name in telecom().agent.executes
        with calling(self._agent, self._user, numbers=self._numbers):
            try:
                method = getattr(self._agent if is_of_agent else self._user, call.tool_name)
                result: ToolResult = Value(
                    {"result": original_text(method(**copy_object(call.arguments)))}
                )
                self._synchronise()
            except Exception as error:
                # The original catches every exception in the same way.
                result = reject("tool_error", str(error)[:REJECTION_CHARS_MAX] or repr(error))
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
        self.state = {**self.state, **self._status}

    def _synchronise(self) -> None:
        synchronise = telecom().synchronise
        assert synchronise is not None
        synchronise(self._user, self._agent)

    def _update(self) -> None:
        status = self._observe()
        if status != self._status:
            self._status = status
            self.state = {**self.state, **status}
            self.revision += 1

    def _observe(self) -> JsonObject:
        # Without warnings, because arguments are not checked, so a field may have any type.
        speed, description = self._user._run_speed_test()
        return {
            "agent": self._agent.db.model_dump(mode="json", warnings=False),
            "user": self._user.db.model_dump(mode="json", warnings=False),
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
