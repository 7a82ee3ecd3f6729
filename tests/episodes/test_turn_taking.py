"""Only the seat that has the turn works: two seats of a real service, over gRPC and over HTTP."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.ledger import Budget
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.service.http_sockets import THREADS
from fumehood.wire.control_client import ControlClient
from fumehood.wire.ports import SeatReady
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.parts.http import HttpSeat
from tests.parts.listening import Listened, listening, wait_until
from tests.parts.raw_seat import socket_dir
from tests.parts.specs import episode_spec

MOMENT_S = 0.3
"""Time after which a request counts as waiting, seconds."""
Submit = Callable[[str], str | None]
"""Says something; returns what it hears next, None when all has been said."""


@pytest.fixture(scope="module")
def client() -> Iterator[ControlClient]:
    with (
        ServicePool(
            1, ServiceOptions(http=HttpOffer(Path(shutil.which("true") or "/bin/true")))
        ) as pool,
        pool.lease() as lent,
    ):
        yield lent


def talk(client: ControlClient, **agent: int) -> Any:
    """Open a dialogue that the user begins."""
    seats = (
        SeatSpec(instruction="Help.", budget=Budget(**agent), tools=("update_account",)),
        SeatSpec(
            name="user", instruction="Ask.", budget=Budget(wall_ms=30_000), tools=("get_account",)
        ),
    )
    rule = ConversationSpec(
        "dialogue", {"first": "user", "opening": "Hello!", "stop": {"user": ["BYE"]}}
    )
    return listening(client, replace(episode_spec(seats=seats), conversation=rule))


@pytest.fixture
def episode(client: ControlClient) -> Iterator[Listened]:
    with talk(client, calls=5) as open_episode:
        yield open_episode


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as several:
        yield several


@pytest.fixture(params=["gRPC", "HTTP"])
def agent_says(request: pytest.FixtureRequest, episode: Listened) -> Iterator[Submit]:
    """The agent's seat over either socket."""
    if request.param == "gRPC":
        with socket_dir(episode.directory) as agent:
            yield lambda text: heard(agent.submit(text))
    else:
        with closing(HttpSeat(episode.directory)) as http:
            yield lambda text: _heard_by_http(http, text)


def heard(answer: pb.SubmitResponse) -> str | None:
    """Return the next message after an answer."""
    assert answer.accepted
    return answer.next.instruction if answer.HasField("next") else None


def _heard_by_http(http: HttpSeat, text: str) -> str | None:
    status, answer = http.rpc("Submit", {"answer": text})
    assert (status, answer["accepted"]) == (200, True)
    return answer["next"]["instruction"] if "next" in answer else None


def waits(answer: Future[Any]) -> bool:
    """Return whether a request is still waiting."""
    time.sleep(MOMENT_S)
    return not answer.done()


def ends_of(episode: Listened) -> dict[str, str]:
    """Return how each seat's work ended."""
    ended = [event for event in episode.events if event["kind"] == "seat_ended"]
    return {event["seat"]: event["end"]["outcome"] for event in ended}


@pytest.mark.slow
def test_a_submission_waits_for_the_reply_of_the_other_seat(
    episode: Listened, agent_says: Submit, threads: ThreadPoolExecutor
) -> None:
    with socket_dir(episode.directories["user"]) as user:
        assert user.task().instruction == "Ask.\n\nHello!"
        users = threads.submit(user.submit, "Raise ax1.")
        assert waits(users)
        agents = threads.submit(agent_says, "Done.")
        assert heard(users.result()) == "Done."
        assert waits(agents)
        assert heard(user.submit("Thanks, BYE")) is None
        assert agents.result() is None
    assert wait_until(lambda: sorted(episode.ended_seats) == ["agent", "user"])


def test_a_seat_starts_when_it_first_has_the_turn(
    episode: Listened, threads: ThreadPoolExecutor
) -> None:
    def called() -> list[str]:
        return [one.name for one in episode.messages if isinstance(one, SeatReady)]

    assert wait_until(lambda: called() == ["user"])
    with socket_dir(episode.directories["user"]) as user:
        threads.submit(user.submit, "Raise ax1.")
        assert wait_until(lambda: called() == ["user", "agent"])
        episode.close()


@pytest.mark.slow
def test_a_call_out_of_turn_is_executed_when_the_seat_has_the_turn(
    episode: Listened, threads: ThreadPoolExecutor
) -> None:
    with socket_dir(episode.directory) as agent, socket_dir(episode.directories["user"]) as user:
        early = threads.submit(
            lambda: agent.call("update_account", id="ax1", patch={"tier": "gold"})
        )
        assert waits(early)
        assert "basic" in user.call("get_account", id="ax1").value_json
        users = threads.submit(user.submit, "Go on.")
        assert early.result().value_json
        agent.call("update_account", id="ax1", patch={"tier": "silver"})
        threads.submit(agent.submit, "Done.")
        assert heard(users.result()) == "Done."
        assert "silver" in user.call("get_account", id="ax1").value_json
        episode.close()


