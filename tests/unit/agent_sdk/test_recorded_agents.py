"""The measuring-rod agents make the recorded calls, given the recorded observations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fumehood_agent import Agent
from fumehood_agent.builtin.instruction_parser import InstructionParser
from fumehood_agent.builtin.instruction_parser_no_recovery import InstructionParserNoRecovery
from fumehood_agent.builtin.schema_repair import SchemaRepair
from fumehood_agent.observation import Observation, tool_schema
from tests.golden import golden_file, golden_sample
from tests.unit.agent_sdk.memory_seat import TOOLS

AGENTS: dict[str, Callable[[], Agent]] = {
    "schema_repair": SchemaRepair,
    "instruction_parser": InstructionParser,
    "instruction_parser_no_recovery": InstructionParserNoRecovery,
}


def test_the_sample_is_reproduced_call_for_call() -> None:
    assert reproduce(golden_sample("toolmisusebench/agents.sample.jsonl")) == 24


def test_all_recorded_runs_are_reproduced_call_for_call() -> None:
    assert reproduce(golden_file("toolmisusebench/agents.jsonl")) == 200


@pytest.mark.parametrize("name", AGENTS)
def test_the_sample_contains_runs_of_every_agent(name: str) -> None:
    lines = golden_sample("toolmisusebench/agents.sample.jsonl").read_text().splitlines()
    assert name in {json.loads(line)["agent"] for line in lines}


def reproduce(path: Path) -> int:
    """Return the number of runs in ``path`` after checking each, argument order included."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for record in records:
        agent = AGENTS[record["agent"]]()
        agent.reset()
        made = [agent.act(observation) for observation in observations(record)]
        assert json.dumps(made) == json.dumps(expected_moves(record)), record["id"]
    return len(records)


def observations(record: dict[str, Any]) -> Iterator[Observation]:
    """Yield what the agent of ``record`` was shown each time it was asked."""
    task, expect = record["task"], record["expect"]
    budget = task["budget"]
    limits = {
        "steps_left": budget["max_steps"],
        "tool_calls_left": budget["max_tool_calls"],
        "retries_left": budget["max_retries"],
    }
    shown = [{"remaining_budget": limits, "last_error": None}, *expect["observations"]]
    for turn in range(len(expected_moves(record))):
        yield {
            "instruction": task["instruction"],
            "tool_schemas": [tool_schema(tool) for tool in TOOLS[task["domain"]]],
            "transcript": expect["transcript"][:turn],
            "remaining_budget": shown[turn]["remaining_budget"],
            "last_error": shown[turn]["last_error"],
        }


def expected_moves(record: dict[str, Any]) -> list[Any]:
    """Return the recorded calls, and None at the end where the agent itself stopped."""
    moves = list(record["expect"]["actions"])
    return [*moves, None] if record["expect"]["end"] == "no_action" else moves
