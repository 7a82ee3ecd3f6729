"""Computes ToolSandbox's similarity from an episode's calls and messages."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from fumehood.benchmarks.toolsandbox.names import METRICS
from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.native import NativeScorer, task_metrics
from fumehood.third_party.process import NO_ANSWER, checker

OP = "toolsandbox"
REACHED = 0.5
"""Least similarity of a milestone that counts as reached. The original has no success; states and
calls have a similarity of 0 or 1, and only texts have values between."""
UNKNOWN_TOOL = "unknown_tool"


class ToolSandbox:
    """Scorer of ToolSandbox: success is that all milestones and no minefield are reached."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the original's similarity as a metric, and a check of each milestone."""
        if gold.criterion(OP) is None:
            return NativeScorer().score(task, gold, evidence)
        question: JsonObject = {key: task.initial_state[key] for key in ("folder", "task")}
        result: Any = checker(OP).ask({**question, "op": "score", "moves": _moves(evidence)})
        checks = {
            f"milestone_{number}": similarity >= REACHED
            for number, similarity in enumerate(result["milestones"])
        }
        checks["no_minefield"] = result["minefield_similarity"] == 0
        checks["no_exception"] = "error" not in result
        success = all(checks.values())
        metrics = {name: float(result[name]) for name in METRICS}
        return Score(success, checks, {**task_metrics(task, evidence, success), **metrics})


def _moves(evidence: Evidence) -> list[Json]:
    """Return the calls and messages of both seats in order."""
    moves: list[tuple[tuple[int, bool], Json]] = [
        ((each.calls_before, False), {"seat": each.seat, "submit": each.text})
        for each in evidence.submissions
    ]
    # The original ends with an exception when it receives a call of an unknown tool.
    for each in evidence.received_calls(lambda call: _code(call) == UNKNOWN_TOOL):
        if _code(each.call) != NO_ANSWER:
            move: JsonObject = {"seat": each.call.seat, "tool_name": each.call.tool_name}
            moves.append(((each.position, True), {**move, "args": dict(each.arguments)}))
    return [move for _, move in sorted(moves, key=itemgetter(0))]


def _code(call: AnsweredCall) -> str:
    return call.failure.code if call.failure is not None else ""
