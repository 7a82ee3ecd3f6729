"""The session for asyncio, over a real socket: the same words as the other one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from time import sleep

import grpc
import pytest

from fumehood_agent import (
    ConnectionLost,
    DeadlinePassed,
    Ended,
    Failure,
    NotReachable,
    RefusalKind,
    Refused,
    ServiceFailed,
    Session,
    Value,
)
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.aio import AsyncSession
from fumehood_agent.seat import ModelProblem
from tests.unit.agent_sdk.relay import Relay
from tests.unit.agent_sdk.scripted_service import (
    LossyService,
    ScriptedService,
    echo,
    failure,
    refusal,
    value,
)


def _work(
    path: Path, work: Callable[[AsyncSession], Awaitable[None]], service_timeout_ms: int = 5000
) -> None:
    async def sit_down() -> None:
        async with AsyncSession(path, service_timeout_ms=service_timeout_ms) as session:
            await work(session)

    asyncio.run(sit_down())


def _public(cls: type) -> set[str]:
    return {name for name in vars(cls) if not name.startswith("_")}


def test_it_has_the_methods_of_the_other_session() -> None:
    assert _public(AsyncSession) == _public(Session)


def test_the_task_is_available_after_entering(service: ScriptedService) -> None:
    async def work(session: AsyncSession) -> None:
        with Session(service.path) as other:
            assert session.task == other.task

    _work(service.path, work)


def test_a_connected_service_may_answer_after_the_timeout(service: ScriptedService) -> None:
    async def work(session: AsyncSession) -> None:
        assert session.task.instruction == "Say «ψ» twice."

    service.has_begun.clear()
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(_work, service.path, work, service_timeout_ms=500)
        service.wait_for_patient_request()
        done.result(20)


def test_the_request_for_the_task_has_the_timeout_of_the_session(
    service: ScriptedService,
) -> None:
    async def work(session: AsyncSession) -> None:
        assert len(service.task_deadlines_s) == 1
        assert 0 < service.task_deadlines_s[0] < 0.95

    _work(service.path, work, service_timeout_ms=900)


def test_a_socket_that_appears_within_the_timeout_is_used(tmp_path: Path) -> None:
    async def enter() -> None:
        session = AsyncSession(tmp_path / "s", service_timeout_ms=900)
        entering = asyncio.create_task(session.__aenter__())
        await asyncio.sleep(0)
        with ScriptedService(tmp_path / "s"):
            assert (await entering).task.tools
            await session.close()

    asyncio.run(enter())


def test_a_request_for_the_task_that_failed_is_not_repeated(tmp_path: Path) -> None:
    class Broken(ScriptedService):
        def GetTask(
            self, request: pb.GetTaskRequest, context: grpc.ServicerContext
        ) -> pb.GetTaskResponse:
            self.tasks_requested.release()
            raise ZeroDivisionError

    async def never(session: AsyncSession) -> None:
        raise AssertionError

    with Broken(tmp_path / "s") as service:
        with pytest.raises(ServiceFailed, match="UNKNOWN"):
            _work(service.path, never)
        assert service.tasks_requested.acquire(blocking=False)
        assert not service.tasks_requested.acquire(blocking=False)


def test_it_returns_values_and_failures(service: ScriptedService) -> None:
    async def work(session: AsyncSession) -> None:
        assert (await session.call("echo", {"ψ": 10**40})).result == Value({"ψ": 10**40})
        assert (await session.call_json("echo", '{"a":1.0}')).result == Value({"a": 1.0})
        service.answer = lambda _: failure("not_found")
        assert (await session.call("echo")).result == Failure("not_found", "no", {})

    _work(service.path, work)


def test_calls_of_several_tasks_do_not_wait_for_each_other(service: ScriptedService) -> None:
    arrived, together = [Event(), Event()], Event()

    def answer(request: pb.CallToolRequest) -> pb.CallToolResponse:
        number = json.loads(request.arguments_json)["n"]
        arrived[number].set()
        assert arrived[1 - number].wait(5)
        together.set()
        return echo(request)

    service.answer = answer

    async def work(session: AsyncSession) -> None:
        replies = await asyncio.gather(*(session.call("echo", {"n": n}) for n in range(2)))
        assert [reply.result for reply in replies] == [Value({"n": 0}), Value({"n": 1})]

    _work(service.path, work)
    assert together.is_set()


def test_a_refusal_is_raised_and_the_work_continues(service: ScriptedService) -> None:
    answers = [refusal(pb.REFUSAL_KIND_TOO_DEEP, 64, 65), value({}), refusal(pb.REFUSAL_KIND_ENDED)]
    service.answer = lambda _: answers.pop(0)

    async def work(session: AsyncSession) -> None:
        with pytest.raises(Refused) as caught:
            await session.call("echo")
        assert (caught.value.kind, caught.value.limit) == (RefusalKind.TOO_DEEP, 64)
        with pytest.raises(Refused):
            await session.call("echo", {"x": float("nan")})
        assert not (await session.call("echo")).ended
        with pytest.raises(Ended):
            await session.call("echo")
        assert session.ended

    _work(service.path, work)


def test_only_the_first_ending_counts(service: ScriptedService) -> None:
    async def work(session: AsyncSession) -> None:
        assert await session.submit("42")
        assert session.ended
        assert not await session.give_up("too late")

    _work(service.path, work)
    assert [each.WhichOneof("end") for each in service.submitted] == ["answer", "give_up_reason"]


def test_problems_with_a_model_are_reported_and_end_the_work(service: ScriptedService) -> None:
    async def work(session: AsyncSession) -> None:
        await session.report(ModelProblem.REPLY_UNPARSEABLE)
        assert await session.stop(ModelProblem.TURN_LIMIT)
        assert session.ended

    _work(service.path, work)
    assert service.reported == [pb.MODEL_PROBLEM_REPLY_UNPARSEABLE]
    assert [end.stopped for end in service.submitted] == [pb.MODEL_PROBLEM_TURN_LIMIT]


def test_a_call_whose_response_was_lost_runs_once(tmp_path: Path) -> None:
    arrived, go_on = Event(), Event()

    def answer(request: pb.CallToolRequest) -> pb.CallToolResponse:
        arrived.set()
        assert go_on.wait(5)
        return echo(request)

    with (
        ScriptedService(tmp_path / "s", answer) as service,
        Relay(tmp_path / "r", tmp_path / "s") as relay,
    ):

        def lose_the_answer() -> None:
            assert arrived.wait(5)
            relay.cut()
            go_on.set()

        async def work(session: AsyncSession) -> None:
            assert (await session.call("echo", {"n": 1})).result == Value({"n": 1})

        thread = Thread(target=lose_the_answer)
        thread.start()
        _work(tmp_path / "r", work)
        thread.join()
        assert service.carried_out == 1
        assert len(service.received) == 2


def test_a_call_is_sent_again_until_its_response_arrives(tmp_path: Path) -> None:
    async def work(session: AsyncSession) -> None:
        assert (await session.call("echo", {"n": 1})).result == Value({"n": 1})

    with (
        LossyService(tmp_path / "s", losses=3) as service,
        Relay(tmp_path / "r", tmp_path / "s") as relay,
    ):
        service.lose = relay.cut
        _work(tmp_path / "r", work, service_timeout_ms=30_000)
        assert len(service.received) == 4
        assert service.carried_out == 1


def test_a_response_after_the_deadline_can_be_requested_again(
    service: ScriptedService,
) -> None:
    go_on = Event()

    def answer(request: pb.CallToolRequest) -> pb.CallToolResponse:
        assert go_on.wait(5)
        return echo(request)

    service.answer = answer

    async def work(session: AsyncSession) -> None:
        with pytest.raises(DeadlinePassed) as caught:
            await session.call("echo", {"n": 1}, call_id="a", deadline_ms=50)
        assert caught.value.deadline_ms == 50
        go_on.set()
        while not service.carried_out:
            await asyncio.sleep(0.005)
        assert (await session.call("echo", {"n": 1}, call_id="a")).result == Value({"n": 1})

    _work(service.path, work)
    assert service.carried_out == 1


def test_a_call_may_be_cancelled(service: ScriptedService) -> None:
    arrived = Event()

    def answer(request: pb.CallToolRequest) -> pb.CallToolResponse:
        arrived.set()
        sleep(0.1)
        return echo(request)

    service.answer = answer

    async def work(session: AsyncSession) -> None:
        call = asyncio.create_task(session.call("echo", {"n": 1}))
        await asyncio.to_thread(arrived.wait, 5)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        assert (await session.call("echo", {"n": 2})).result == Value({"n": 2})

    _work(service.path, work)


def test_a_missing_socket_is_not_reachable(tmp_path: Path) -> None:
    async def never(session: AsyncSession) -> None:
        raise AssertionError

    with pytest.raises(NotReachable, match="no such socket"):
        _work(tmp_path / "s", never, service_timeout_ms=50)


def test_a_service_that_ends_is_a_lost_connection(service: ScriptedService) -> None:
    async def work(session: AsyncSession) -> None:
        await session.call("echo")
        service.vanish()
        with pytest.raises(ConnectionLost) as caught:
            await session.call("echo")
        assert caught.value.answered == 1
        with pytest.raises(ConnectionLost):
            await session.submit("lost")

    _work(service.path, work, service_timeout_ms=100)
