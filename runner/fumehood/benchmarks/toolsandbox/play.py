"""Plays moves on a scenario of ToolSandbox with its own loop, tools and evaluation.

Only the process of ``checker`` uses this, after it imported a checkout.
"""

from __future__ import annotations

import datetime
import json
import random
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any
from uuid import UUID

from fumehood.benchmarks.toolsandbox.names import AGENT, METRICS, USER

START = datetime.datetime(2024, 6, 5, 10)
"""Time at which each episode begins, in UTC; each move takes a second. The original uses the clock
of the machine."""
_CONTEXT, _ENVIRONMENT = "common.execution_context", "roles.execution_environment"


_now = [START]
_ids = random.Random(0)


class Clock(datetime.datetime):
    """Replaces the clock of the machine in the modules of a checkout."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
        """Return the time of the episode."""
        return _now[0]


def random_id() -> UUID:
    """Return the next identifier of the episode."""
    return UUID(int=_ids.getrandbits(128), version=4)


def original(module: str) -> Any:
    """Return a module of the checkout."""
    return import_module(f"tool_sandbox.{module}")


class _Waiting(Exception):
    """No move is left, or the next move is of another seat."""


@dataclass(slots=True)
class Played:
    """What the moves led to."""

    context: Any
    ended: bool
    """Whether the user or the limit of messages ended the conversation."""
    error: str = ""
    """The exception that ended the scenario."""

    def reply(self) -> dict[str, Any]:
        """Return the environment's reply to the last call, and whether it failed."""
        if self.error:
            return {"error": self.error, "ended": "error"}
        last = messages_of(self.context)[-1]
        if last["sender"] != "EXECUTION_ENVIRONMENT":
            return {"error": "the limit of messages is reached", "ended": "limit"}
        key = "text" if last["tool_call_exception"] is None else "error"
        by = "limit" if last["conversation_active"] else "user"
        return {key: last["content"], "ended": by if self.ended else None}


def messages_of(context: Any) -> list[dict[str, Any]]:
    """Return the rows of the original's database of messages."""
    rows = context.get_database(
        original(_CONTEXT).DatabaseNamespace.SANDBOX, get_all_history_snapshots=True
    ).to_dicts()
    return [row for row in rows if row["sender"] is not None]


def play(scenario: Any, moves: list[dict[str, Any]]) -> Played:
    """Play the moves of both seats until none is left or the conversation ends."""
    _now[0] = START
    _ids.seed(0)
    kinds = original(_CONTEXT).RoleType
    left = [*enumerate(moves)]
    roles = {kinds[name.upper()]: role(name, left) for name in (AGENT, USER)}
    roles[kinds.EXECUTION_ENVIRONMENT] = original(_ENVIRONMENT).ExecutionEnvironment()
    ended, error = True, ""
    try:
        scenario.play(roles, "episode")
    except _Waiting:
        ended = False
    except Exception as raised:  # As ``run_scenario`` of the original does.
        error = repr(raised)
    return Played(original(_CONTEXT).get_current_context(), ended, error)


def role(name: str, left: list[tuple[int, dict[str, Any]]]) -> Any:
    """Return a role of the original that makes the moves of a seat."""
    kind = original(_CONTEXT).RoleType[name.upper()]

    def respond(self: Any, ending_index: int | None = None) -> None:
        if not left or left[0][1].get("seat", AGENT) != name:
            raise _Waiting
        number, move = left.pop(0)
        _now[0] += datetime.timedelta(seconds=1)
        self.add_messages([_message(self, number, move)])

    base = original("roles.base_role").BaseRole
    return type(name, (base,), {"role_type": kind, "respond": respond})()


def _message(sender: Any, number: int, move: dict[str, Any]) -> Any:
    conversion, kinds = original("common.message_conversion"), original(_CONTEXT).RoleType
    is_agent = sender.role_type == kinds.AGENT
    if "submit" in move:
        recipient = kinds.USER if is_agent else kinds.AGENT
        return conversion.Message(sender.role_type, recipient, move["submit"])
    name, identity = move["tool_name"], f"call_{number}"
    function = conversion.Function(name=name, arguments=json.dumps(move["args"]))
    call = conversion.ChatCompletionMessageToolCall(id=identity, function=function)
    context = original(_CONTEXT).get_current_context()
    facing = context.get_execution_facing_tool_name(name) if is_agent else None
    code = conversion.openai_tool_call_to_python_code(
        call, set(sender.get_available_tools()), facing
    )
    ids = {"openai_tool_call_id": identity, "openai_function_name": name} if is_agent else {}
    return conversion.Message(sender.role_type, kinds.EXECUTION_ENVIRONMENT, code, **ids)


def score(scenario: Any, moves: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the original's evaluation of the moves."""
    played = play(scenario, moves)
    if not played.error:
        # The evaluation reads the same databases thousands of times and changes none.
        played.context.get_database = cache(played.context.get_database)
        try:
            result = scenario.evaluation.evaluate(played.context, scenario.max_messages)
        except Exception as raised:  # As ``run_scenario`` of the original does.
            played.error = repr(raised)
        else:
            milestones = [similarity for _, similarity in result.milestone_mapping.values()]
            return {"milestones": milestones, **{name: getattr(result, name) for name in METRICS}}
    count = len(scenario.evaluation.milestone_matcher.milestones)
    metrics = {**dict.fromkeys(METRICS, 0), "turn_count": scenario.max_messages}
    return {"milestones": [0] * count, **metrics, "error": played.error}
