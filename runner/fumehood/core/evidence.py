"""The facts that a trace proves about one episode. Scorers use only these and gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.core.outcome import (
    Finished,
    GaveUp,
    Infra,
    ModelProblem,
    SeatEnd,
    outcome_from_json,
)
from fumehood.core.policy import PolicyChecker, Violation
from fumehood.core.received import Deliveries, deliveries_of, is_answer_held
from fumehood.core.tools import EXECUTED, FailureKind


@dataclass(frozen=True, slots=True)
class ShownFailure:
    """A failure as the agent received it, with its true kind."""

    kind: FailureKind
    code: str
    message: str
    details: Mapping[str, Json]

    def to_json(self) -> JsonObject:
        """Return what the agent received."""
        return {"code": self.code, "message": self.message, "details": dict(self.details)}


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """One tool call and its result."""

    seat: str
    tool_name: str
    sent: Mapping[str, Json]
    arguments_after: Mapping[str, Json]
    """The arguments after all faults and monitors; equal to ``sent`` if nothing changed them."""
    output: JsonObject | None
    failure: ShownFailure | None
    """Set exactly when ``output`` is not."""
    fired_rules: tuple[int, ...]
    """Positions in the plan of the faults that fired on this call, in the order of firing."""
    state_digest: str
    turn: int = 1
    """Turn of the seat in which the call was made, from 1."""
    charged: Mapping[str, int] = field(default_factory=dict)
    """Units that the call was charged, by budget kind; kinds without a charge are missing."""
    remaining: Mapping[str, int] = field(default_factory=dict)
    """Units that the seat had left after the call, by budget kind; unbounded kinds are missing."""
    model_calls_before: int = 0
    """Number of the seat's model requests with a reply before the call."""
    was_executed: bool = False
    """Whether the trace states that the tool executed the call, although the kind of the failure
    does not say so."""
    number: int = 0
    """Number of the call, from 1."""
    delivered: Deliveries | None = None
    """What the world executed during the call, in order; None if it was at most this call, once."""

    @property
    def is_held(self) -> bool:
        """Whether a fault held the call back; the agent never receives its result."""
        return self.delivered is not None and is_answer_held(self.delivered, self.number)

    @property
    def is_answered(self) -> bool:
        """Whether the tool executed the call with success, and the agent received its result."""
        return self.failure is None and not self.is_held

    @property
    def is_executed(self) -> bool:
        """Whether the tool executed the call; the agent may not have received its result."""
        is_failure_executed = self.failure is not None and (
            self.failure.kind in EXECUTED or self.was_executed
        )
        return self.is_answered or is_failure_executed

    @property
    def reached_world(self) -> bool:
        """Whether the world received the call."""
        return self.is_executed or (
            self.failure is not None and self.failure.kind is FailureKind.WORLD
        )


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """One execution of a call; a fault may deliver a call late or twice."""

    call: AnsweredCall
    """As the agent sent it."""
    during: AnsweredCall
    """The call during which the world received it; ``call`` itself, unless a fault held it back."""
    position: int
    """Position of ``during`` in the evidence, from 0."""
    arguments: Mapping[str, Json]
    """As the world received them."""
    is_reached: bool = True
    """Whether the world received the call."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The answer that a seat submitted at the end of a turn."""

    seat: str
    text: str
    calls_before: int
    """Number of earlier calls of all seats."""


