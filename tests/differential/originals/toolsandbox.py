"""Plays trajectories with the loop of a checkout of ToolSandbox, and evaluates them with it."""

import datetime
import json
import os
import random
import sys
import time
import uuid
from collections import deque
from copy import deepcopy
from types import ModuleType, SimpleNamespace
from typing import Any

from questions import answer, digits

REACHED = 0.5
START = datetime.datetime(2024, 6, 5, 10)
os.environ.update(TZ="UTC", TQDM_DISABLE="1")
time.tzset()
_CHECKOUT = f"{os.environ['FUMEHOOD_ORIGINALS']}/ToolSandbox"
sys.path[:0] = [_CHECKOUT, f"{_CHECKOUT}/packages"]
_OF_VENDORS = {
    "requests": (),
    "langchain_core": (),
    "langchain_core.messages": ("AIMessage", "BaseMessage", "HumanMessage", "ToolMessage"),
    "langchain_core.pydantic_v1": ("BaseModel",),
    "openai": (),
    "openai.types": (),
    "openai.types.chat": (),
    "openai.types.chat.chat_completion_message_tool_call": (
        "ChatCompletionMessageToolCall",
        "Function",
    ),
}
for _name, _kinds in _OF_VENDORS.items():
    sys.modules[_name] = ModuleType(_name)
    vars(sys.modules[_name]).update({kind: type(kind, (SimpleNamespace,), {}) for kind in _kinds})


class _Clock(datetime.datetime):
    moment = START

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.moment


from tool_sandbox.common import message_conversion as conversion  # noqa: E402
from tool_sandbox.common.execution_context import (  # noqa: E402
    RoleType,
    get_current_context,
)
from tool_sandbox.common.tool_discovery import ToolBackend  # noqa: E402
from tool_sandbox.roles.base_role import BaseRole  # noqa: E402
from tool_sandbox.roles.execution_environment import ExecutionEnvironment  # noqa: E402
from tool_sandbox.scenarios import named_scenarios  # noqa: E402

_ids = random.Random(0)
for _name, _module in [*sys.modules.items()]:
    if _name.startswith("tool_sandbox."):
        if hasattr(_module, "datetime"):
            _module.datetime = SimpleNamespace(**{**vars(datetime), "datetime": _Clock})
        if hasattr(_module, "uuid4"):
            _module.uuid4 = lambda: uuid.UUID(int=_ids.getrandbits(128), version=4)
_scenarios = named_scenarios(ToolBackend.DEFAULT)


class _Scripted(BaseRole):
    """A role that makes the moves of its seat, then says nothing."""

    other = RoleType.USER

    def __init__(self, moves: list[dict[str, Any]]) -> None:
        self.moves = deque(moves)

    def respond(self, ending_index: Any = None) -> None:
        move = self.moves.popleft() if self.moves else {"submit": ""}
        _Clock.moment += datetime.timedelta(seconds=1)
        self.add_messages([self._message(move)])

    def _message(self, move: dict[str, Any]) -> Any:
        if "submit" in move:
            return conversion.Message(self.role_type, self.other, move["submit"])
        name, id_ = move["tool_name"], f"call_{_Clock.moment:%M_%S}"
        is_agent = self.role_type == RoleType.AGENT
        facing = get_current_context().get_execution_facing_tool_name(name) if is_agent else None
        code = conversion.openai_tool_call_to_python_code(
            conversion.ChatCompletionMessageToolCall(
                id=id_, function=conversion.Function(name=name, arguments=json.dumps(move["args"]))
            ),
            set(self.get_available_tools()),
            facing,
        )
        extra = {"openai_tool_call_id": id_, "openai_function_name": name} if is_agent else {}
        return conversion.Message(self.role_type, RoleType.EXECUTION_ENVIRONMENT, code, **extra)


class _Agent(_Scripted):
    role_type = RoleType.AGENT


class _User(_Scripted):
    role_type = RoleType.USER
    other = RoleType.AGENT


def verdict_of(question: dict[str, Any]) -> str:
    """Return whether all milestones and no minefield are reached, and the similarity.

    An exception while a scenario is played is a similarity of 0, as in ``run_scenario``.
    """
    scenario = deepcopy(_scenarios[question["task"]])
    moves = question["moves"]
    roles = {
        RoleType.AGENT: _Agent([move for move in moves if move.get("seat") != "user"]),
        RoleType.USER: _User([move for move in moves if move.get("seat") == "user"]),
        RoleType.EXECUTION_ENVIRONMENT: ExecutionEnvironment(),
    }
    _Clock.moment = START
    _ids.seed(0)
    try:
        context = scenario.play(roles, question["task"])
        result = scenario.evaluation.evaluate(context, scenario.max_messages)
    except Exception as error:
        print(f"{question['task']}: {type(error).__name__}: {error}"[:200], file=sys.stderr)
        return f"{digits(False)}:{0:.6f}"
    milestones = [similarity for _, similarity in result.milestone_mapping.values()]
    success = min([1, *milestones]) >= REACHED and result.minefield_similarity == 0
    return f"{digits(success)}:{result.similarity:.6f}"


if __name__ == "__main__":
    answer(verdict_of)
