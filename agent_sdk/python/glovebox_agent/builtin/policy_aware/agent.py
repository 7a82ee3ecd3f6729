"""What to do next, given what was asked and what came back.

In short: do what was asked and nothing else. Send a call again only where the trouble may pass or was
mended, each kind of trouble only as often as its patience allows, and with the last tolerated failure at
stake only where it is likely to pass. What was denied is not sent again, unless the instruction grants
the very role that the denial asks for. When nothing sensible is left, say why and stop.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping

from glovebox_agent.adapter import Action, GiveUp
from glovebox_agent.builtin.policy_aware.plan import plan
from glovebox_agent.builtin.policy_aware.trouble import Trouble, trouble_of
from glovebox_agent.builtin.schema_repair import mend, schema_of
from glovebox_agent.observation import Observation, Problem

_PATIENCE: Mapping[Trouble, int] = {
    Trouble.ALTERED: 2,
    Trouble.BUSY: 2,
    Trouble.DENIED: 1,
    Trouble.MISFIT: 2,
    Trouble.SETTLED: 0,
    Trouble.SILENT: 2,
    Trouble.UNKNOWN: 1,
}
"""How often one kind of trouble with one call is met by another attempt."""

_WAIT_MS_MAX = 10_000
"""A longer wait than this is not worth the work."""

_COMMITTED = {"already_exists"}
"""Codes that, after an attempt without an answer, say that it had been carried out."""


class PolicyAware:
    """Does what it was asked, mends what it can, and knows when to stop."""

    def __init__(self, wait: Callable[[float], None] = time.sleep) -> None:
        """Start with nothing to do.

        Args:
            wait: waits for a number of seconds; called when a tool asks for patience.
        """
        self._wait = wait
        self._ahead: list[Action] | None = None
        self._met: Counter[Trouble] = Counter()

    def reset(self) -> None:
        """Forget the plan."""
        self._ahead = None
        self._met.clear()

    def act(self, observation: Observation) -> Action | GiveUp | None:
        """Return the next call of the plan, another attempt at the last one, or the end."""
        if self._ahead is None:
            tools = {schema["name"] for schema in observation["tool_schemas"]}
            self._ahead = plan(observation["instruction"], tools)
            if not self._ahead:
                return GiveUp("nothing in the instruction is something these tools are known to do")
        elif (problem := observation["last_error"]) is not None:
            move = self._after_trouble(problem, observation)
            if move is not None:
                return move if isinstance(move, GiveUp) else self._send(move, observation)
            self._next_item()
        else:
            self._next_item()
        return self._send(self._ahead[0], observation) if self._ahead else None

    def _next_item(self) -> None:
        assert self._ahead
        del self._ahead[0]
        self._met.clear()

    def _send(self, call: Action, observation: Observation) -> Action | GiveUp:
        left = observation["remaining_budget"]
        if left.get("tool_calls_left") == 0 or left.get("steps_left") == 0:
            return GiveUp("no call is left for what remains to be done")
        assert self._ahead
        self._ahead[0] = call
        return call

    def _after_trouble(self, problem: Problem, observation: Observation) -> Action | GiveUp | None:
        """Return another attempt, the end, or None when the call turns out to have been carried out."""
        assert self._ahead
        call, last = self._ahead[0], observation["transcript"][-1]
        schema = schema_of(observation, call["tool_name"])
        assert schema is not None
        trouble = trouble_of(problem, call["args"], last["args"], schema)
        if self._met[Trouble.SILENT] and problem["code"] in _COMMITTED:
            return None
        self._met[trouble] += 1
        if reason := self._why_stop(trouble, problem, observation):
            return GiveUp(f"{call['tool_name']}: {reason}")
        if trouble is Trouble.BUSY:
            self._wait(_wait_ms(problem) / 1000)
        if trouble is Trouble.MISFIT:
            mended = mend(call["args"], problem, schema)
            if mended == call["args"]:
                return GiveUp(f"{call['tool_name']}: {problem['code']}, and nothing to mend")
            return {"tool_name": call["tool_name"], "args": mended}
        return call

    def _why_stop(self, trouble: Trouble, problem: Problem, observation: Observation) -> str | None:
        """Return why no further attempt is sensible; None when one is."""
        times = self._met[trouble]
        if trouble is Trouble.DENIED and not _granted(problem, observation["instruction"]):
            return f"denied, and the role {_role(problem)} was not given to me"
        if times > _PATIENCE[trouble]:
            return f"{problem['code']} again, {times} times" if times > 1 else problem["code"]
        if trouble is Trouble.BUSY and _wait_ms(problem) > _WAIT_MS_MAX:
            return f"busy for {_wait_ms(problem)} ms"
        if observation["remaining_budget"].get("retries_left") == 0 and not _may_pass(trouble, times):
            return f"{problem['code']}, and no failure is tolerated any more"
        return None


def _may_pass(trouble: Trouble, times: int) -> bool:
    return times == 1 and trouble in {Trouble.ALTERED, Trouble.BUSY, Trouble.SILENT, Trouble.MISFIT}


def _wait_ms(problem: Problem) -> float:
    hint = problem["details"].get("retry_after_ms", 0)
    return max(0.0, float(hint)) if isinstance(hint, int | float) else 0.0


def _role(problem: Problem) -> str:
    return str(problem["details"].get("required_role") or "it needs")


def _granted(problem: Problem, instruction: str) -> bool:
    """Say whether the instruction gives the very role that a denial asks for."""
    role = problem["details"].get("required_role")
    if not isinstance(role, str) or not role:
        return False
    given = rf"\b(?:as|you are|role(?: is| of)?:?)\s+(?:an?\s+|the\s+)?{re.escape(role)}\b"
    return re.search(given, instruction, re.IGNORECASE) is not None
