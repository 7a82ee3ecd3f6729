"""Whatever happens to the orchestrator or to the service: nothing stays open, nothing is left behind."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import grpc
import pytest

from fumehood.core.errors import InfraError
from fumehood.core.outcome import TimedOut
from fumehood.core.trace import BrokenTrace, verify_chain
from fumehood.orchestrator.service_pool import ServiceWorker
from fumehood.service.host import Host
from fumehood.service.open_episode import MonotonicClock
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.wire.control_client import ControlClient
from fumehood.wire.control_server import ControlServer
from fumehood.wire.ports import Opened, Records, SpecRejected
from fumehood.wire.tool_server import ToolServerLimits
from fumehood_agent.errors import ConnectionLost
from fumehood_agent.session import Session
from tests.parts.folders import short_folder
from tests.parts.listening import Listened, listening, wait_until
from tests.parts.raw_seat import RawSeat, refused_with, socket_dir
from tests.parts.specs import episode_spec


def test_an_episode_nobody_listens_to_any_more_is_gone(
    client: ControlClient, episode_id: str
) -> None:
    stream = client.open_episode(episode_spec(episode_id=episode_id))
    opened = next(stream)
    assert isinstance(opened, Opened)
    stream.close()
    assert wait_until(lambda: not os.path.exists(opened.seats[0].directory))
    assert not client.close_episode(episode_id, timed_out=False)


def test_also_when_nothing_happens_in_it(client: ControlClient, episode_id: str) -> None:
    """The service has nothing to send then, so nothing tells it by itself that nobody takes it."""
    stream = client.open_episode(episode_spec(episode_id=episode_id))
    opened, first = next(stream), next(stream)
    assert isinstance(opened, Opened)
    assert isinstance(first, Records)
    time.sleep(0.6)
    stream.close()
    assert wait_until(lambda: not os.path.exists(opened.seats[0].directory))
    assert not client.close_episode(episode_id, timed_out=False)


def test_also_while_its_agent_is_at_work(client: ControlClient, episode_id: str) -> None:
    stream = client.open_episode(episode_spec(episode_id=episode_id))
    opened = next(stream)
    assert isinstance(opened, Opened)
    with socket_dir(opened.seats[0].directory) as connection:
        connection.call("get_account", id="ax1")
        stream.close()
        assert wait_until(lambda: _is_gone(connection))
    assert not client.close_episode(episode_id, timed_out=False)


def test_a_name_is_taken_while_its_episode_is_open(client: ControlClient, episode_id: str) -> None:
    spec = episode_spec(episode_id=episode_id)
    with listening(client, spec) as episode:
        second = next(client.open_episode(spec))
        assert isinstance(second, SpecRejected)
        assert second.field == "episode_id"
        with socket_dir(episode.directory) as connection:
            assert connection.task().instruction == "Do it."


def test_the_end_of_one_episode_is_not_the_end_of_its_namesake(
    client: ControlClient, episode_id: str
) -> None:
    """What is not read keeps the first one's stream open while the second is at work."""
    spec = episode_spec(episode_id=episode_id, world="files", state={})
    unread = client.open_episode(spec)
    opened = next(unread)
    assert isinstance(opened, Opened)
    with socket_dir(opened.seats[0].directory) as connection:
        for _ in range(20):
            connection.call("write_file", path="/a", content="x" * 500_000)
    assert client.close_episode(episode_id, timed_out=False)
    with listening(client, spec) as namesake:
        assert sum(len(message.records) for message in unread if isinstance(message, Records)) == 23
        time.sleep(0.3)
        with socket_dir(namesake.directory) as connection:
            assert connection.task().instruction == "Do it."


def test_closing_twice_or_what_never_was_is_no_error(
    client: ControlClient, episode_id: str
) -> None:
    with listening(client, episode_spec(episode_id=episode_id)) as episode:
        assert episode.close()
        assert not episode.close()
    assert not client.close_episode("never was", timed_out=True)


def test_wall_time_ends_a_seat_that_still_calls(client: ControlClient, episode_id: str) -> None:
    with listening(client, episode_spec(episode_id=episode_id, wall_ms=300)) as episode:
        with socket_dir(episode.directory) as connection:
            assert 0 < connection.task().remaining["wall_ms"] <= 300
            assert wait_until(lambda: connection.call("get_account", id="ax1").ended)
        assert wait_until(lambda: episode.ended_seats == ["agent"])
        episode.close()
        assert episode.evidence.ends == {"agent": TimedOut(300)}


