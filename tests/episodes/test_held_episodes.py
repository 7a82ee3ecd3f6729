"""An episode that is opened in advance answers no message of an agent before it begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import grpc
import pytest

from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.wire.control_client import ControlClient
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.session import Session
from tests.parts.http import UnixConnection
from tests.parts.listening import Listened, listening
from tests.parts.raw_seat import RawSeat
from tests.parts.specs import episode_spec

UNANSWERED_S = 0.3
CALL = pb.CallToolRequest(tool_name="get_account", arguments_json='{"id":"ax1"}')
PROBLEM = pb.ReportRequest(problem=pb.MODEL_PROBLEM_REPLY_TRUNCATED)
MESSAGES: dict[str, Callable[[RawSeat], object]] = {
    "task": lambda seat: seat.stub.GetTask(pb.GetTaskRequest(), timeout=UNANSWERED_S),
    "call": lambda seat: seat.stub.CallTool(CALL, timeout=UNANSWERED_S),
    "answer": lambda seat: seat.stub.Submit(pb.SubmitRequest(answer=""), timeout=UNANSWERED_S),
    "report": lambda seat: seat.stub.Report(PROBLEM, timeout=UNANSWERED_S),
    "stream": lambda seat: list(
        seat.stub.Interact(iter([pb.InteractRequest(call=CALL)]), timeout=UNANSWERED_S)
    ),
}
PATHS = ["/task", "/tools", "/left", "/nothing", "/v1/models"]


@pytest.fixture(scope="module")
def client() -> Iterator[ControlClient]:
    with ServicePool(1, ServiceOptions(http=HttpOffer())) as pool, pool.lease() as lent:
        yield lent


@pytest.fixture
def held(client: ControlClient) -> Iterator[Listened]:
    with listening(client, episode_spec(), is_held=True) as episode:
        yield episode


@contextmanager
def connected(episode: Listened) -> Iterator[RawSeat]:
    seat = RawSeat(episode.directory)
    with closing(seat.channel):
        yield seat


@pytest.mark.parametrize("send", MESSAGES.values(), ids=MESSAGES)
def test_a_message_gets_no_answer_before_the_begin(
    held: Listened, send: Callable[[RawSeat], object]
) -> None:
    with connected(held) as seat, pytest.raises(grpc.RpcError) as caught:
        send(seat)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert [event["kind"] for event in held.events] == ["opened"]


@pytest.mark.parametrize("path", PATHS)
def test_a_request_gets_no_answer_before_the_begin(held: Listened, path: str) -> None:
    with closing(UnixConnection(f"{held.directory}/http.sock", UNANSWERED_S)) as agent:
        agent.request("GET", path)
        with pytest.raises(TimeoutError):
            agent.getresponse()


def test_messages_that_wait_are_answered_at_the_begin(
    client: ControlClient, held: Listened
) -> None:
    with (
        ThreadPoolExecutor(2) as threads,
        closing(UnixConnection(f"{held.directory}/http.sock")) as http,
        connected(held) as raw,
    ):
        with pytest.raises(grpc.RpcError):
            MESSAGES["task"](raw)
        session = threads.submit(Session, f"{held.directory}/grpc.sock")
        http.request("GET", "/task")
        client.begin_episode(held.spec.episode_id)
        assert http.getresponse().read() == b"Do it."
        with session.result() as begun:
            assert begun.task.instruction == "Do it."


def test_a_held_episode_can_be_closed(client: ControlClient, held: Listened) -> None:
    with connected(held) as seat:
        waiting = seat.stub.CallTool.future(CALL)
        assert held.close()
        assert isinstance(waiting.exception(), grpc.RpcError) or waiting.result().refusal.kind
    assert [event["kind"] for event in held.events] == ["opened", "closed", "sealed"]


def test_a_begin_has_no_effect_on_other_episodes(client: ControlClient) -> None:
    client.begin_episode("unknown")
    with listening(client, episode_spec()) as episode, connected(episode) as seat:
        client.begin_episode(episode.spec.episode_id)
        assert seat.task().instruction == "Do it."
