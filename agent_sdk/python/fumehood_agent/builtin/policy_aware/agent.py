"""Selects the next action from the plan and from the last error.

The agent does what the instruction asks and nothing else. It repairs a call if the error states
how. It repeats a call only if the error may be temporary, and for each kind of error only a limited
number of times; only once if no further failure is tolerated. It repeats a denied call only if the
instruction contains what the denial requires. When no useful action is left, it gives up and states
why.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from fumehood_agent.adapter import Action, GiveUp
from fumehood_agent.builtin.policy_aware.error_handling import Attempt, ErrorKind, classify_error
from fumehood_agent.builtin.policy_aware.permission import credentials, role_is_given
from fumehood_agent.builtin.policy_aware.plan import plan
from fumehood_agent.builtin.policy_aware.repair import repair_arguments
from fumehood_agent.builtin.schema_repair import schema_of
from fumehood_agent.observation import Observation, Problem
from fumehood_agent.seat import JsonObject

_REPETITIONS_MAX: Mapping[ErrorKind, int] = {
    ErrorKind.ALTERED: 2,
    ErrorKind.BUSY: 2,
    ErrorKind.DENIED: 0,
    ErrorKind.FIELD_ERROR: 0,
    ErrorKind.SETTLED: 0,
    ErrorKind.SILENT: 2,
    ErrorKind.UNKNOWN: 1,
}
"""How often the same call is repeated after one kind of error."""

_WAIT_MS_MAX = 10_000
"""The agent does not wait longer than this for a tool."""


class PolicyAware:
    """Follows its instruction, repairs calls, and stops in time."""

    def __init__(self, wait: Callable[[float], None] = time.sleep) -> None:
        """Create the agent; it calls ``wait`` with the seconds of a requested delay."""
        self._wait = wait
        self._ahead: list[Action] | None = None
        self._sent: list[JsonObject] = []
        self._met: Counter[ErrorKind] = Counter()

    def reset(self) -> None:
        """Forget the plan."""
        self._ahead = None
        self._sent.clear()
        self._met.clear()

    def act(self, observation: Observation) -> Action | GiveUp | None:
        """Return the next call of the plan, another attempt at the last one, or the end."""
        if self._ahead is None:
            self._ahead = plan(
                observation["instruction"],
                {schema["name"] for schema in observation["tool_schemas"]},
            )
            if not self._ahead:
                return GiveUp("nothing in the instruction is something these tools are known to do")
        else:
            problem = observation["last_error"]
            if problem is not None and not self._was_executed(problem):
                return self._after(problem, observation)
            del self._ahead[0]
            self._sent.clear()
            self._met.clear()
        return self._send(self._ahead[0]["args"], observation) if self._ahead else None

    def _send(self, arguments: JsonObject, observation: Observation) -> Action | GiveUp:
        left = observation["remaining_budget"]
        if left.get("tool_calls_left") == 0 or left.get("steps_left") == 0:
            return GiveUp("no call is left for what remains to be done")
        self._sent.append(arguments)
        assert self._ahead
        return {"tool_name": self._ahead[0]["tool_name"], "args": arguments}

    def _was_executed(self, problem: Problem) -> bool:
        """Return whether an earlier attempt without a reply was executed nevertheless."""
        return self._met[ErrorKind.SILENT] > 0 and problem["code"] == "already_exists"

    def _after(self, problem: Problem, observation: Observation) -> Action | GiveUp:
        """Return another attempt at the call that failed with ``problem``, or the end."""
        assert self._ahead
        tool_name, meant = self._ahead[0]["tool_name"], self._ahead[0]["args"]
        schema = schema_of(observation, tool_name)
        assert schema is not None
        call = Attempt(meant, self._sent[-1], observation["transcript"][-1]["args"])
        kind = classify_error(problem, call, schema)
        self._met[kind] += 1
        match kind:
            case ErrorKind.ALTERED:
                attempt = meant
            case ErrorKind.FIELD_ERROR:
                attempt = repair_arguments(call.sent, problem, schema)
            case ErrorKind.DENIED:
                attempt = {**call.sent, **credentials(problem, observation["instruction"])}
            case _:
                attempt = call.sent
        if attempt in self._sent and (reason := self._why_stop(kind, problem, observation)):
            return GiveUp(f"{tool_name}: {reason}")
        if kind is ErrorKind.BUSY:
            self._wait(_wait_ms(problem) / 1000)
        return self._send(attempt, observation)

    def _why_stop(self, kind: ErrorKind, problem: Problem, observation: Observation) -> str | None:
        """Return why the same call should not be repeated; None if it should."""
        times, code = self._met[kind], problem["code"]
        if kind is ErrorKind.DENIED:
            if role_is_given(problem, observation["instruction"]) and times == 1:
                return None
            return f"{code}, and nothing I was given opens it"
        if times > _REPETITIONS_MAX[kind]:
            return f"{code}, {times} times" if times > 1 else code
        if kind is ErrorKind.BUSY and _wait_ms(problem) > _WAIT_MS_MAX:
            return f"{code} for {_wait_ms(problem):.0f} ms"
        if times > 1 and observation["remaining_budget"].get("retries_left") == 0:
            return f"{code}, {times} times, and no further failure is tolerated"
        return None


def _wait_ms(problem: Problem) -> float:
    hint = problem["details"].get("retry_after_ms", 0)
    return max(0.0, float(hint)) if isinstance(hint, int | float) else 0.0
