"""However many call at once, over however many connections: the budget admits what it says."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fumehood.wire.control_client import ControlClient
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.parts.listening import listening
from tests.parts.raw_seat import RawSeat, socket_dir
from tests.parts.specs import episode_spec

pytestmark = pytest.mark.slow

AT_ONCE_MAX = 12
"""Below the calls that a seat's server works on at once, so that it is the budget that says no."""

bounded = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

_numbers = count()


def all_at_once(
    directory: str, callers: int, call: Callable[[RawSeat, int], object]
) -> list[object]:
    """Let every caller call at the same moment, each over a separate connection."""
    together = Barrier(callers)

    def one(caller: int) -> object:
        connection = connections[caller]
        connection.task()
        together.wait()
        return call(connection, caller)

    with ExitStack() as stack, ThreadPoolExecutor(callers) as threads:
        connections = [stack.enter_context(socket_dir(directory)) for _ in range(callers)]
        return list(threads.map(one, range(callers)))


def is_admitted(answer: object) -> bool:
    assert isinstance(answer, pb.CallToolResponse)
    return answer.WhichOneof("result") == "value_json"


@pytest.mark.parametrize("harness_mode", ["native", "toolmisuse"])
@pytest.mark.parametrize("kind", ["steps", "calls"])
@bounded
@given(callers=st.integers(min_value=2, max_value=AT_ONCE_MAX))
def test_a_budget_of_one_call_admits_one_of_several_parallel_calls(
    service: ControlClient, harness_mode: str, kind: str, callers: int
) -> None:
    spec = episode_spec(episode_id=f"p{next(_numbers)}", harness_mode=harness_mode, **{kind: 1})  # type: ignore[arg-type]
    with listening(service, spec) as episode:

        def create(connection: RawSeat, caller: int) -> object:
            return connection.call("create_account", fields={"id": f"by{caller}"})

        answers = all_at_once(episode.directory, callers, create)
        episode.close()
        created = episode.evidence.final_state["accounts"].keys() - {"ax1"}  # type: ignore[union-attr]
    assert sum(map(is_admitted, answers)) == 1
    assert len(created) == 1


@bounded
@given(
    callers=st.integers(min_value=2, max_value=AT_ONCE_MAX),
    steps=st.integers(min_value=1, max_value=AT_ONCE_MAX),
)
def test_a_budget_admits_exactly_its_number_of_parallel_calls(
    service: ControlClient, callers: int, steps: int
) -> None:
    with listening(service, episode_spec(episode_id=f"p{next(_numbers)}", steps=steps)) as episode:
        answers = all_at_once(
            episode.directory, callers, lambda each, _: each.call("get_account", id="ax1")
        )
        episode.close()
        numbers = [event["number"] for event in episode.events if event["kind"] == "call"]
    assert sum(map(is_admitted, answers)) == min(callers, steps)
    assert numbers == list(range(1, len(numbers) + 1))


@bounded
@given(callers=st.integers(min_value=2, max_value=AT_ONCE_MAX))
def test_parallel_calls_with_one_id_run_once(service: ControlClient, callers: int) -> None:
    with listening(service, episode_spec(episode_id=f"p{next(_numbers)}", steps=9)) as episode:
        answers = all_at_once(
            episode.directory,
            callers,
            lambda each, _: each.call("create_account", "the call", fields={}),
        )
        episode.close()
        calls = [event for event in episode.events if event["kind"] == "call"]
    assert len(calls) == 1
    assert all(answer == answers[0] for answer in answers)


@bounded
@given(callers=st.integers(min_value=2, max_value=AT_ONCE_MAX))
def test_only_one_of_several_parallel_submissions_counts(
    service: ControlClient, callers: int
) -> None:
    with listening(service, episode_spec(episode_id=f"p{next(_numbers)}")) as episode:
        answers = all_at_once(
            episode.directory, callers, lambda each, caller: each.submit(str(caller))
        )
        episode.close()
        ends = [event["end"]["answer"] for event in episode.events if event["kind"] == "seat_ended"]
    accepted = [
        str(caller)
        for caller, answer in enumerate(answers)
        if answer == pb.SubmitResponse(accepted=True)
    ]
    assert ends == accepted
    assert len(accepted) == 1
