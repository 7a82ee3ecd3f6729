"""A state machine checks which faults fire, how they are recorded, and what they cost."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fumehood.core.clock import StoppedClock
from fumehood.core.episode import Episode
from fumehood.core.json_values import digest_json
from fumehood.core.ledger import BudgetKind
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.tools import Failure, FailureKind
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.layers.faults.registry import FAMILIES
from tests.parts.specs import episode_spec

TOOLS = ("get_account", "update_account", "no_such_tool")
CALLS, RETRIES = 12, 6
RULES = st.fixed_dictionaries(
    {
        "family": st.sampled_from([name for name in FAMILIES if name != "late_answer"]),
        "trigger": st.fixed_dictionaries(
            {},
            optional={
                "on_tool": st.sampled_from(TOOLS),
                "on_nth_call": st.integers(1, CALLS),
                "prob": st.sampled_from([0.0, 0.5, 1.0]),
                "when_arg_matches": st.just({"id": "ax1"}),
            },
        ),
        "payload": st.fixed_dictionaries(
            {},
            optional={
                "after_n_calls": st.integers(0, 4),
                "path": st.just("account.tier"),
                "value": st.just("wrong"),
                "rename_args": st.just({"id": "identifier"}),
            },
        ),
    }
)
_WITHOUT_EFFECT = (FailureKind.FAULT, FailureKind.WORLD, FailureKind.INVALID_CALL)
_DELIVERING = {name for name in FAMILIES if FAMILIES.load(name).delivers_again}
ARGUMENTS = st.sampled_from(
    [
        {"id": "ax1"},
        {"id": "absent"},
        {"identifier": "ax1"},
        {},
        {"id": "ax1", "patch": {"tier": "gold"}},
    ]
)


class FaultMachine(RuleBasedStateMachine):
    """Calls tools under a fault plan and counts the fired faults."""

    @initialize(
        plan=st.lists(RULES, max_size=4),
        seed=st.integers(0, 9),
        harness_mode=st.sampled_from(list(HARNESS_MODES)),
    )
    def open(self, plan: list[dict[str, Any]], seed: int, harness_mode: str) -> None:
        self.spec = episode_spec(
            *plan, seed=seed, harness_mode=harness_mode, calls=CALLS, retries=RETRIES
        )
        self.recorder = MemoryRecorder()
        self.episode = self._opened(self.recorder)
        self.made: list[tuple[str, dict[str, Any]]] = []
        self.fire_counts = [0] * len(plan)
        self.failures = 0

    @precondition(lambda self: self.episode.seats[0].end is None)
    @rule(tool=st.sampled_from(TOOLS), arguments=ARGUMENTS)
    def call(self, tool: str, arguments: dict[str, Any]) -> None:
        before = digest_json(self.episode.world.state)
        self.made.append((tool, arguments))
        reply = self.episode.seats[0].call(tool, dict(arguments))
        result = reply.result
        for event in result.fired_faults:
            self.fire_counts[event.rule] += 1
            self._has_a_reason(event.rule, tool)
        if isinstance(result, Failure):
            self.failures += 1
            families = {rule.family for rule in self.spec.fault_plan}
            # Such a failure may be that of a call whose effect is there, or was held back.
            if result.kind in _WITHOUT_EFFECT and not families & _DELIVERING:
                assert digest_json(self.episode.world.state) == before, (
                    "a failed call changed the state"
                )
            assert result.fired_faults or result.kind is not FailureKind.FAULT, (
                "a fault that no record names"
            )
        assert reply.ended == (self.episode.seats[0].end is not None)

    @precondition(lambda self: hasattr(self, "episode") and self.made)
    @rule()
    def play_again(self) -> None:
        """Equal calls under an equal seed get equal draws."""
        recorder = MemoryRecorder()
        episode = self._opened(recorder)
        for tool, arguments in self.made:
            episode.seats[0].call(tool, dict(arguments))
        assert [*recorder.written()] == [*self.recorder.written()]

    @invariant()
    def the_books_agree(self) -> None:
        if not hasattr(self, "episode"):
            return
        left = self.episode.seats[0].ledger.remaining()
        assert left[BudgetKind.CALLS] == CALLS - len(self.made)
        assert left[BudgetKind.RETRIES] == max(0, RETRIES - self.failures)

    def teardown(self) -> None:
        if hasattr(self, "episode"):
            self.episode.close()
            closed = [event for event in self.recorder.written() if event["kind"] == "closed"]
            assert [event["fire_counts"] for event in closed] == [self.fire_counts]

    def _opened(self, recorder: MemoryRecorder) -> Episode:
        return HARNESS_MODES.load(self.spec.harness_mode)().open_episode(
            self.spec, recorder, StoppedClock()
        )

    def _has_a_reason(self, rule: int, tool: str) -> None:
        trigger = self.spec.fault_plan[rule].trigger
        assert trigger.get("on_tool", tool) == tool
        assert trigger.get("on_nth_call", len(self.made)) == len(self.made)
        assert trigger.get("prob") != 0.0


FaultMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
TestFaultMachine = FaultMachine.TestCase
