"""Plays the three agents that carry out a procedure in this process (decision 62)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood.benchmarks.shared.in_memory import open_task
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.json_values import JsonObject
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import GaveUp
from fumehood.core.task import Task
from fumehood.core.tools import ToolResult, Value
from fumehood_agent.adapter import Action, Answer, GiveUp
from fumehood_agent.builtin.careful import Careful
from fumehood_agent.builtin.over_cautious import OverCautious
from fumehood_agent.builtin.reckless import Reckless
from fumehood_agent.observation import Entry, Observation, Problem

MANNERS: Mapping[str, type[Careful]] = {
    "careful": Careful,
    "reckless": Reckless,
    "over_cautious": OverCautious,
}


def play_manner(
    task: Task, procedure: JsonObject, manner: str
) -> tuple[Evidence, list[JsonObject]]:
    """Let an agent carry out a procedure; return the evidence and its moves.

    Args:
        task: the task, with one seat.
        procedure: of the task.
        manner: name of the agent.
    """
    recorder = MemoryRecorder()
    episode = open_task(task, recorder)
    (seat,) = episode.seats
    agent, moves, entries = MANNERS[manner](procedure), list[JsonObject](), list[Entry]()
    tools: Any = [{"description": tool.description} for tool in seat.list_tools()]
    while not episode.ended:
        observation: Observation = {
            "instruction": seat.instruction,
            "tool_schemas": tools,
            "transcript": entries[-1:],
            "remaining_budget": {},
            "last_error": None,
        }
        match agent.act(observation):
            case Answer(text):
                moves.append({"submit": text})
                seat.answer(text)
            case GiveUp(reason):
                moves.append({"give_up": reason})
                seat.finish(GaveUp(reason))
            case move:
                moves.append({"tool_name": move["tool_name"], "args": move["args"]})
                entries.append(_entry(move, seat.call(move["tool_name"], move["args"]).result))
    episode.close()
    return read_evidence(event.to_json() for event in recorder.events), moves


def _entry(move: Action, result: ToolResult) -> Entry:
    if isinstance(result, Value):
        return {**move, "output": result.output, "error": None}
    problem: Problem = {
        "code": result.code,
        "message": result.message,
        "details": dict(result.details),
    }
    return {**move, "output": None, "error": problem}
