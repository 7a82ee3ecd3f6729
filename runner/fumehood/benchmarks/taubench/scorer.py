"""Computes τ-bench's own reward from an episode's calls and messages."""

from __future__ import annotations

from collections.abc import Iterator

from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.native import NativeScorer, task_metrics
from fumehood.third_party.process import NO_ANSWER, checker

OP = "taubench"


class TauBench:
    """Scorer of τ-bench: success is a reward of 1 after the user or a tool ended the
    conversation."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return τ-bench's score."""
        criterion = gold.criterion(OP)
        if criterion is None:
            return NativeScorer().score(task, gold, evidence)
        checks = {"ended": evidence.final_state.get("ended") is not None}
        if checks["ended"]:
            where: JsonObject = {
                key: task.initial_state[key] for key in ("folder", "domain", "split")
            }
            steps = list(_steps(task, evidence))
            question: JsonObject = {
                **where,
                "op": "score",
                "task": criterion["task"],
                "steps": steps,
            }
            checks["reward"] = checker(OP).ask(question)["reward"] == 1.0
        success = all(checks.values())
        return Score(success, checks, task_metrics(task, evidence, success))


def _steps(task: Task, evidence: Evidence) -> Iterator[Json]:
    """Yield the agent's calls and messages in order, as actions of the original."""
    agent = task.seats[0].name
    messages = [message for message in evidence.submissions if message.seat == agent]
    for received in evidence.received_calls():
        while messages and messages[0].calls_before <= received.position:
            yield ["respond", {"content": messages.pop(0).text}]
        if not _had_no_effect(received.call):
            yield [received.call.tool_name, dict(received.arguments)]
    for message in messages:
        yield ["respond", {"content": message.text}]


def _had_no_effect(call: AnsweredCall) -> bool:
    """Return whether the call ended the process that executed it, and therefore changed nothing."""
    return call.failure is not None and call.failure.code == NO_ANSWER
