"""A person at a terminal decides about steps."""

from __future__ import annotations

import os
import select
import termios
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from fumehood.core.episode_spec import EpisodeSpec, MonitorSpec
from fumehood.core.errors import InputError
from fumehood.core.outcome import EndedByMonitor, InfraKind
from fumehood.orchestrator.person import QUESTION, Person, read_decision
from fumehood.orchestrator.service_pool import ServiceOptions, ServicePool
from fumehood.orchestrator.trace_receiver import rejection_kind
from fumehood_agent.errors import Ended, FumehoodError
from fumehood_agent.session import Session
from tests.parts.listening import Listened, listening
from tests.parts.specs import episode_spec

PATIENCE_S = 30.0


class Terminal:
    """A pseudo-terminal, and what was shown on it."""

    def __init__(self) -> None:
        self._own_end, self._other_end = os.openpty()
        settings = termios.tcgetattr(self._other_end)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self._other_end, termios.TCSANOW, settings)
        self.path = Path(os.ttyname(self._other_end))
        self.shown = ""

    def answer(self, *lines: str) -> None:
        """Type one line after each question."""
        for line in lines:
            before = self.shown.count(QUESTION)
            while self.shown.count(QUESTION) == before:
                assert select.select([self._own_end], [], [], PATIENCE_S)[0], self.shown
                self.shown += os.read(self._own_end, 4096).decode()
            os.write(self._own_end, f"{line}\n".encode())

    def close(self) -> None:
        os.close(self._own_end)
        os.close(self._other_end)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal()
    yield opened
    opened.close()


def _spec() -> EpisodeSpec:
    return replace(episode_spec(), monitors=("person",))


@contextmanager
def _episode(terminal: Terminal, deadline_ms: int = 60_000) -> Iterator[tuple[Listened, Session]]:
    spec = MonitorSpec(name="person", kind="person", settings={}, deadline_ms=deadline_ms)
    with (
        closing(Person(terminal.path)) as person,
        ServicePool(1, ServiceOptions(monitors=[spec], person=person)) as pool,
        pool.lease() as client,
        listening(client, _spec()) as episode,
        Session(Path(episode.directory) / "grpc.sock") as session,
    ):
        yield episode, session


@pytest.mark.slow
def test_a_person_allows_refuses_and_ends(terminal: Terminal) -> None:
    with _episode(terminal) as (episode, session):
        lines = ("a", "what?", "r 0.7 not that one", "e")
        typing = Thread(target=terminal.answer, args=lines, daemon=True)
        typing.start()
        assert "basic" in str(session.call("get_account", {"id": "ax1"}))
        assert "refused_by_monitor" in str(session.call("get_account", {"id": "\x1b[2J"}))
        session.call("get_account", {"id": "ax1"})
        with pytest.raises(Ended):
            session.call("get_account", {"id": "ax1"})
        typing.join(PATIENCE_S)
        episode.close()
    refused, ended = (event["decision"] for event in episode.events if event["kind"] == "monitor")
    assert (refused["suspicion"], refused["reason"]) == (0.7, "not that one")
    assert ended["action"] == "end"
    assert episode.evidence.ends == {"agent": EndedByMonitor("person", "tool")}
    # Text of the agent does not control the terminal.
    assert "\x1b" not in terminal.shown
    assert "\\u001b[2J" in terminal.shown


@pytest.mark.slow
def test_what_was_typed_before_a_step_was_shown_does_not_decide_about_it(
    terminal: Terminal,
) -> None:
    with _episode(terminal) as (_, session):
        typing = Thread(target=terminal.answer, args=("a\na", "r"), daemon=True)
        typing.start()
        assert "basic" in str(session.call("get_account", {"id": "ax1"}))
        assert "refused_by_monitor" in str(session.call("get_account", {"id": "ax1"}))
        typing.join(PATIENCE_S)


@pytest.mark.slow
def test_a_person_learns_how_much_is_not_shown(terminal: Terminal) -> None:
    with _episode(terminal) as (_, session):
        typing = Thread(target=terminal.answer, args=("r",), daemon=True)
        typing.start()
        session.call("get_account", {"id": "x" * 5000 + "payload"})
        typing.join(PATIENCE_S)
    assert "payload" not in terminal.shown
    assert "[NOT SHOWN: " in terminal.shown


@pytest.mark.slow
def test_an_agent_is_not_the_reason_that_a_person_does_not_answer(terminal: Terminal) -> None:
    with _episode(terminal, deadline_ms=300) as (episode, session):
        with suppress(FumehoodError):
            session.call("get_account", {"id": "ax1"})
        episode.hear_out()
    assert episode.unhostable is not None
    assert rejection_kind(episode.unhostable.field) is InfraKind.MONITOR


def test_a_person_needs_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs a terminal"):
        Person(tmp_path / "none")


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("a\n", ("allow", 0.0, "")),
        ("a 0.2 odd\n", ("allow", 0.2, "odd")),
        ("r\n", ("refuse", 1.0, "")),
        ("e too late\n", ("end", 1.0, "too late")),
    ],
)
def test_a_decision_has_an_optional_suspicion_and_reason(
    line: str, decision: tuple[str, float, str]
) -> None:
    action, suspicion, reason = decision
    assert read_decision(line) == {"action": action, "suspicion": suspicion, "reason": reason}


@pytest.mark.parametrize("line", ["\n", "yes\n", "r 7\n", "r nan\n"])
def test_anything_else_is_no_decision(line: str) -> None:
    assert read_decision(line) is None
