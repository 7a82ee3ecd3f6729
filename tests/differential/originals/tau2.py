"""Scores trajectories with a checkout of tau2-bench: its environments and evaluators."""

import json
import os
import sys
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from questions import answer, digits

_CHECKOUT = Path(os.environ["FUMEHOOD_ORIGINALS"], "tau2-bench")
os.environ["TAU2_DATA_DIR"] = str(_CHECKOUT / "data")
sys.path.insert(0, str(_CHECKOUT / "src"))


class _Absent(ModuleType):
    """A module for models, of which nothing is used here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for _name in ("litellm", "litellm.caching", "litellm.caching.caching", "litellm.main"):
    sys.modules[_name] = _Absent(_name)
    vars(sys.modules[_name])["__path__"] = []

from loguru import logger  # noqa: E402

logger.remove()

from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage  # noqa: E402
from tau2.data_model.tasks import RewardType, Task  # noqa: E402
from tau2.evaluator.evaluator_action import ActionEvaluator  # noqa: E402
from tau2.evaluator.evaluator_communicate import CommunicateEvaluator  # noqa: E402
from tau2.evaluator.evaluator_env import EnvironmentEvaluator  # noqa: E402
from tau2.registry import registry  # noqa: E402

STEPS_MAX, ERRORS_MAX = 200, 10
"""Source: ``config.DEFAULT_MAX_STEPS`` and ``DEFAULT_MAX_ERRORS``."""
STOPS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")


@cache
def _tasks(file: str) -> dict[str, Any]:
    if Path(file).is_dir():
        files = sorted(Path(file).glob("task_*.json"))
        records = [json.loads(each.read_text()) for each in files]
    else:
        records = json.loads(Path(file).read_text())
    return {record["id"]: Task.model_validate(record) for record in records}


def verdict_of(question: dict[str, Any]) -> str:
    """Return whether the reward is 1; "ungraded" if a judge decides a part of it."""
    task, solo = _tasks(question["file"])[question["task"]], question["solo"] == "yes"
    basis = set(task.evaluation_criteria.reward_basis)
    constructor = registry.get_env_constructor(question["domain"])
    options = _options(question["domain"], task)
    environment = constructor(solo_mode=solo, **options)
    initial = task.initial_state
    history = (initial.message_history if initial else None) or []
    environment.set_state(
        initial.initialization_data if initial else None,
        initial.initialization_actions if initial else None,
        history,
    )
    messages, stopped = [*history], solo
    steps = errors = 0
    for number, move in enumerate(question["moves"] if solo else _in_turns(question["moves"])):
        by_user = move.get("seat") == "user"
        kind, role = (UserMessage, "user") if by_user else (AssistantMessage, "assistant")
        steps += 1 if "submit" in move else 2
        if "submit" in move:
            if not solo:
                # In solo mode, text only ends the work.
                messages.append(kind(role=role, content=move["submit"]))
            if by_user and any(stop in move["submit"] for stop in STOPS):
                stopped = True
                break
            continue
        call = ToolCall(
            id=str(number), name=move["tool_name"], arguments=move["args"], requestor=role
        )
        messages += [kind(role=role, tool_calls=[call]), environment.get_response(call)]
        errors += messages[-1].error
        if errors >= ERRORS_MAX:
            return "0"
    if not stopped or steps >= STEPS_MAX:
        return "0"
    reward = EnvironmentEvaluator.calculate_reward(
        constructor, task, messages, solo, options
    ).reward
    if RewardType.COMMUNICATE in basis:
        reward *= CommunicateEvaluator.calculate_reward(task, messages).reward
    if RewardType.ACTION in basis:
        reward *= ActionEvaluator.calculate_reward(task, messages).reward
    if reward == 1 and RewardType.NL_ASSERTION in basis and task.evaluation_criteria.nl_assertions:
        return "ungraded"
    return digits(reward == 1)


def _options(domain: str, task: Any) -> dict[str, Any]:
    """Return the arguments of a domain's environment. Source: ``tau2.runner.build``.

    Searching needs model clients, and changes no data.
    """
    if domain != "banking_knowledge":
        return {}
    calls = [each for each in task.evaluation_criteria.actions or () if each.arguments]
    logged = {call.arguments.get("agent_tool_name") for call in calls}
    return {"read_log_allowlist": logged - {None}, "retrieval_variant": "no_knowledge"}


def _in_turns(moves: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the moves in the order of the turns: a text passes the turn to the other seat."""
    left = {
        by_user: deque(move for move in moves if (move.get("seat") == "user") == by_user)
        for by_user in (True, False)
    }
    turn = True
    while left[turn]:
        move = left[turn].popleft()
        yield move
        turn ^= "submit" in move


if __name__ == "__main__":
    answer(verdict_of)
