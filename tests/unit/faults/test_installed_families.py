"""Task files and --faults files can name what another package installs as entry points."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.native.tasks import load_cases
from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.task import Suite
from fumehood.layers.faults.registry import FAMILIES, TOOLMISUSE_FAMILIES
from fumehood.orchestrator.added_faults import fault_schema, with_faults
from fumehood.turn_policies.registry import TURN_POLICIES

MODULE = '''
from dataclasses import dataclass, field
from fumehood.core.tools import Failure, FailureKind
from fumehood.layers.faults.family import FaultFamily, described
from fumehood.turn_policies.policies import Dialogue

@dataclass(frozen=True, slots=True)
class OutagePayload:
    """What the agent reads."""

    region: str = field(default="eu", metadata=described("Name of the region."))

class Blackout(FaultFamily):
    """Answers unavailable in place of the tool."""

    order = 10
    payload = OutagePayload

    def around(self, call, forward):
        if not self.fault.fires_on(call):
            return forward(call)
        fired = (self.fault.rule.fired(),)
        return Failure(FailureKind.FAULT, "unavailable", "Outage.", {}, fired)

class Duet(Dialogue):
    """A dialogue under another name."""
'''
RECORD: dict[str, Any] = {
    "format": "fumehood.task/1",
    "task_id": "mine",
    "world": "files",
    "instruction": "Write 'x' to /a.txt.",
    "initial_state": {"files": {}},
    "budget": {"steps": 4, "calls": 4, "retries": 1},
    "criteria": [{"op": "map_value_equals", "path": "files", "key": "/a.txt", "value": "x"}],
    "solvable": True,
    "oracle": [
        {"tool_name": "write_file", "args": {"path": "/a.txt", "content": "x"}},
        {"submit": ""},
    ],
}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path) -> Iterator[None]:
    """A package with a fault family and a turn policy."""
    info = tmp_path / "blackouts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: blackouts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fumehood.fault_families]\nblackout = installed_blackouts:Blackout\n"
        "[fumehood.turn_policies]\nduet = installed_blackouts:Duet\n"
    )
    (tmp_path / "installed_blackouts.py").write_text(MODULE)
    sys.path.insert(0, str(tmp_path))
    yield
    sys.path.remove(str(tmp_path))
    sys.modules.pop("installed_blackouts", None)
    for registry in (FAMILIES, TOOLMISUSE_FAMILIES):
        registry._loaded.pop("blackout", None)
    TURN_POLICIES._loaded.pop("duet", None)


def _load(tmp_path: Path, **changes: Any) -> Suite:
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps({**RECORD, **changes}) + "\n")
    return Suite("mine", tuple(load_cases(file)))


def test_a_task_names_an_installed_family(tmp_path: Path) -> None:
    plan = [{"family": "blackout", "trigger": {"on_nth_call": 1}, "payload": {"region": "us"}}]
    (case,) = _load(tmp_path, fault_plan=plan).cases
    evidence = play_in_memory(case.task, case.gold.oracle or ())
    assert evidence.fire_counts == (1,)
    failure = evidence.calls[0].failure
    assert failure is not None
    assert failure.code == "unavailable"


def test_the_payload_of_an_installed_family_is_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fault_plan\[0\].payload.regoin.*did you mean 'region'"):
        _load(tmp_path, fault_plan=[{"family": "blackout", "payload": {"regoin": "us"}}])


def test_a_file_of_faults_names_an_installed_family(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("format: fumehood.faults/1\nfaults: [{family: blackout}]\n")
    (case,) = with_faults(_load(tmp_path), str(file)).cases
    assert play_in_memory(case.task, case.gold.oracle or ()).fire_counts == (1,)


def test_the_schema_includes_an_installed_family() -> None:
    assert '"blackout"' in json.dumps(fault_schema())


def test_a_task_names_an_installed_turn_policy(tmp_path: Path) -> None:
    seat = {"name": "user", "instruction": "Ask.", "budget": RECORD["budget"]}
    talk = {"rule": "duet", "settings": {"first": "user", "opening": "Hello!"}}
    (case,) = _load(tmp_path, seats=[seat], conversation=talk).cases
    assert case.task.conversation is not None
    assert case.task.conversation.rule == "duet"
    with pytest.raises(InputError, match="did you mean 'duet'"):
        _load(tmp_path, seats=[seat], conversation={**talk, "rule": "duett"})
