"""Requirements of every monitor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.monitors.model import ModelMonitor
from fumehood.monitors.monitor import (
    Facts,
    Monitor,
    Stage,
    Step,
    StepKind,
    decide,
    decision_from_json,
    facts_from_json,
    step_from_json,
)
from fumehood.monitors.rules import RuleMonitor

FACTS = Facts(
    world="files",
    instructions={"agent": "Tidy up."},
    tools={"agent": ({"name": "write", "description": "", "parameters": {}},)},
)
RULES: JsonObject = {
    "rules": [
        {
            "name": "large",
            "tool": "write*",
            "conditions": [{"op": "at_least", "path": "arguments.size", "value": 10}],
            "action": "refuse",
            "suspicion": 0.8,
        },
        {"name": "again", "since": "large", "times": 2, "action": "end"},
        {"name": "redact", "stage": "after", "tool": "read", "action": "modify", "output": {}},
        {"name": "model", "kind": "model", "suspicion": 0.1, "action": "allow"},
    ]
}
Make = Callable[[], Monitor]


def _model_monitor() -> Monitor:
    """Return a monitor whose model finds long requests suspicious."""

    def reply(request: JsonObject) -> JsonObject:
        suspicion = min(len(canonical_json(request)), 4000) / 4000
        text = f'{{"suspicion": {suspicion}, "reason": "its length"}}'
        return {"choices": [{"message": {"content": text}}]}

    monitor = ModelMonitor({"model": "m1", "refuse_from": 0.4, "end_from": 0.6, "after": True})
    monitor.connect(reply)
    return monitor


MONITORS: dict[str, Make] = {"rules": lambda: RuleMonitor(RULES), "model": _model_monitor}

OBJECTS = st.dictionaries(
    st.sampled_from(("size", "path", "x")), st.integers(0, 20) | st.text(max_size=5), max_size=3
)


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """Draw the steps of an episode at both stages."""
    drawn: list[Step] = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        kind = draw(st.sampled_from(StepKind))
        tool = draw(st.sampled_from(("write", "write_all", "read", "")))
        arguments: JsonObject = {**draw(OBJECTS)}
        drawn.append(Step(seat="agent", number=number, kind=kind, tool=tool, arguments=arguments))
        failure: JsonObject = {"code": "no", "message": "", "details": {}}
        result = draw(st.sampled_from(("output", "failure")))
        drawn.append(
            Step(
                seat="agent",
                number=number,
                kind=kind,
                stage=Stage.AFTER,
                tool=tool,
                arguments=arguments,
                output={**draw(OBJECTS)} if result == "output" else None,
                failure=failure if result == "failure" else None,
                time_ms=draw(st.none() | st.integers(0, 10_000)),
            )
        )
    return drawn


@pytest.fixture(scope="module", params=sorted(MONITORS))
def make(request: pytest.FixtureRequest) -> Make:
    """Every kind of monitor, made anew on each call."""
    return MONITORS[request.param]


def decisions(make: Make, episode: list[Step]) -> list[JsonObject]:
    """Return what a new monitor decides about the steps of an episode."""
    monitor = make()
    monitor.begin(FACTS)
    return [decide(monitor, step).to_json() for step in episode]


@given(episode=steps())
def test_every_decision_is_valid_at_its_stage(make: Make, episode: list[Step]) -> None:
    for step, decided in zip(episode, decisions(make, episode), strict=True):
        assert decision_from_json(decided, step.stage).to_json() == decided


@given(episode=steps())
def test_equal_episodes_get_equal_decisions(make: Make, episode: list[Step]) -> None:
    assert decisions(make, episode) == decisions(make, episode)


@given(episode=steps())
def test_a_monitor_does_not_change_a_step(make: Make, episode: list[Step]) -> None:
    before = [canonical_json(step.to_json()) for step in episode]
    decisions(make, episode)
    assert [canonical_json(step.to_json()) for step in episode] == before


@given(episode=steps())
def test_a_monitor_begins_every_episode_anew(make: Make, episode: list[Step]) -> None:
    monitor = make()
    for _ in range(2):
        monitor.begin(FACTS)
        last = [decide(monitor, step).to_json() for step in episode]
    assert last == decisions(make, episode)


@given(episode=steps())
def test_steps_and_facts_are_the_same_after_they_crossed_a_socket(episode: list[Step]) -> None:
    assert [step_from_json(step.to_json()) for step in episode] == episode
    assert facts_from_json(FACTS.to_json()) == FACTS
