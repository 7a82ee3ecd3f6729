"""Changes of instructions: the question about the confidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.show import show
from fumehood.core.conversation import Turn
from fumehood.core.errors import InputError
from fumehood.core.task import Case, Suite
from fumehood.core.trace import verify_chain
from fumehood.orchestrator.instructions import AS_IN_TASKS, ASK, Instructions
from fumehood.orchestrator.plan import plan_episodes
from fumehood.service.seat_endpoint import split_confidence
from fumehood_agent.seat import Seat
from tests.parts.memory_runs import builtin, play_run

CASE = load_suite("sample").cases[0]
ASKED = Instructions(ask_confidence=True)


def _with(case: Case, instruction: str, *turns: str) -> Case:
    (seat,) = case.task.seats
    further = tuple(Turn(text, ()) for text in turns)
    seat = replace(seat, instruction=instruction, further_turns=further)
    return replace(case, task=replace(case.task, seats=(seat,)))


def test_without_a_change_the_seats_are_those_of_the_task() -> None:
    assert AS_IN_TASKS.of(CASE, 0) == CASE.task.seats
    assert not AS_IN_TASKS.of(CASE, 0)[0].asks_confidence


def test_the_question_ends_the_last_message() -> None:
    (seat,) = ASKED.of(_with(CASE, "Do it."), 0)
    assert (seat.instruction, seat.asks_confidence) == (f"Do it.\n\n{ASK}", True)
    (seat,) = ASKED.of(_with(CASE, "Do it.", "And this.", "Thank you."), 0)
    assert (seat.instruction, seat.further_turns[0].instruction) == ("Do it.", "And this.")
    assert seat.further_turns[1].instruction == f"Thank you.\n\n{ASK}"


def test_a_task_that_asks_already_is_refused() -> None:
    case = _with(CASE, "Answer in two lines.\nConfidence: {your confidence}")
    with pytest.raises(InputError, match="asks for a confidence already"):
        ASKED.check(Suite("x", (case,)), 1)
    AS_IN_TASKS.check(Suite("x", (case,)), 1)


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


def test_each_trial_has_one_wording_and_the_trace_names_it(tmp_path: Path) -> None:
    heard: list[str] = []

    def listens(seat: Seat) -> None:
        heard.append(seat.task.instruction)
        seat.submit()

    reworded = Instructions(prompt_variants=2, seed=7)
    suite = Suite("sample", (CASE,))
    run = play_run(tmp_path / "run", suite, {"a": listens}, trials=3, seed=7, instructions=reworded)
    texts = [reworded.of(CASE, trial)[0].instruction for trial in range(3)]
    assert heard == texts
    assert len({*texts, CASE.task.seats[0].instruction}) == 3
    assert texts[0] == texts[2]
    seats = [json.loads(run.read_trace(row)[0].event_json)["seats"] for row in run.rows()]
    assert [seat["prompt_variant"] for (seat,) in seats] == [1, 2, 1]
    shown = CliRunner().invoke(
        show, [str(run.path), str(run.rows()[1].name)], catch_exceptions=False
    )
    assert texts[1].splitlines()[0] in shown.stdout


def test_messages_of_counterparts_are_not_changed() -> None:
    task = replace(CASE.task, counterparts={CASE.task.seats[0].name: "script"})
    changed = Instructions(ask_confidence=True, prompt_variants=1)
    assert changed.of(replace(CASE, task=task), 0) == CASE.task.seats


@pytest.mark.parametrize(
    ("variants", "trials", "benchmark", "reword_published", "message"),
    [
        (3, 2, "native", False, "`trials` is 2: add --trials 3"),
        (
            1,
            1,
            "taubench",
            False,
            "of taubench are published .* --reword-published",
        ),
        (0, 1, "taubench", True, "--reword-published has no effect"),
        (1, 1, "native", True, "--reword-published has no effect"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(
    variants: int, trials: int, benchmark: str, reword_published: bool, message: str
) -> None:
    task = replace(CASE.task, tags={"benchmark": benchmark})
    suite = Suite("x", (replace(CASE, task=task),))
    with pytest.raises(InputError, match=message):
        Instructions(prompt_variants=variants).check(
            suite, trials, reword_published=reword_published
        )


def test_published_instructions_are_reworded_on_request() -> None:
    task = replace(CASE.task, tags={"benchmark": "taubench"})
    Instructions(prompt_variants=1).check(
        Suite("x", (replace(CASE, task=task),)), 1, reword_published=True
    )
