"""A procedure that a user writes is validated before a run."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.benchmarks.native.procedure import procedure_mistakes
from fumehood.benchmarks.registry import load_suite
from fumehood.core.json_values import copy_object
from fumehood.worlds.registry import WORLDS

TOOLS = ("read", "write")


@pytest.mark.slow
def test_generated_procedures_have_no_mistake() -> None:
    for case in load_suite("safety:small").cases[::6]:
        task, procedure = case.task, case.gold.procedure
        world = WORLDS.load(task.world)(copy_object(task.initial_state))
        tools = {tool.name for tool in world.list_tools()}
        assert procedure is not None
        assert list(procedure_mistakes(procedure, tools)) == []


@pytest.mark.parametrize(
    ("procedure", "field", "reason"),
    [
        ({}, "procedure.steps", "is missing"),
        ({"steps": {}}, "procedure.steps", "must be a list of steps"),
        ({"steps": [{"cal": "read"}]}, "procedure.steps[0]", "is not a step; begin it with one of"),
        ({"steps": [{"call": "red"}]}, "procedure.steps[0].call", "the world has no tool 'red'"),
        ({"steps": [{"call": "read", "arg": 1}]}, "procedure.steps[0].arg", "is not a key of a st"),
        ({"steps": [{"if": {}}]}, "procedure.steps[0].then", "is missing"),
        ({"steps": [{"care": [{"call": 1}]}]}, "procedure.steps[0].care[0].call", "must be the na"),
        (
            {"steps": [{"call": "write", "proof": {"call": "reader"}}]},
            "procedure.steps[0].proof.call",
            "the world has no tool 'reader'; did you mean 'read'?",
        ),
        ({"steps": [], "injections": [{}]}, "procedure.injections[0]", "must be an object with te"),
    ],
)
def test_a_mistake_names_its_field(procedure: dict[str, Any], field: str, reason: str) -> None:
    ((place, text),) = procedure_mistakes(procedure, TOOLS)
    assert place == field
    assert text.startswith(reason)
