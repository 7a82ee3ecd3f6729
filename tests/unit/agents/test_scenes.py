"""Vectors and conditions are what their files say, and their files say what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from fumehood.agent_check.protocol_case import VECTORS_FOLDER, Vector, load_vectors
from fumehood.agent_check.robustness_case import (
    CONDITIONS_FOLDER,
    load_conditions,
    tools_of_conditions,
)
from fumehood.agent_check.scene import Scene, read_record
from fumehood.benchmarks.native.faults import FaultRecord
from fumehood.worlds.registry import WORLDS
from tests.architecture.project import ROOT

SCENES: list[Scene] = [*load_vectors(), *load_conditions()]

each_scene = pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
each_vector = pytest.mark.parametrize("vector", load_vectors(), ids=lambda vector: vector.name)


def test_a_long_text_is_written_in_short(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(
        '{"a": [{"repeat": "ψ", "times": 3}], "b": {"repeat": "x", "times": 2, "more": 1}}'
    )
    assert read_record(path) == {"a": ["ψψψ"], "b": {"repeat": "x", "times": 2, "more": 1}}


def test_every_file_is_a_scene_of_its_name() -> None:
    assert [vector.name for vector in load_vectors()] == sorted(
        p.stem for p in VECTORS_FOLDER.iterdir()
    )
    numbered = sorted(path.stem for path in CONDITIONS_FOLDER.iterdir())
    assert [name.partition("_")[2] for name in numbered] == [one.name for one in load_conditions()]


@each_scene
def test_a_scene_has_a_world_and_faults_that_there_are(scene: Scene) -> None:
    assert scene.world in WORLDS
    rule: TypeAdapter[FaultRecord] = TypeAdapter(FaultRecord)
    for fault in scene.fault_plan:
        rule.validate_python(fault)


@each_vector
def test_a_vector_has_an_observation_a_step(vector: Vector) -> None:
    assert len(vector.observations) == sum(len(turn.steps) for turn in vector.turns)


@each_vector
def test_a_script_has_no_step_that_is_not_described(vector: Vector) -> None:
    page = (ROOT / "docs" / "agent_conformance.md").read_text(encoding="utf-8")
    described = set(re.findall(r'^\| `\{"do": "(\w+)"', page, re.MULTILINE))
    assert {step["do"] for turn in vector.turns for step in turn.steps} <= described


def test_the_tools_of_conditions_are_those_of_their_worlds() -> None:
    assert {"list_jobs", "create_job", "validate_cron"} == tools_of_conditions()
