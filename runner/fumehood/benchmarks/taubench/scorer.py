"""τ-bench's own reward over the calls that reached its world and the words that were said to its user."""

from __future__ import annotations

from collections.abc import Iterator

from fumehood.benchmarks.bfcl.scorer import was_reached
from fumehood.core.errors import InfraError
from fumehood.core.evidence import Evidence, Exchange
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.native import NativeScorer, task_metrics
from fumehood.third_party.process import NO_ANSWER, checker

OP = "taubench"


class TauBench:
    """Success is a reward of 1 after the user, or a tool, has ended the conversation."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return τ-bench's verdict."""
        criterion = next((each for each in gold.criteria if each.get("op") == OP), None)
        if criterion is None:
            return NativeScorer().score(task, gold, evidence)
        checks = {"ended": evidence.final_state.get("ended") is not None}
        if checks["ended"]:
            where: JsonObject = {
                key: task.initial_state[key] for key in ("folder", "domain", "split")
            }
            steps = list(_steps(task, evidence))
            asked: JsonObject = {**where, "op": "judge", "task": criterion["task"], "steps": steps}
            try:
                checks["reward"] = checker(OP).ask(asked)["reward"] == 1.0
            except InfraError as failure:
                return Score(None, checks, {"ungraded": str(failure)})
        success = all(checks.values())
        return Score(success, checks, task_metrics(task, evidence, success))


def _steps(task: Task, evidence: Evidence) -> Iterator[Json]:
    """Yield calls and answers of the agent in order, as the original's actions."""
    agent = task.seats[0].name
    told = [one for one in evidence.said if one.seat == agent]
    for number, exchange in enumerate(evidence.exchanges):
        while told and told[0].calls_before <= number:
            yield ["respond", {"content": told.pop(0).text}]
        if was_reached(exchange) and not _was_lost(exchange):
            yield [exchange.tool_name, dict(exchange.delivered)]
    for one in told:
        yield ["respond", {"content": one.text}]


def _was_lost(exchange: Exchange) -> bool:
    """Tell whether a call has broken the process it was made in: nothing came of it, there or here."""
    return exchange.failure is not None and exchange.failure.code == NO_ANSWER
