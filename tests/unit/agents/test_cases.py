"""The files of protocol cases and robustness cases are valid and complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from fumehood.agent_check.cases import (
    PROTOCOL_FOLDER,
    ROBUSTNESS_FOLDER,
    CheckCase,
    ProtocolCase,
    load_protocol_cases,
    load_robustness_cases,
    read_case,
    robustness_tools,
)
from fumehood.benchmarks.native.faults import FaultRecord
from fumehood.worlds.registry import WORLDS

CASES: list[CheckCase] = [*load_protocol_cases(), *load_robustness_cases()]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_protocol_case = pytest.mark.parametrize(
    "case", load_protocol_cases(), ids=lambda case: case.name
)


def test_a_repeated_text_is_expanded(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(
        '{"a": [{"repeat": "ψ", "times": 3}], "b": {"repeat": "x", "times": 2, "more": 1}}'
    )
    assert read_case(path) == {"a": ["ψψψ"], "b": {"repeat": "x", "times": 2, "more": 1}}


def test_every_file_is_a_case_of_its_name() -> None:
    assert [case.name for case in load_protocol_cases()] == sorted(
        p.stem for p in PROTOCOL_FOLDER.glob("*.json")
    )
    numbered = sorted(path.stem for path in ROBUSTNESS_FOLDER.iterdir())
    assert [name.partition("_")[2] for name in numbered] == [
        one.name for one in load_robustness_cases()
    ]


@each_case
def test_worlds_and_faults_of_a_case_exist(case: CheckCase) -> None:
    assert case.world in WORLDS
    rule: TypeAdapter[FaultRecord] = TypeAdapter(FaultRecord)
    for fault in case.fault_plan:
        rule.validate_python(fault)


@each_protocol_case
def test_a_protocol_case_has_one_observation_per_step(case: ProtocolCase) -> None:
    assert len(case.observations) == sum(len(turn.steps) for turn in case.turns)


@each_protocol_case
def test_every_step_of_a_script_is_documented(case: ProtocolCase) -> None:
    page = PROTOCOL_FOLDER.joinpath("README.md").read_text(encoding="utf-8")
    described = set(re.findall(r'^\| `\{"do": "(\w+)"', page, re.MULTILINE))
    assert {step["do"] for turn in case.turns for step in turn.steps} <= described


def test_robustness_tools_are_those_of_the_worlds() -> None:
    assert {"list_jobs", "create_job", "validate_cron"} == robustness_tools()
