"""Requirements of every monitor."""

from __future__ import annotations

import pytest
from hypothesis import given

from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.monitors.model import ModelMonitor
from fumehood.monitors.monitor import Monitor, Step, facts_from_json, step_from_json
from fumehood.monitors.rules import RuleMonitor
from fumehood.testing.monitors import *  # noqa: F403
from fumehood.testing.monitors import FACTS, Make, steps

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


@pytest.fixture(scope="module", params=sorted(MONITORS))
def make(request: pytest.FixtureRequest) -> Make:
    """Every kind of monitor, made anew on each call."""
    return MONITORS[request.param]


@pytest.mark.slow
@given(episode=steps())
def test_steps_and_facts_are_the_same_after_they_crossed_a_socket(episode: list[Step]) -> None:
    assert [step_from_json(step.to_json()) for step in episode] == episode
    assert facts_from_json(FACTS.to_json()) == FACTS
