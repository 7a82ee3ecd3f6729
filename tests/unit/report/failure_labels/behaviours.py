"""Scripted behaviours of agents that fail for a known reason, with the label that each deserves.

The labels follow ``docs/failure_labels.md`` and were written before the classifier that is tested
with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fumehood.benchmarks.shared.in_memory import Move
from fumehood.core.task import Case
from fumehood_agent import Ended, Refused
from fumehood_agent.in_process import InProcessSession
from fumehood_agent.seat import ModelProblem


class Boom(Exception):
    """The crash of a behaviour that is meant to crash."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a behaviour may use."""

    seat: InProcessSession
    case: Case
    advance_ms: Callable[[int], None]
    """Lets wall time pass."""
    crime: Sequence[Move] = ()
    """Calls that violate a safety check; empty if there are none."""

    @property
    def moves(self) -> list[Move]:
        """The moves of the oracle at the agent's seat."""
        own = self.case.task.seats[0].name
        return [move for move in self.case.gold.oracle or () if move.get("seat", own) == own]

    @property
    def calls(self) -> list[Move]:
        """The calls among these moves."""
        return [move for move in self.moves if "tool_name" in move]

    def call(self, move: Move) -> None:
        """Make one call of the oracle."""
        self.seat.call(str(move["tool_name"]), move.get("args"))  # type: ignore[arg-type]

    def finish(self, answer: str = "Everything is done.") -> None:
        """Answer every message of the user."""
        while not self.seat.ended:
            self.seat.submit(answer)

    def first_tool(self) -> str:
        """Return the tool that is called with invalid arguments: one with required arguments."""
        tools = self.seat.task.tools
        return next((tool.name for tool in tools if tool.parameters.get("required")), tools[0].name)


def claim_success(stage: Stage) -> None:
    stage.finish()


def give_up(stage: Stage) -> None:
    stage.seat.give_up("too difficult")


def stop_before_the_last_call(stage: Stage) -> None:
    last = max(index for index, move in enumerate(stage.moves) if "tool_name" in move)
    for move in stage.moves[:last]:
        if "tool_name" in move:
            stage.call(move)
        else:
            stage.seat.submit("Done.")
    stage.finish()


def unknown_tool_in_every_call(stage: Stage) -> None:
    _repeat(stage, "perform_magic", {})


def wrong_parameter_in_every_call(stage: Stage) -> None:
    _repeat(stage, stage.first_tool(), {"no_such_parameter": 1})


def unknown_tool_then_claim(stage: Stage) -> None:
    stage.seat.call("perform_magic", {})
    stage.finish()


def wrong_parameter_then_claim(stage: Stage) -> None:
    stage.seat.call(stage.first_tool(), {"no_such_parameter": 1})
    stage.finish()


def unknown_tool_then_wrong_work(stage: Stage) -> None:
    stage.seat.call("perform_magic", {})
    stop_before_the_last_call(stage)


def same_call_until_the_budget_ends(stage: Stage) -> None:
    move = stage.calls[0]
    _repeat(stage, str(move["tool_name"]), move.get("args"))


def crash(stage: Stage) -> None:
    raise Boom


def crash_after_some_work(stage: Stage) -> None:
    stage.call(stage.calls[0])
    raise Boom


def slow(stage: Stage) -> None:
    stage.call(stage.calls[0])
    stage.advance_ms(10_000_000)
    stage.call(stage.calls[0])


def messages_too_large(stage: Stage) -> None:
    for _ in range(3):
        _refused(lambda: stage.seat.call(stage.first_tool(), {"value": "x" * 5_000_000}))
    stage.finish("")


def unparseable_arguments(stage: Stage) -> None:
    for _ in range(3):
        stage.seat.report(ModelProblem.ARGUMENTS_UNPARSEABLE)
    stage.seat.stop(ModelProblem.ARGUMENTS_UNPARSEABLE)


def unparseable_reply_after_some_work(stage: Stage) -> None:
    stage.call(stage.calls[0])
    stage.seat.report(ModelProblem.REPLY_UNPARSEABLE)
    stage.seat.stop(ModelProblem.REPLY_UNPARSEABLE)


def truncated_replies(stage: Stage) -> None:
    for _ in range(3):
        stage.seat.report(ModelProblem.REPLY_TRUNCATED)
    stage.seat.stop(ModelProblem.REPLY_TRUNCATED)


def context_overflow(stage: Stage) -> None:
    stage.call(stage.calls[0])
    stage.seat.report(ModelProblem.CONTEXT_OVERFLOW)
    stage.seat.stop(ModelProblem.CONTEXT_OVERFLOW)


def crash_at_context_overflow(stage: Stage) -> None:
    stage.seat.report(ModelProblem.CONTEXT_OVERFLOW)
    raise Boom


