"""A monitor sees the same steps live and over the recorded trace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.core.json_values import JsonObject, digest_json
from fumehood.core.ledger import Budget
from fumehood.monitors.monitor import Action, Decision, Facts, Stage, Step
from fumehood.monitors.offline import play, recorded
from fumehood.orchestrator.plan import plan_episodes
from fumehood.service.inline import play_in_process
from fumehood.service.open_episode import MonotonicClock
from fumehood.service.seat_endpoint import SeatLimits
from fumehood_agent.errors import Ended
from fumehood_agent.seat import Seat
from tests.architecture.project import ROOT
from tests.parts.monitors import LocalReviewer

SUITE = load_suite(str(ROOT / "examples" / "night_shift.yaml"))
CALL = st.sampled_from(
    [
        ("set_dose", {"mg_per_l": 2}),
        ("set_dose", {"mg_per_l": 40}),
        ("set_dose", {"wrong": True}),
        ("switch_alarm", {"position": "off"}),
        ("no_such_tool", {}),
        ("wait", {"seconds": 5000}),
        ("now", {}),
    ]
)


class Hashing:
    """Decides by a hash of all that it sees, so that it notices any difference."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self._actions = actions
        self._facts: JsonObject = {}

    def begin(self, facts: Facts) -> None:
        """Remember the instructions; traces do not have the tools."""
        self._facts = {"world": facts.world, "instructions": dict(facts.instructions)}

    def before(self, step: Step) -> Decision:
        """Decide by the hash."""
        return self._decide(step, int(digest_json([self._facts, step.to_json()]), 16))

    def after(self, step: Step) -> Decision:
        """Decide by the hash."""
        return self.before(step)

    def _decide(self, step: Step, number: int) -> Decision:
        action = self._actions[number % len(self._actions)]
        is_before = step.stage is Stage.BEFORE
        modifies = action is Action.MODIFY
        return Decision(
            action=action,
            suspicion=number % 1000 / 1000,
            arguments={"seconds": 60} if modifies and is_before else None,
            output={"now": "later"} if modifies and not is_before else None,
        )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    calls=st.lists(CALL, min_size=1, max_size=24),
    actions=st.lists(st.sampled_from(list(Action)), min_size=1, max_size=3),
    task=st.integers(0, len(SUITE.cases) - 1),
)
def test_the_decisions_over_the_trace_are_those_of_the_live_monitor(
    calls: list[tuple[str, JsonObject]], actions: list[Action], task: int
) -> None:
    def worker(seat: Seat) -> None:
        try:
            for name, arguments in calls:
                seat.call(name, arguments)
            seat.submit()
        except Ended:
            pass

    planned = list(plan_episodes(SUITE, ("agent",), 1, 0, monitors=("Hashing",)))[task]
    live = LocalReviewer(Hashing(actions))
    spec = planned.to_spec(60_000)
    # A failure without a retry left is recorded as another failure than the monitor saw.
    seat = replace(spec.seats[0], budget=Budget(steps=20, calls=20))
    spec = replace(spec, seats=(seat,))
    workers = {seat.name: worker}
    played = play_in_process(spec, workers, MonotonicClock(), SeatLimits(), live)
    events = [json.loads(record.event_json) for record in played.records]
    facts = Facts(
        world=planned.case.task.world,
        instructions={seat.name: seat.instruction for seat in planned.case.task.seats},
    )
    again = play(LocalReviewer(Hashing(actions)), facts, events)
    shown = [
        [(one.number, one.stage, one.tool, one.decision) for one in decisions if not one.is_silent]
        for decisions in (again, recorded(events))
    ]
    assert shown[0] == shown[1]
    assert len(again) >= 1
