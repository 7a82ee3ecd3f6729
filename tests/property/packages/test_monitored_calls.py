"""A refusal of a monitor is atomic with the budget, however many calls arrive at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood.core.clock import StoppedClock
from fumehood.core.json_values import JsonObject, digest_json
from fumehood.core.ledger import BudgetKind
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.monitors.monitor import ALLOWED, Action, Decision, Facts, Step
from fumehood.service.open_episode import OpenEpisode
from fumehood.service.seat_endpoint import SeatLimits
from tests.parts.monitors import LocalReviewer
from tests.parts.specs import episode_spec

DECISIONS = {
    "allow": ALLOWED,
    "refuse": Decision(action=Action.REFUSE, suspicion=0.5),
    "end": Decision(action=Action.END),
}


class Scripted:
    """Decides by the fields of the account that a call creates."""

    def begin(self, facts: Facts) -> None:
        """Learn nothing."""

    def before(self, step: Step) -> Decision:
        """Decide before the call."""
        return DECISIONS[self._fields(step)["before"]]

    def after(self, step: Step) -> Decision:
        """Decide about the result."""
        return DECISIONS[self._fields(step)["after"]]

    @staticmethod
    def _fields(step: Step) -> dict[str, Any]:
        fields: Any = step.arguments["fields"]
        return dict(fields)


CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "before": st.sampled_from(sorted(DECISIONS)),
            "after": st.sampled_from(("allow", "refuse")),
        }
    ),
    min_size=1,
    max_size=8,
)


def _events(wanted: Sequence[dict[str, str]], **budget: Any) -> list[JsonObject]:
    """Make all calls at the same moment, and return the trace."""
    recorder, together = MemoryRecorder(), Barrier(len(wanted))
    spec = replace(episode_spec(state={"accounts": {}}, **budget), monitors=("Scripted",))
    episode = OpenEpisode(
        spec,
        recorder,
        StoppedClock(),
        SeatLimits(),
        on_broken=lambda rejected: None,
        reviewer=LocalReviewer(Scripted()),
    )
    (endpoint,) = episode.endpoints

    def call(number: int) -> None:
        fields = {"id": f"a{number}", **wanted[number]}
        together.wait()
        endpoint.call("create_account", json.dumps({"fields": fields}), "")

    with ThreadPoolExecutor(len(wanted)) as threads:
        list(threads.map(call, range(len(wanted))))
    episode.close(timed_out=False)
    return list(recorder.written())


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    calls=CALLS,
    budget=st.fixed_dictionaries(
        {"calls": st.integers(0, 8), "retries": st.integers(0, 8), "steps": st.integers(1, 8)}
    ),
)
def test_a_refused_call_costs_one_failed_call_and_has_no_effect(
    calls: list[dict[str, str]], budget: dict[str, int]
) -> None:
    events = _events(calls, **budget)
    state = digest_json({"accounts": {}})
    spent = dict.fromkeys(BudgetKind, 0)
    created: set[str] = set()
    for position, event in enumerate(events):
        if event["kind"] == "monitor":
            # Nothing comes between a decision and the call that it decides about.
            follower = events[position + 1]
            assert follower["kind"] in ("monitor", "call")
            assert follower["number"] == event["number"]
        if event["kind"] != "call":
            continue
        charged: Any = event["charged"]
        for kind, amount in charged.items():
            spent[BudgetKind(kind)] += amount
        arguments: Any = event["arguments"]
        wanted, failure = arguments["fields"], event.get("failure")
        kind = failure["kind"] if isinstance(failure, dict) else None
        if kind == "refused":
            assert wanted["before"] != "allow"
            assert charged == {"steps": 1, "calls": 1, "retries": 1}
        if wanted["before"] == "allow" and kind in (None, "withheld"):
            assert (kind == "withheld") == (wanted["after"] == "refuse")
            created.add(wanted["id"])
        elif kind != "out_of_budget":
            assert event["state"] == state
        state = str(event["state"])
    final: Any = events[-1]["final_state"]
    # A withheld result, or one that exhausts the retries, may belong to a created account.
    assert created <= final["accounts"].keys()
    assert all(account["before"] == "allow" for account in final["accounts"].values())
    for kind, limit in budget.items():
        assert spent[BudgetKind(kind)] <= limit


@settings(max_examples=40, deadline=None)
@given(calls=CALLS)
def test_no_call_has_an_effect_after_a_monitor_ended_the_episode(
    calls: list[dict[str, str]],
) -> None:
    events = _events(calls)
    kinds = [event["kind"] for event in events]
    if "seat_ended" not in kinds:
        assert all(call["before"] != "end" for call in calls)
        return
    assert "call" not in kinds[kinds.index("seat_ended") :]
    (ended,) = (event for event in events if event["kind"] == "seat_ended")
    assert ended["end"] == {"outcome": "ended_by_monitor", "monitor": "Scripted", "step": "tool"}
