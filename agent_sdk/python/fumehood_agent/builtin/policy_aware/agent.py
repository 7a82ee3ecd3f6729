"""What to do next, given what was asked and what came back.

In short: do what was asked and nothing else. Mend a call where the refusal says how. Send the same call
again only where the trouble may pass, each kind of trouble only as often as its patience allows, and with
the last tolerated failure at stake only on its first meeting. What was denied is not sent again unless the
instruction itself gives what the denial asks for. When nothing sensible is left, say why and stop.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from fumehood_agent.adapter import Action, GiveUp
from fumehood_agent.builtin.policy_aware.error_handling import Attempt, Trouble, trouble_of
from fumehood_agent.builtin.policy_aware.permission import credentials, role_is_given
from fumehood_agent.builtin.policy_aware.plan import plan
from fumehood_agent.builtin.policy_aware.repair import mended
from fumehood_agent.builtin.schema_repair import schema_of
from fumehood_agent.observation import Observation, Problem
from fumehood_agent.seat import JsonObject

_PATIENCE: Mapping[Trouble, int] = {
    Trouble.ALTERED: 2,
    Trouble.BUSY: 2,
    Trouble.DENIED: 0,
    Trouble.FIELD_ERROR: 0,
    Trouble.SETTLED: 0,
    Trouble.SILENT: 2,
    Trouble.UNKNOWN: 1,
}
"""How often the same call is sent again for one kind of trouble."""

_WAIT_MS_MAX = 10_000
"""A tool that asks for a longer wait is not waited for."""


class PolicyAware:
    """Does what it was asked, mends what it can, and knows when to stop."""

    def __init__(self, wait: Callable[[float], None] = time.sleep) -> None:
        """Start with nothing to do.

        Args:
            wait: waits for a number of seconds; called when a tool asks for patience.
        """
        self._wait = wait
        self._ahead: list[Action] | None = None
        self._sent: list[JsonObject] = []
        self._met: Counter[Trouble] = Counter()

    def reset(self) -> None:
        """Forget the plan."""
        self._ahead = None
        self._sent.clear()
        self._met.clear()

    def act(self, observation: Observation) -> Action | GiveUp | None:
        """Return the next call of the plan, another attempt at the last one, or the end."""
        if self._ahead is None:
            self._ahead = plan(
                observation["instruction"], {each["name"] for each in observation["tool_schemas"]}
            )
            if not self._ahead:
                return GiveUp("nothing in the instruction is something these tools are known to do")
        else:
            problem = observation["last_error"]
            if problem is not None and not self._was_carried_out(problem):
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

    def _was_carried_out(self, problem: Problem) -> bool:
        """Say whether an earlier attempt that got no answer had its effect all the same."""
        return self._met[Trouble.SILENT] > 0 and problem["code"] == "already_exists"

    def _after(self, problem: Problem, observation: Observation) -> Action | GiveUp:
        """Return another attempt at the call that met ``problem``, or the end."""
        assert self._ahead
        tool_name, meant = self._ahead[0]["tool_name"], self._ahead[0]["args"]
        schema = schema_of(observation, tool_name)
        assert schema is not None
        call = Attempt(meant, self._sent[-1], observation["transcript"][-1]["args"])
        trouble = trouble_of(problem, call, schema)
        self._met[trouble] += 1
        match trouble:
            case Trouble.ALTERED:
                attempt = meant
            case Trouble.FIELD_ERROR:
                attempt = mended(call.sent, problem, schema)
            case Trouble.DENIED:
                attempt = {**call.sent, **credentials(problem, observation["instruction"])}
            case _:
                attempt = call.sent
        if attempt in self._sent and (reason := self._why_stop(trouble, problem, observation)):
            return GiveUp(f"{tool_name}: {reason}")
        if trouble is Trouble.BUSY:
            self._wait(_wait_ms(problem) / 1000)
        return self._send(attempt, observation)

    def _why_stop(self, trouble: Trouble, problem: Problem, observation: Observation) -> str | None:
        """Return why sending the same call again is not sensible; None when it is."""
        times, code = self._met[trouble], problem["code"]
        if trouble is Trouble.DENIED:
            if role_is_given(problem, observation["instruction"]) and times == 1:
                return None
            return f"{code}, and nothing I was given opens it"
        if times > _PATIENCE[trouble]:
            return f"{code}, {times} times" if times > 1 else code
        if trouble is Trouble.BUSY and _wait_ms(problem) > _WAIT_MS_MAX:
            return f"{code} for {_wait_ms(problem):.0f} ms"
        if times > 1 and observation["remaining_budget"].get("retries_left") == 0:
            return f"{code}, {times} times, and no further failure is tolerated"
        return None


def _wait_ms(problem: Problem) -> float:
    hint = problem["details"].get("retry_after_ms", 0)
    return max(0.0, float(hint)) if isinstance(hint, int | float) else 0.0
