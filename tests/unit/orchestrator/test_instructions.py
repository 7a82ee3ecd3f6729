"""Changes of instructions: the question about the confidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.core.conversation import Turn
from fumehood.core.errors import InputError
from fumehood.core.task import Case, Suite
from fumehood.core.trace import verify_chain
from fumehood.orchestrator.instructions import AS_IN_TASKS, ASK, Instructions
from fumehood.orchestrator.plan import plan_episodes
from fumehood.service.seat_endpoint import split_confidence
from tests.parts.memory_runs import builtin, play_run

CASE = load_suite("sample").cases[0]
ASKED = Instructions(ask_confidence=True)


def _with(case: Case, instruction: str, *turns: str) -> Case:
    (seat,) = case.task.seats
    further = tuple(Turn(text, ()) for text in turns)
    seat = replace(seat, instruction=instruction, further_turns=further)
    return replace(case, task=replace(case.task, seats=(seat,)))


def test_without_a_change_the_seats_are_those_of_the_task() -> None:
    assert AS_IN_TASKS.of(CASE) == CASE.task.seats
    assert not AS_IN_TASKS.of(CASE)[0].asks_confidence


def test_the_question_ends_the_last_message() -> None:
    (seat,) = ASKED.of(_with(CASE, "Do it."))
    assert (seat.instruction, seat.asks_confidence) == (f"Do it.\n\n{ASK}", True)
    (seat,) = ASKED.of(_with(CASE, "Do it.", "And this.", "Thank you."))
    assert (seat.instruction, seat.further_turns[0].instruction) == ("Do it.", "And this.")
    assert seat.further_turns[1].instruction == f"Thank you.\n\n{ASK}"


def test_a_task_that_asks_already_is_refused() -> None:
    case = _with(CASE, "Answer in two lines.\nConfidence: {your confidence}")
    with pytest.raises(InputError, match="asks for a confidence already"):
        ASKED.check(Suite("x", (case,)))
    AS_IN_TASKS.check(Suite("x", (case,)))


def test_asking_changes_only_what_the_trace_says_about_the_seat(tmp_path: Path) -> None:
    suite, players = Suite("sample", (CASE,)), {"oracle": builtin("noop")}
    plain = play_run(tmp_path / "plain", suite, players)
    asked = play_run(tmp_path / "asked", suite, players, instructions=ASKED)
    events = [
        [json.loads(record.event_json) for record in run.read_trace(run.rows()[0])]
        for run in (plain, asked)
    ]
    assert "asks_confidence" not in json.dumps(events[0])
    assert events[1][0]["seats"][0].pop("asks_confidence") is True
    assert events[0][:-1] == events[1][:-1]
    assert verify_chain(plain.read_trace(plain.rows()[0])) == plain.rows()[0].trace_digest


def test_the_plan_hands_the_change_to_every_episode() -> None:
    suite = Suite("sample", (CASE,))
    planned = list(plan_episodes(suite, ("a", "b"), 2, 0, instructions=ASKED))
    assert all(episode.to_spec(1).seats[0].asks_confidence for episode in planned)


@pytest.mark.parametrize(
    ("text", "rest", "confidence"),
    [
        ("42\nConfidence: 80 %", "42", 0.8),
        ("42\n\n**Confidence:** 0.25\n", "42", 0.25),
        ("confidence = 100%.", "", 1.0),
        ("42\nConfidence: 85", "42", 0.85),
        ("42\nConfidence: 1", "42", 1.0),
        ("42\nConfidence: 300 %", "42\nConfidence: 300 %", None),
        ("Confidence: 80 %\n42", "Confidence: 80 %\n42", None),
        ("I have confidence: 80 %", "I have confidence: 80 %", None),
        ("", "", None),
    ],
)
def test_only_a_last_line_states_a_confidence(
    text: str, rest: str, confidence: float | None
) -> None:
    assert split_confidence(text) == (rest, confidence)


@given(st.text(), st.integers(0, 100))
def test_a_stated_confidence_is_read_after_any_text(text: str, percent: int) -> None:
    rest, confidence = split_confidence(f"{text}\nConfidence: {percent} %")
    assert confidence == percent / 100
    assert text.startswith(rest)


@given(st.text(alphabet="confidence: 8%\n*"))
def test_the_rest_is_the_beginning_of_the_text(text: str) -> None:
    rest, confidence = split_confidence(text)
    assert text.startswith(rest)
    assert confidence is None or 0 <= confidence <= 1
    assert confidence is not None or rest == text
