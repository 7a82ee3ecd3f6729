"""No reply to an agent contains secrets: fault plan, seeds, names, gold, source code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from fumehood.core.gold import Gold
from fumehood.core.task import Case
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.wire.control_client import ControlClient
from fumehood.wire.convert import spec_to_pb
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.parts.listening import Listened, listening
from tests.parts.raw_seat import RawSeat, socket_dir
from tests.parts.specs import episode_spec, fault_plan
from tests.parts.tasks import crud_task
from tests.redteam.service.misdeeds import MISDEEDS

SEED = 918273645
SECRETS = (
    "TASK-MARK",
    "AGENT-MARK",
    "GOLD-MARK",
    "TRIGGER-MARK",
    "PAYLOAD-MARK",
    "TOKEN-MARK",
    str(SEED),
)
PLAN_WORDS = re.compile(
    r"trigger|severity|fault|payload|\bprob\b|nth_call|recoverab|original"
    r"|\b(rate_limit|schema_drift|interface_drift|access_gate|adversarial\w*)\b",
    re.IGNORECASE,
)
OUR_CODE = re.compile(
    r"Traceback|\.py\b|File \"|line \d+|\b(fumehood|fumehood_agent|grpc_tools)\."
    r"|\w(Error|Exception)\b"
    r"|Exception (calling|iterating)|<class|object at 0x"
)
HIDDEN = {"note": "PAYLOAD-MARK", "recoverability": "PAYLOAD-MARK"}

FAULTS: tuple[dict[str, Any], ...] = (
    {"family": "timeout", "payload": {"timeout_ms": 50, **HIDDEN}},
    {"family": "rate_limit", "payload": {"retry_after_ms": 40, **HIDDEN}},
    {
        "family": "authz",
        "payload": {"required_role": "admin", "required_token": "TOKEN-MARK", **HIDDEN},
    },
    {"family": "authz", "payload": {"required_role": "admin", **HIDDEN}},
    {"family": "schema_drift", "payload": {"rename_args": {"id": "account_ref"}, **HIDDEN}},
    {
        "family": "schema_drift",
        "payload": {"add_required": {"region": "PAYLOAD-MARK"}, **HIDDEN},
    },
    {
        "family": "adversarial_error",
        "payload": {"message": "Disk is full.", "code": "E_DISK", **HIDDEN},
    },
)


def case_with(*faults: dict[str, Any]) -> PlannedEpisode:
    """Return an episode in which every name and secret has a marker."""
    marked = [
        {**fault, "trigger": {"on_nth_call": number + 1, "why": "TRIGGER-MARK"}, "severity": "hard"}
        for number, fault in enumerate(faults)
    ]
    task = crud_task(
        "TASK-MARK",
        fault_plan=fault_plan(*marked),
        seed=SEED,
        seats=episode_spec(steps=30, retries=25).seats,
        tags={"difficulty": "GOLD-MARK"},
    )
    gold = Gold(
        "native",
        ({"op": "equals", "path": "x", "value": "GOLD-MARK"},),
        True,
        ({"submit": "GOLD-MARK"},),
    )
    return PlannedEpisode("AGENT-MARK", Case(task, gold), 0, SEED)


@pytest.fixture
def episode(client: ControlClient) -> Iterator[Listened]:
    """One in which every call meets a fault of another kind, some together with a lie about it."""
    lies = {"family": "adversarial_error", "payload": {"messages": ["All is well."], **HIDDEN}}
    with listening(client, case_with(*FAULTS, lies).to_spec(60_000)) as opened:
        yield opened


@pytest.mark.slow
def test_no_reply_contains_a_secret(episode: Listened) -> None:
    with socket_dir(episode.directory) as connection:
        heard = [*ordinary_answers(connection), *provoked_answers(connection)]
    episode.close()
    assert len(heard) > 40
    for text in heard:
        assert [secret for secret in SECRETS if secret in text] == [], text
        assert PLAN_WORDS.search(text) is None, text
        assert OUR_CODE.search(text) is None, text


def test_all_planned_faults_fired(episode: Listened) -> None:
    with socket_dir(episode.directory) as connection:
        list(ordinary_answers(connection))
    episode.close()
    assert [count > 0 for count in episode.evidence.fire_counts] == [True] * 8


def test_the_search_finds_a_leak(client: ControlClient, episode_id: str) -> None:
    """The compatible harness_mode tells of its faults, as the original does; the same search finds
    it there."""
    fault = {"family": "timeout", "payload": {"timeout_ms": 50, **HIDDEN}}
    with listening(
        client, episode_spec(fault, episode_id=episode_id, harness_mode="toolmisuse")
    ) as episode:
        with socket_dir(episode.directory) as connection:
            heard = "".join(ordinary_answers(connection))
        assert "PAYLOAD-MARK" in heard
        assert PLAN_WORDS.search(heard) is not None


def test_an_exception_of_a_world_reveals_nothing(client: ControlClient, episode_id: str) -> None:
    spec = episode_spec(episode_id=episode_id, state={"accounts": {"ax1": "TASK-MARK"}})
    with listening(client, spec) as episode, socket_dir(episode.directory) as connection:
        answer, call = connection.stub.CallTool.with_call(
            pb.CallToolRequest(tool_name="close_account", arguments_json='{"id":"ax1","reason":""}')
        )
        assert answer == pb.CallToolResponse(
            refusal=pb.Refusal(kind=pb.REFUSAL_KIND_ENDED), ended=True
        )
        assert (call.details(), list(call.trailing_metadata())) == ("", [])
        assert episode.unhostable is None or "TASK-MARK" not in str(answer)


def test_the_service_never_receives_gold() -> None:
    sent = spec_to_pb(case_with(*FAULTS).to_spec(60_000)).SerializeToString()
    assert b"GOLD-MARK" not in sent
    assert b"TASK-MARK" in sent


def ordinary_answers(connection: RawSeat) -> Iterator[str]:
    """Yield everything that a well-behaved agent can read, including metadata."""
    task, call = connection.stub.GetTask.with_call(pb.GetTaskRequest(), timeout=20)
    yield from _texts(task, call)
    for number in range(20):
        # An adversarial error replaces a failure, so there must be a failure.
        arguments = {"id": "absent" if number in (6, 7) else "ax1"}
        request = pb.CallToolRequest(tool_name="get_account", arguments_json=json.dumps(arguments))
        answer, call = connection.stub.CallTool.with_call(request, timeout=20)
        yield from _texts(answer, call)
    yield str(connection.submit("done"))


def provoked_answers(connection: RawSeat) -> Iterator[str]:
    """Yield everything that a misbehaving agent can read."""
    for tool, text in (("", ""), ("x" * 2000, ""), ("get_account", "["), ("get_account", "[" * 70)):
        yield str(connection.send(tool, text))
    for misdeed in MISDEEDS.values():
        with pytest.raises(grpc.RpcError) as raised:
            misdeed(connection)
        call: Any = raised.value
        yield f"{call.details()} {call.debug_error_string()}"
        yield f"{call.initial_metadata()} {call.trailing_metadata()}"


def _texts(message: object, call: grpc.Call) -> Iterator[str]:
    yield str(message)
    yield f"{call.details()} {list(call.initial_metadata())} {list(call.trailing_metadata())}"
