"""Mistakes in the scenario of a YAML suite, each in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.benchmarks.native.scenario import EventRecord
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from tests.architecture.project import ROOT

TEXT = (ROOT / "examples" / "water_works.yaml").read_text(encoding="utf-8")
WHEN = "path: plant.tanks.t1.level_percent, value: 95"
DEADLINE = """  events:
    - name: closed_in_time
      at_s: 7200
      requires:
        - {op: equals, path: plant.tanks.t1.inflow, value: closed}
"""
PRICES = "  time:\n    price_microusd: {read_tank: 5}\n"


def write(folder: Path, old: str, new: str) -> str:
    assert old in TEXT
    path = folder / "suite.yaml"
    path.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            WHEN,
            WHEN.replace("t1", "t9"),
            "events[2].when.path: the state has no 'plant.tanks.t9', and no rule creates it; "
            "there are: t1, t2",
        ),
        (
            WHEN,
            WHEN.replace("level_percent", "level_pct"),
            "events[2].when.path: the state has no 'plant.tanks.t1.level_pct', and no rule creates "
            "it; did you mean 'level_percent'?",
        ),
        (
            "path: plant.alarms",
            "path: plant.alerts",
            "events[1].rules[0].path: the state has no 'plant.alerts', and no rule creates it; "
            "did you mean 'alarms'?",
        ),
        (
            WHEN,
            "path: time.events.high_levl, value: 1",
            "events[2].when.path: there is no event 'high_levl'; did you mean 'high_level'?",
        ),
        (
            "fixed_ms: 500",
            "fixed_ms: -5",
            "suite.yaml:53: world.time.latency.*: must be fixed_ms (a number), ",
        ),
        (
            "set_inflow: {median",
            "set_inflw: {median",
            "suite.yaml:54: world.time.latency.set_inflw: the scenario has no tool 'set_inflw'; ",
        ),
        (
            "path: plant.overflows, value: 1",
            "path: plant.overflws.x, value: 1",
            "suite.yaml:72: world.events[2].rules[0].path: the state has no 'plant.overflws', ",
        ),
        (
            "every_s: 600",
            "every_s: 600\n      until_s: 5",
            "suite.yaml:58: world.events[0].until_s: is before the first time, 600 s",
        ),
        (
            "every_s: 600",
            "every_s: 600\n      until_s: 99999",
            "suite.yaml:58: world.events[0].until_s: is after the end, 28800 s",
        ),
        (
            "$get: plant.tanks.t1.level_percent",
            "$get: plant.tanks.t1.level_percnt",
            "fields.level_percent.$add[0].$get: the state has no 'plant.tanks.t1.level_percnt', ",
        ),
        (
            "time.events.high_level, value",
            "time.events.high_levl, value",
            "criteria[1].path: there is no event 'high_levl'; did you mean 'high_level'?",
        ),
        (
            "at: {$get: time.now}, text",
            "at: {$get: time.nw}, text",
            "suite.yaml:48: world.parts.office.tools[0].rules[0].value.at.$get: time has no 'nw'; ",
        ),
        (
            'message: "Tank t1 overflows."',
            'message: "Tank t1 overflows."\n      to: boss',
            "events[2].to: the task has no seat 'boss'; ",
        ),
        (
            "calls: 40, ",
            "calls: 40, tool_microusd: 9, ",
            "budget.tool_microusd: has no effect, because no tool has a price",
        ),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write(tmp_path, old, new)
    with pytest.raises(InputError) as caught:
        load_suite(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  events:\n", DEADLINE),
        (WHEN, "path: office.log, value: 3"),
        # A tool, or another event, can create the key.
        ("fields: {inflow: $position}", "fields: {inflow: $position, moved: true}"),
    ],
)
def test_a_deadline_and_a_path_that_a_rule_creates_are_accepted(
    tmp_path: Path, old: str, new: str
) -> None:
    text = TEXT.replace(old, new, 1).replace(
        "path: plant.overflows, value: 1", "path: plant.worst, value: 1"
    )
    if "moved" in new:
        text = text.replace(WHEN, "path: plant.tanks.t2.moved, value: 1")
    (tmp_path / "suite.yaml").write_text(text, encoding="utf-8")
    load_suite(str(tmp_path / "suite.yaml"))


def test_a_part_can_have_python_functions(tmp_path: Path) -> None:
    rules = "rules:\n            - {op: get, path: tanks.$tank_id, output: tank}\n"
    python = "def read_tank(state, tank_id):\n          return state['tanks'][tank_id]\n"
    text = TEXT.replace(f"          {rules}", "").replace(
        "      state:\n        tanks:",
        f"      python: |\n        {python}      state:\n        tanks:",
    )
    (tmp_path / "suite.yaml").write_text(text, encoding="utf-8")
    (case,) = load_suite(str(tmp_path / "suite.yaml")).cases
    assert case.task.world == "scenario_python"
    moves: list[Move] = [{"tool_name": "read_tank", "args": {"tank_id": "t2"}}, {"submit": ""}]
    (made,) = play_in_memory(case.task, moves).calls
    assert made.output == {"level_percent": 40, "inflow": "closed"}


def test_a_task_limits_the_price_of_calls(tmp_path: Path) -> None:
    text = TEXT.replace("calls: 40, ", "calls: 40, tool_microusd: 9, ").replace(
        "  time:\n", PRICES, 1
    )
    (tmp_path / "suite.yaml").write_text(text, encoding="utf-8")
    (case,) = load_suite(str(tmp_path / "suite.yaml")).cases
    assert case.task.seats[0].budget[BudgetKind.TOOL_MICROUSD] == 9


def test_an_event_has_one_kind_of_delay_after_its_condition() -> None:
    event: dict[str, object] = {"name": "full", "message": "Full.", "for_s": 60}
    when = {"op": "equals", "path": "tank.level", "value": 9}
    assert EventRecord.model_validate({**event, "when": when}).for_s == 60
    with pytest.raises(ValueError, match="after_s or for_s, not both"):
        EventRecord.model_validate({**event, "when": when, "after_s": 60})
    with pytest.raises(ValueError, match="for_s: has an effect only with when"):
        EventRecord.model_validate({**event, "at_s": 60})