def test_closing_for_want_of_time_ends_a_seat_that_is_silent(
    client: ControlClient, episode_id: str
) -> None:
    with listening(client, episode_spec(episode_id=episode_id, wall_ms=60_000)) as episode:
        episode.close(timed_out=True)
        assert episode.evidence.ends == {"agent": TimedOut(60_000)}
        assert [event["kind"] for event in episode.events] == [
            "opened",
            "seat_ended",
            "closed",
            "sealed",
        ]


def test_a_world_that_cannot_go_on_ends_the_episode_without_a_seal(
    client: ControlClient, episode_id: str
) -> None:
    spec = episode_spec(
        episode_id=episode_id, world="scheduling", state={"jobs": [{"cron": "* * * * *"}]}
    )
    episode = Listened(client, spec)
    with socket_dir(episode.directory) as connection:
        answer = connection.call("create_job", name="a", cron="* * * * *", command="c")
        assert (answer.WhichOneof("result"), answer.ended) == ("refusal", True)
    episode.hear_out()
    assert episode.unhostable == SpecRejected("initial_state.jobs[0].name", "is missing")
    with pytest.raises(BrokenTrace):
        verify_chain(episode.records)
    assert wait_until(lambda: not os.path.exists(episode.directory))
    assert not episode.close()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"world": "moon"}, "harness_mode or world"),
        ({"harness_mode": "mild"}, "harness_mode or world"),
        ({"state": {"accounts": []}}, "initial_state.accounts"),
    ],
)
def test_what_cannot_be_hosted_is_said_and_leaves_nothing(
    client: ControlClient, episode_id: str, change: dict[str, str], field: str
) -> None:
    before = client.health()
    answer = list(client.open_episode(episode_spec(episode_id=episode_id, **change)))  # type: ignore[arg-type]
    assert [type(message) for message in answer] == [SpecRejected]
    assert isinstance(answer[0], SpecRejected)
    assert answer[0].field == field
    assert client.health().episodes_open == before.episodes_open


def test_a_service_that_is_killed_is_missed_by_both_sides(mortal_worker: ServiceWorker) -> None:
    episode = Listened(mortal_worker.client, episode_spec())
    with Session(f"{episode.directory}/grpc.sock") as session:
        session.call("get_account", {"id": "ax1"})
        os.kill(mortal_worker.pid, signal.SIGKILL)
        with pytest.raises(ConnectionLost):
            _call_for_ever(session)
    episode.hear_out()
    assert "UNAVAILABLE" in str(episode.lost)
    with pytest.raises(InfraError):
        mortal_worker.client.health()
    directory = Path(episode.directory)
    mortal_worker.stop()
    assert not directory.exists()


def test_a_full_service_turns_one_more_away_and_still_closes() -> None:
    with short_folder() as directory, ExitStack() as stack:
        host = Host(Path(directory), MonotonicClock(), SeatLimits(), ToolServerLimits())
        server = ControlServer(host, f"{directory}/control.sock", open_episodes=2)
        client = ControlClient(f"{directory}/control.sock")
        one, _ = (
            stack.enter_context(listening(client, episode_spec(episode_id=name)))
            for name in ("one", "two")
        )
        with pytest.raises(InfraError, match="RESOURCE_EXHAUSTED"):
            next(client.open_episode(episode_spec(episode_id="three")))
        assert client.health().episodes_open == 2
        assert one.close()
        stack.enter_context(listening(client, episode_spec(episode_id="three")))
        assert client.health().episodes_open == 2
        stack.close()
        client.close()
        host.close()
        server.stop()


def test_a_socket_that_cannot_be_made_leaves_nothing_open() -> None:
    with short_folder() as directory:
        deep = Path(directory) / ("d" * 100)
        host = Host(deep, MonotonicClock(), SeatLimits(), ToolServerLimits())
        with pytest.raises(InfraError, match="cannot create a socket"):
            host.open_episode(episode_spec())
        assert host.health().episodes_open == 0
        assert list(deep.iterdir()) == []


@pytest.mark.parametrize("method", ["OpenEpisode", "CloseEpisode", "Health"])
def test_an_agent_cannot_reach_the_orchestrators_methods(
    client: ControlClient, episode_id: str, method: str
) -> None:
    spec = episode_spec(episode_id=episode_id)
    with listening(client, spec) as episode, socket_dir(episode.directory) as connection:
        send = connection.channel.unary_unary(f"/fumehood.v1.ControlService/{method}", None, None)
        assert refused_with(lambda: send(b""))[0] is grpc.StatusCode.UNIMPLEMENTED


def _is_gone(connection: RawSeat) -> bool:
    try:
        connection.call("get_account", id="ax1")
    except grpc.RpcError:
        return True
    return False


def _call_for_ever(session: Session) -> NoReturn:
    while True:
        session.call("get_account", {"id": "ax1"})