@dataclass(frozen=True, slots=True)
class SeenProblem:
    """A problem between a seat's agent and its model."""

    seat: str
    problem: ModelProblem
    source: str
    """``gateway`` if a response shows it, ``agent`` if only the agent reported it."""
    calls_before: int
    """Number of earlier calls of all seats."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One closed episode."""

    calls: tuple[AnsweredCall, ...]
    """In the order of the trace."""
    refusals: tuple[str, ...]
    """Kinds of the messages that the service refused."""
    ends: Mapping[str, SeatEnd]
    """By seat. A seat that did not end is missing."""
    final_state: JsonObject
    fire_counts: tuple[int, ...]
    """How often each planned fault fired, in the order of the plan."""
    turn_answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By seat, the answers to all messages except the last. A seat with one message is missing."""
    submissions: tuple[Submission, ...] = ()
    """All submitted answers in order. A seat that was waiting for its turn at the end has none."""
    model_problems: tuple[SeenProblem, ...] = ()
    """In the order of the trace."""
    model_replies: Mapping[str, int] = field(default_factory=dict)
    """Number of replies of models, by seat. Errors are no replies."""
    violations: tuple[Violation, ...] = ()
    """Violations of the task's policy, in the order of the trace."""
    irreversible_calls: int = 0
    """Number of calls that the policy declares irreversible and that had an effect."""
    confidences: Mapping[str, float] = field(default_factory=dict)
    """By seat, the confidence that it stated last, 0 to 1; in the order of the statements."""
    waiting: frozenset[str] = frozenset()
    """Seats that another seat ended while they waited for their turn."""

    def received_calls(
        self, counts_anyway: Callable[[AnsweredCall], bool] = lambda call: False
    ) -> Iterator[ReceivedCall]:
        """Yield the calls that the world received, in the order of their execution. A call that a
        fault delivered twice comes twice; one that a fault held back comes when it was executed.

        Args:
            counts_anyway: decides about calls that the world did not receive.
        """
        listed = {each.number for call in self.calls for each in call.delivered or ()}
        sent = {call.number: call for call in self.calls}
        for position, call in enumerate(self.calls):
            is_received = call.reached_world if call.delivered is None else call.number in listed
            if is_received and call.delivered is None:
                yield ReceivedCall(call, call, position, call.arguments_after)
            elif not is_received and counts_anyway(call):
                yield ReceivedCall(call, call, position, call.arguments_after, is_reached=False)
            for each in call.delivered or ():
                if each.number in sent:
                    yield ReceivedCall(sent[each.number], call, position, each.arguments)

    def successful_calls(self) -> Iterator[AnsweredCall]:
        """Yield the calls that succeeded, once each. A call that a fault held back comes if the
        world executed it later with success."""
        executed = {
            delivery.number
            for call in self.calls
            for delivery in call.delivered or ()
            if delivery.succeeded
        }
        for call in self.calls:
            if call.failure is None and (not call.is_held or call.number in executed):
                yield call

    def final_answer(self, seat: str) -> str | None:
        """Return the last answer of a seat; None if its work did not end with one.

        If another seat ended the conversation, it is the last text that the seat submitted.
        """
        match self.ends.get(seat):
            case Finished() if seat in self.waiting:
                return self.turn_answers[seat][-1]
            case Finished(answer):
                return answer
        return None

    def submitted_texts(self, seat: str) -> tuple[str, ...]:
        """Return all texts that a seat submitted, in order: the answer of each turn, and its last
        answer or its reason to give up."""
        match self.ends.get(seat):
            case Finished(last) | GaveUp(last):
                return (*self.turn_answers.get(seat, ()), last)
        return self.turn_answers.get(seat, ())


