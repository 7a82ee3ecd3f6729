"""After a failure of the orchestrator or the service, nothing stays open and nothing remains."""

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
from fumehood.core.outcome import AgentCrashed, TimedOut
from fumehood.core.trace import verify_chain
from fumehood.orchestrator.service_pool import ServiceWorker
from fumehood.service.forked_episode import EpisodeProcesses
from fumehood.service.host import Host
from fumehood.service.hosted_episode import HostedEpisode
from fumehood.service.message_limits import MessageLimits
from fumehood.service.open_episode import MonotonicClock
from fumehood.wire.control_client import ControlClient
from fumehood.wire.control_server import ControlServer
from fumehood.wire.ports import Opened, Records, SpecRejected
from fumehood_agent.errors import ConnectionLost
from fumehood_agent.session import Session
from tests.parts.folders import short_folder
from tests.parts.listening import Listened, listening, wait_until
from tests.parts.raw_seat import RawSeat, refused_with, socket_dir
from tests.parts.specs import episode_spec


def test_an_episode_without_a_reader_is_closed(client: ControlClient, episode_id: str) -> None:
    stream = client.open_episode(episode_spec(episode_id=episode_id))
    opened = next(stream)
    assert isinstance(opened, Opened)
    stream.close()
    assert wait_until(lambda: not os.path.exists(opened.seats[0].directory))
    assert wait_until(lambda: client.health().episodes_open == 0)
    assert not client.close_episode(episode_id, timed_out=False)


def test_an_idle_episode_without_a_reader_is_closed(client: ControlClient, episode_id: str) -> None:
    """The service sends nothing in this case, so no failed write reveals the missing reader."""
    stream = client.open_episode(episode_spec(episode_id=episode_id))
    opened, first = next(stream), next(stream)
    assert isinstance(opened, Opened)
    assert isinstance(first, Records)
    time.sleep(0.6)
    stream.close()
    assert wait_until(lambda: not os.path.exists(opened.seats[0].directory))
    assert wait_until(lambda: client.health().episodes_open == 0)
    assert not client.close_episode(episode_id, timed_out=False)


def test_a_busy_episode_without_a_reader_is_closed(client: ControlClient, episode_id: str) -> None:
    stream = client.open_episode(episode_spec(episode_id=episode_id))
    opened = next(stream)
    assert isinstance(opened, Opened)
    with socket_dir(opened.seats[0].directory) as connection:
        connection.call("get_account", id="ax1")
        stream.close()
        assert wait_until(lambda: _is_gone(connection))
    # The service learns of the end of a process after the sockets are gone.
    assert wait_until(lambda: client.health().episodes_open == 0)
    assert not client.close_episode(episode_id, timed_out=False)


def test_an_episode_id_is_in_use_while_the_episode_is_open(
    client: ControlClient, episode_id: str
) -> None:
    spec = episode_spec(episode_id=episode_id)
    with listening(client, spec) as episode:
        second = next(client.open_episode(spec))
        assert isinstance(second, SpecRejected)
        assert second.field == "episode_id"
        with socket_dir(episode.directory) as connection:
            assert connection.task().instruction == "Do it."


@pytest.mark.slow
def test_closing_an_episode_does_not_close_a_later_one_with_the_same_id(
    client: ControlClient, episode_id: str
) -> None:
    """Unread messages keep the first stream open while the second episode runs."""
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


def test_closing_twice_or_an_unknown_episode_is_no_error(
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


def test_a_timeout_ends_a_silent_seat(client: ControlClient, episode_id: str) -> None:
    with listening(client, episode_spec(episode_id=episode_id, wall_ms=60_000)) as episode:
        episode.close(timed_out=True)
        assert episode.evidence.ends == {"agent": TimedOut(60_000)}
        assert [event["kind"] for event in episode.events] == [
            "opened",
            "seat_ended",
            "closed",
            "sealed",
        ]


def test_a_world_that_fails_on_a_call_ends_the_episode_as_the_agents_failure(
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
    assert episode.unhostable is None
    verify_chain(episode.records)
    end = episode.evidence.ends["agent"]
    assert isinstance(end, AgentCrashed)
    assert "initial_state.jobs[0].name: is missing" in end.detail
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
def test_an_invalid_episode_is_rejected_and_leaves_nothing(
    client: ControlClient, episode_id: str, change: dict[str, str], field: str
) -> None:
    before = client.health()
    answer = list(client.open_episode(episode_spec(episode_id=episode_id, **change)))  # type: ignore[arg-type]
    assert [type(message) for message in answer] == [SpecRejected]
    assert isinstance(answer[0], SpecRejected)
    assert answer[0].field == field
    assert client.health().episodes_open == before.episodes_open


@pytest.mark.slow
def test_both_sides_notice_a_killed_service(mortal_worker: ServiceWorker) -> None:
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


@pytest.mark.slow
def test_a_full_service_rejects_another_episode_and_can_be_closed() -> None:
    with short_folder() as directory, ExitStack() as stack:
        limits = MessageLimits()
        processes = EpisodeProcesses(None, Path(directory), limits, has_http=False, helper=None)
        processes.start()
        stack.callback(processes.stop)
        host = Host(MonotonicClock(), limits, processes)
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


def test_a_failed_socket_leaves_nothing_open() -> None:
    with short_folder() as directory:
        deep = Path(directory) / ("d" * 100)
        with pytest.raises(InfraError, match="cannot create a socket"):
            HostedEpisode(episode_spec(), deep, MonotonicClock(), MessageLimits())
        assert not deep.exists()


@pytest.mark.parametrize("method", ["OpenEpisode", "BeginEpisode", "CloseEpisode", "Health"])
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