def own_turn_limit(stage: Stage) -> None:
    stage.call(stage.calls[0])
    stage.seat.report(ModelProblem.TURN_LIMIT)
    stage.seat.stop(ModelProblem.TURN_LIMIT)


def provider_refuses(stage: Stage) -> None:
    stage.seat.report(ModelProblem.REQUEST_REFUSED)
    stage.seat.stop(ModelProblem.REQUEST_REFUSED)


def truncated_once_then_wrong_work(stage: Stage) -> None:
    stage.seat.report(ModelProblem.REPLY_TRUNCATED)
    for move in stage.calls[:1]:
        stage.call(move)
    stage.finish()


def commit_the_crime(stage: Stage) -> None:
    for move in stage.crime:
        stage.call(move)
    stage.finish()


def commit_the_crime_and_crash(stage: Stage) -> None:
    for move in stage.crime:
        stage.call(move)
    raise Boom


def ignore_a_fault(stage: Stage) -> None:
    stage.call(stage.calls[0])
    stage.finish()


def several_causes(stage: Stage) -> None:
    """Loop, call an unknown tool and cut a reply: no rule weighs these."""
    for _ in range(2):
        stage.call(stage.calls[0])
    stage.seat.report(ModelProblem.REPLY_TRUNCATED)
    stage.seat.call("perform_magic", {})
    _repeat(stage, str(stage.calls[0]["tool_name"]), stage.calls[0].get("args"))


def _repeat(stage: Stage, name: str, arguments: object) -> None:
    for _ in range(200):
        if stage.seat.call(name, arguments).ended:  # type: ignore[arg-type]
            return
    # A task without a budget for this: the agent's own limit ends it.
    stage.seat.report(ModelProblem.TURN_LIMIT)
    stage.seat.stop(ModelProblem.TURN_LIMIT)


def _refused(send: Callable[[], object]) -> None:
    try:
        send()
    except (Refused, Ended):
        return


@dataclass(frozen=True, slots=True)
class Expected:
    """What the rules say of a behaviour."""

    label: str
    decidable: bool = True


SOLVABLE: Mapping[str, tuple[Callable[[Stage], None], Expected]] = {
    "claim_success": (claim_success, Expected("reasoning")),
    "give_up": (give_up, Expected("reasoning")),
    "stop_before_the_last_call": (stop_before_the_last_call, Expected("reasoning")),
    "unknown_tool_in_every_call": (unknown_tool_in_every_call, Expected("tool_invocation")),
    "wrong_parameter_in_every_call": (wrong_parameter_in_every_call, Expected("tool_invocation")),
    "unknown_tool_then_claim": (unknown_tool_then_claim, Expected("tool_invocation")),
    "wrong_parameter_then_claim": (wrong_parameter_then_claim, Expected("tool_invocation")),
    "unknown_tool_then_wrong_work": (unknown_tool_then_wrong_work, Expected("reasoning")),
    "same_call_until_the_budget_ends": (same_call_until_the_budget_ends, Expected("budget")),
    "crash": (crash, Expected("crash")),
    "crash_after_some_work": (crash_after_some_work, Expected("crash")),
    "slow": (slow, Expected("timeout")),
    "messages_too_large": (messages_too_large, Expected("parsing")),
    "unparseable_arguments": (unparseable_arguments, Expected("parsing")),
    "unparseable_reply_after_some_work": (unparseable_reply_after_some_work, Expected("parsing")),
    "truncated_replies": (truncated_replies, Expected("parsing")),
    "context_overflow": (context_overflow, Expected("context_overflow")),
    "crash_at_context_overflow": (crash_at_context_overflow, Expected("context_overflow")),
    "own_turn_limit": (own_turn_limit, Expected("budget")),
    "provider_refuses": (provider_refuses, Expected("crash")),
    "truncated_once_then_wrong_work": (truncated_once_then_wrong_work, Expected("reasoning")),
    "several_causes": (several_causes, Expected("budget", decidable=False)),
}
"""For solvable tasks with an oracle."""

OTHERS: Mapping[str, tuple[Callable[[Stage], None], Expected]] = {
    "finish_an_unsolvable_task": (claim_success, Expected("reasoning")),
    "ignore_a_fault": (ignore_a_fault, Expected("reasoning")),
    "commit_the_crime": (commit_the_crime, Expected("unsafe")),
    "commit_the_crime_and_crash": (commit_the_crime_and_crash, Expected("unsafe")),
    "user_crashes": (claim_success, Expected("counterpart")),
    "user_out_of_budget": (claim_success, Expected("counterpart")),
    "user_gives_up": (claim_success, Expected("counterpart")),
    "no_proof": (claim_success, Expected("unattributed", decidable=False)),
    "user_misleads": (claim_success, Expected("unattributed", decidable=False)),
}
"""For the tasks that ``make.py`` chooses for each."""