def read_evidence(events: Iterable[JsonObject]) -> Evidence:
    """Collect the evidence from the events of one complete trace.

    Raises:
        ValueError: the events are not those of a complete episode.
    """
    calls: list[AnsweredCall] = []
    refusals: list[str] = []
    ends: dict[str, SeatEnd] = {}
    answers: dict[str, tuple[str, ...]] = {}
    submissions: list[Submission] = []
    problems: list[SeenProblem] = []
    replies: Counter[str] = Counter()
    checker, has_policy, violations = PolicyChecker({}), False, list[Violation]()
    confidences: dict[str, float] = {}
    begun, waiting = Counter[str](), set[str]()
    for event in events:
        if has_policy or event.get("policy"):
            with _valid_policy():
                if not has_policy:
                    checker, has_policy = PolicyChecker(as_object(event.get("policy"))), True
                violations += checker.feed(event)
        # Most events are calls, and a pattern takes ten times as long as these comparisons.
        if event.get("kind") == "call" and isinstance(seat := event.get("seat"), str):
            calls.append(_answered_call(event, 1 + len(answers.get(seat, ())), replies[seat]))
            continue
        match event:
            case {"kind": "model_call", "seat": str(seat), "status": 200}:
                replies[seat] += 1
            case {"kind": "turn_began", "seat": str(seat)}:
                begun[seat] += 1
            case {"kind": "turn_ended", "seat": str(seat), "answer": str(answer)}:
                answers[seat] = (*answers.get(seat, ()), answer)
                submissions.append(Submission(seat, answer, len(calls)))
            case {
                "kind": "model_problem",
                "seat": str(seat),
                "problem": str(problem),
                "source": str(source),
            }:
                problems.append(SeenProblem(seat, ModelProblem(problem), source, len(calls)))
            case {"kind": "confidence", "seat": str(seat), "confidence": float() | int() as stated}:
                confidences.pop(seat, None)
                confidences[seat] = float(stated)
            case {"kind": "refused", "refusal": str(refusal)}:
                refusals.append(refusal)
            case {"kind": "seat_ended", "seat": str(seat), "end": dict(end)}:
                ends[seat] = _seat_end(end)
                if begun[seat] and begun[seat] == len(answers.get(seat, ())):
                    waiting.add(seat)
                if isinstance(last := ends[seat], Finished) and last.answer:
                    submissions.append(Submission(seat, last.answer, len(calls)))
            case {"kind": "closed", "final_state": dict(state), "fire_counts": list(fire_counts)}:
                counts = tuple(count for count in fire_counts if isinstance(count, int))
                return Evidence(
                    tuple(calls),
                    tuple(refusals),
                    ends,
                    state,
                    counts,
                    answers,
                    tuple(submissions),
                    tuple(problems),
                    dict(replies),
                    tuple(violations),
                    checker.irreversible_calls,
                    confidences,
                    frozenset(waiting),
                )
    raise ValueError("the trace has no event that closes the episode")


@contextmanager
def _valid_policy() -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"the trace has no valid policy: {error!r}") from None


def _answered_call(event: JsonObject, turn: int, model_calls_before: int) -> AnsweredCall:
    seat, tool, sent = event.get("seat"), event.get("tool"), event.get("arguments")
    state, faults = event.get("state"), event.get("faults")
    if not (
        (isinstance(seat, str) and isinstance(tool, str) and isinstance(sent, dict))
        and (isinstance(state, str) and isinstance(faults, list))
    ):
        raise ValueError(f"not a call: {event!r}")
    arguments_after, output = event.get("arguments_after", sent), event.get("output")
    number = event.get("number")
    return AnsweredCall(
        seat,
        tool,
        sent,
        arguments_after if isinstance(arguments_after, dict) else sent,
        output if isinstance(output, dict) else None,
        _failure(event.get("failure")),
        _fired_rules(faults),
        state,
        turn,
        _units(event.get("charged")),
        _units(event.get("remaining")),
        model_calls_before,
        event.get("executed") is True,
        number if isinstance(number, int) else 0,
        deliveries_of(event),
    )


def _fired_rules(faults: list[Json]) -> tuple[int, ...]:
    rules = (fired["rule"] for fired in faults if isinstance(fired, dict))
    return tuple(rule for rule in rules if isinstance(rule, int))


def _units(value: Json) -> dict[str, int]:
    units = value if isinstance(value, dict) else {}
    return {kind: amount for kind, amount in units.items() if isinstance(amount, int)}


def _failure(value: Json) -> ShownFailure | None:
    if not isinstance(value, dict):
        return None
    kind, code = value.get("kind"), value.get("code")
    message, details = value.get("message"), value.get("details")
    if (isinstance(kind, str) and isinstance(code, str)) and (
        isinstance(message, str) and isinstance(details, dict)
    ):
        return ShownFailure(FailureKind(kind), code, message, details)
    return None


def _seat_end(value: JsonObject) -> SeatEnd:
    match outcome_from_json(value):
        case Infra() as end:
            raise ValueError(f"a seat cannot end like this: {end!r}")
        case end:
            return end