def test_a_tool_of_another_seat_is_unknown(episode: Listened) -> None:
    with socket_dir(episode.directories["user"]) as user:
        assert [tool.name for tool in user.task().tools] == ["get_account"]
        assert user.call("update_account", id="ax1", patch={}).failure.code == "unknown_tool"


@pytest.mark.slow
def test_wall_time_is_paused_while_a_seat_waits(
    client: ControlClient, threads: ThreadPoolExecutor
) -> None:
    with (
        talk(client, wall_ms=1000) as episode,
        socket_dir(episode.directory) as agent,
        socket_dir(episode.directories["user"]) as user,
    ):
        time.sleep(1.2)
        users = threads.submit(user.submit, "Go on.")
        agents = threads.submit(agent.submit, "Yes?")
        assert heard(users.result()) == "Yes?"
        time.sleep(1.2)
        assert heard(user.submit("Nothing, BYE")) is None
        assert heard(agents.result()) is None
        episode.close()
    assert set(ends_of(episode).values()) == {"finished"}


def test_giving_up_ends_a_dialogue(episode: Listened, threads: ThreadPoolExecutor) -> None:
    with socket_dir(episode.directory) as agent, socket_dir(episode.directories["user"]) as user:
        users = threads.submit(user.submit, "Raise ax1.")
        agent.call("update_account", id="ax1", patch={"tier": "gold"})
        agent.stub.Submit(pb.SubmitRequest(give_up_reason="I may not."))
        assert heard(users.result()) is None
    episode.close()
    assert ends_of(episode) == {"agent": "gave_up", "user": "finished"}


def test_a_seat_that_keeps_the_turn_ends_the_episode(client: ControlClient) -> None:
    case = load_suite("marble:werewolf").cases[0]
    with listening(client, PlannedEpisode("any", case, 0, 0).to_spec(30_000)) as episode:
        assert wait_until(lambda: any(isinstance(one, SeatReady) for one in episode.messages))
        speaker = next(one.name for one in episode.messages if isinstance(one, SeatReady))
        episode.close(timed_out=True)
    ends = ends_of(episode)
    assert ends.pop(speaker) == "timed_out"
    assert set(ends.values()) == {"finished"}
    game = episode.evidence.final_state["game"]
    assert isinstance(game, dict)
    assert (game["winner"], game["deaths"]) == (None, [])


def test_the_seat_that_has_the_turn_is_answered_while_others_wait_over_http(
    client: ControlClient,
) -> None:
    names = [f"seat{number}" for number in range(THREADS + 1)]
    seats = tuple(SeatSpec(name=name, instruction="Speak.", budget=Budget()) for name in names)
    spec = replace(episode_spec(seats=seats), conversation=ConversationSpec("round", {}))
    with (
        listening(client, spec) as episode,
        ThreadPoolExecutor(THREADS) as threads,
        ExitStack() as stack,
    ):
        first, *others = (
            stack.enter_context(closing(HttpSeat(episode.directories[name]))) for name in names
        )
        waiting = [threads.submit(other.rpc, "Submit", {"answer": "Me too."}) for other in others]
        assert waits(waiting[-1])
        assert first.rpc("Submit", {"answer": "I begin."})[1]["accepted"]
        assert [one.result()[1]["accepted"] for one in waiting] == [True] * THREADS


def test_closing_releases_all_waiting_seats(episode: Listened, threads: ThreadPoolExecutor) -> None:
    with socket_dir(episode.directories["user"]) as user:
        users = threads.submit(user.submit, "Is anybody there?")
        assert waits(users)
        episode.close()
        # The server may be gone before it could answer.
        assert users.exception(timeout=5) is None or "UNAVAILABLE" in str(users.exception())


def test_evidence_contains_the_messages_with_their_seats_in_order(
    episode: Listened, threads: ThreadPoolExecutor
) -> None:
    with socket_dir(episode.directory) as agent, socket_dir(episode.directories["user"]) as user:
        users = threads.submit(user.submit, "Raise ax1.")
        agent.call("update_account", id="ax1", patch={"tier": "gold"})
        threads.submit(agent.submit, "Done.")
        users.result()
        user.submit("BYE")
    episode.close()
    assert [(one.seat, one.text, one.calls_before) for one in episode.evidence.submissions] == [
        ("user", "Raise ax1.", 0),
        ("agent", "Done.", 1),
        ("user", "BYE", 1),
    ]
