"""The numbers of random runs agree with the lines of their traces."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Suite, Task
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import RunReader
from fumehood.report.results import join_results
from fumehood.report.statistics.metrics import means
from fumehood.report.statistics.resources import WHOLE_EPISODE, spent, spreads
from fumehood.report.traces import read_traces
from fumehood_agent.in_process import InProcessSession
from tests.parts.memory_runs import play_run
from tests.property.report.rows import FAMILIES

INVALID = {"unknown_tool", "missing_required_arg", "unknown_argument", "invalid_argument_type"}

calls = st.tuples(
    st.sampled_from(["get_account", "update_account", "close_account", "no_such_tool"]),
    st.fixed_dictionaries(
        {}, optional={"id": st.sampled_from(["a1", "zz", 7]), "patch": st.just({"tier": "gold"})}
    ),
)
rules = st.tuples(
    st.sampled_from(FAMILIES),
    st.fixed_dictionaries({}, optional={"on_nth_call": st.integers(1, 4)}),
)


@st.composite
def tasks(draw: st.DrawFn, number: int) -> Case:
    plan = draw(st.lists(rules, max_size=3))
    budget = Budget(
        steps=draw(st.integers(1, 9)),
        calls=draw(st.integers(1, 9)),
        retries=draw(st.integers(0, 3)),
    )
    task = Task(
        task_id=f"task{number}",
        world="crud",
        harness_mode="toolmisuse",
        initial_state={"accounts": {"a1": {"id": "a1", "tier": "basic"}}},
        fault_plan=tuple(
            FaultRule(at, family, trigger) for at, (family, trigger) in enumerate(plan)
        ),
        seed=number,
        seats=(SeatSpec(instruction="Make a1 gold.", budget=budget),),
        tags={},
    )
    gold = Gold("toolmisuse", ({"op": "equals", "path": "accounts.a1.tier", "value": "gold"},))
    return Case(task, gold)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_means_equal_those_computed_from_the_lines_of_the_traces(data: st.DataObject) -> None:
    suite = Suite(
        "random", tuple(data.draw(tasks(number)) for number in range(data.draw(st.integers(1, 4))))
    )

    def player(seat: InProcessSession) -> None:
        for tool, arguments in data.draw(st.lists(calls, max_size=8)):
            if seat.call(tool, arguments).ended:
                return
        seat.submit()

    with TemporaryDirectory() as place:
        folder = play_run(Path(place) / "run", suite, {"player": player})
        found = {
            name: mean.value for name, mean in means(join_results(rescore(folder), suite)).items()
        }
        for name, expected in _obvious(folder).items():
            assert found[name] == (None if expected is None else pytest.approx(expected)), name
        _assert_resources_add_up(folder, suite)


def _obvious(folder: RunReader) -> dict[str, float | None]:
    columns: dict[str, list[float]] = {}
    for path in sorted((folder.path / "traces").rglob("*.jsonl")):
        for name, value in _of_one(_events(path)).items():
            if value is not None:
                columns.setdefault(name, []).append(float(value))
    return {name: sum(values) / len(values) for name, values in columns.items()}


def _of_one(events: list[dict[str, Any]]) -> dict[str, float | None]:
    made = [event for event in events if event["kind"] == "call"]
    codes = [event["failure"]["code"] if "failure" in event else None for event in made]
    shown = [
        event["failure"]["details"] if "failure" in event else event["output"] for event in made
    ]
    faulty = [at for at, what in enumerate(shown) if what.get("faults")]
    answered_after = [
        at for at, code in enumerate(codes) if faulty and at >= faulty[0] and code is None
    ]
    (closed,) = [event for event in events if event["kind"] == "closed"]
    success = closed["final_state"]["accounts"]["a1"]["tier"] == "gold"
    invalid = sum(code in INVALID for code in codes)
    exceeded = any(code in ("budget_exceeded", "retry_exceeded") for code in codes)
    return {
        "task_success": success,
        "invalid_call_rate": invalid / len(made) if made else None,
        "policy_violations": invalid + codes.count("authz_denied"),
        "recovery_success": bool(faulty) and success,
        "time_to_recovery": answered_after[0] - faulty[0] if answered_after else None,
        "tool_calls_used": len(made),
        "budget_exceeded": exceeded,
        "catastrophic_failure": exceeded or invalid >= 3 or not success,
        "s_4": success and len(made) <= 4,
        "s_8": success and len(made) <= 8,
    }


def _assert_resources_add_up(folder: RunReader, suite: Suite) -> None:
    results = join_results(folder.rows(), suite)
    entries = [
        entry for result, trace in read_traces(folder, results) for entry in spent(result, trace)
    ]
    found = spreads(entries)
    lines = [_events(folder.path / row.trace) for row in folder.rows()]
    made = sorted(sum(event["kind"] == "call" for event in events) for events in lines)
    failed = [
        sum(
            "failure" in event and event["failure"]["code"] != "budget_exceeded" for event in events
        )
        for events in lines
    ]
    assert found["agent", "calls"].mean == pytest.approx(sum(made) / len(made))
    assert found["agent", "calls"].median == (made[(len(made) - 1) // 2] + made[len(made) // 2]) / 2
    assert found["agent", "retries"].total == sum(failed)
    assert found[WHOLE_EPISODE, "wall_ms"].total == sum(row.wall_ms for row in folder.rows())


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["event"] for line in path.read_text().splitlines()]
