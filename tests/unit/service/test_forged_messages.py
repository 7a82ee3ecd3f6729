"""Code of an agent that has taken over the process of its episode cannot harm other episodes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fumehood.core.json_values import canonical_json
from fumehood.core.outcome import AgentCrashed, ConfidenceStated
from fumehood.core.tools import ToolCall, Value
from fumehood.core.trace import CallMade, EpisodeOpened, ModelExchange, verify_chain
from fumehood.gateway.settings import GatewaySettings
from fumehood.service import forked_episode
from fumehood.service.checked_messages import CheckedMessages
from fumehood.service.forked_episode import ForkedEpisode
from fumehood.service.trace_stream import BATCH_EVENTS, TraceStream
from fumehood.supervised.fork_server import ForkServer
from fumehood.supervised.limits import Limits
from fumehood.supervised.progress import read_progress
from fumehood.wire.episode_channel import message_to_bytes
from fumehood.wire.ports import (
    GRANTED_MS_MAX,
    MODELS_FIELD,
    EpisodeMessage,
    Records,
    SeatWorkEnded,
    SpecRejected,
    TimeGranted,
)
from tests.parts import forging_entries
from tests.parts.specs import episode_spec

TRACE_BYTES_MAX = 1_000_000


@dataclass
class _Evidence:
    """What a service knows about the model requests of a process."""

    waited_ms: int = 0
    has_provider_failed: bool = False
    passed_bytes: int = 0


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
        names = ("forge", "claim", "grow", "leave")
        running = ForkServer({name: f"{forging_entries.__name__}:{name}" for name in names})
    yield running
    running.close()


@pytest.mark.parametrize("forgery", forging_entries.FORGERIES)
def test_a_forged_message_ends_its_own_episode_as_failed(server: ForkServer, forgery: str) -> None:
    child = server.start("forge", {"forgery": forgery}, Limits())
    episode = ForkedEpisode(episode_spec(), child, b"", lambda episode: None, TRACE_BYTES_MAX)
    _, *messages = episode.messages()
    records = [
        record for message in messages if isinstance(message, Records) for record in message.records
    ]
    verify_chain(records)
    assert messages[-1] == SeatWorkEnded("agent")
    reason = "the process of the episode sent a message that is not valid"
    assert any(AgentCrashed(reason).detail in record.event_json for record in records)
    assert child.wait(0) is not None


@pytest.mark.parametrize("forgery", forging_entries.LATE)
def test_a_trace_has_one_final_state_before_its_end(server: ForkServer, forgery: str) -> None:
    child = server.start("forge", {"forgery": forgery}, Limits())
    episode = ForkedEpisode(episode_spec(), child, b"", id, TRACE_BYTES_MAX)
    records = [
        record
        for message in episode.messages()
        if isinstance(message, Records)
        for record in message.records
    ]
    verify_chain(records)
    kinds = [json.loads(record.event_json)["kind"] for record in records]
    assert kinds == ["opened", "closed", "sealed"]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("large", "sent a message that is not valid: a message of 4294967295 bytes exceeds"),
        ("closed", "closed its connection and did not end"),
        ("first_thread_ended", "closed its connection and did not end"),
    ],
)
def test_a_process_that_leaves_its_connection_and_goes_on_fails(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch, how: str, reason: str
) -> None:
    monkeypatch.setattr(forked_episode, "END_TIMEOUT_S", 0.1)
    child = server.start("leave", {"how": how}, Limits())
    episode = ForkedEpisode(episode_spec(), child, b"", id, TRACE_BYTES_MAX)
    _, *messages = episode.messages()
    assert reason in crash_of(messages)


@pytest.mark.slow
@pytest.mark.parametrize("is_permitted", [True, False])
def test_a_message_is_as_large_as_the_limit_of_the_trace_permits(
    server: ForkServer, *, is_permitted: bool
) -> None:
    size_bytes = forked_episode.EXCHANGE_BYTES_MAX
    child = server.start("grow", {"size_bytes": size_bytes}, Limits())
    bytes_max = size_bytes + TRACE_BYTES_MAX if is_permitted else TRACE_BYTES_MAX
    episode = ForkedEpisode(episode_spec(), child, b"", id, bytes_max)
    _, *messages = episode.messages()
    if is_permitted:
        events, end = messages
        assert isinstance(events, Records)
        assert len(events.records[1].event_json) > size_bytes
        assert isinstance(end, Records)
    else:
        assert f"exceeds {size_bytes}" in crash_of(messages)


def test_a_number_of_the_task_cannot_become_true_in_its_trace() -> None:
    spec = episode_spec({"family": "timeout", "payload": {"timeout_ms": 1}})
    opened = canonical_json(EpisodeOpened(spec).to_json())
    forged = opened.replace('"timeout_ms":1', '"timeout_ms":true')
    assert forged != opened
    CheckedMessages(spec, TRACE_BYTES_MAX).add(forging_entries.records(opened))
    with pytest.raises(ValueError, match="does not open this episode"):
        CheckedMessages(spec, TRACE_BYTES_MAX).add(forging_entries.records(forged))


def test_the_longest_usual_message_is_accepted() -> None:
    stream = TraceStream()
    stream.record(EpisodeOpened(episode_spec()))
    for _ in range(2 * BATCH_EVENTS):
        stream.record(ConfidenceStated("agent", 1.0))
    stream.close()
    checked = CheckedMessages(episode_spec(), TRACE_BYTES_MAX)
    sent = [message for message in stream.stream() if isinstance(message, Records)]
    for message in sent[:-1]:
        checked.add(message)
    assert [len(message.records) for message in sent] == [BATCH_EVENTS, BATCH_EVENTS, 1, 1]


def test_the_largest_model_request_with_the_largest_response_fits_into_a_message() -> None:
    settings = GatewaySettings()
    exchange = ModelExchange(
        seat="agent",
        key="0" * 64,
        occurrence=1,
        request=bytes(settings.body_bytes_max),
        status=200,
        content_type="application/json",
        response=bytes(settings.response_bytes_max),
    )
    assert len(message_to_bytes(exchange)) <= forked_episode.EXCHANGE_BYTES_MAX


def test_every_planned_fault_may_fire_and_no_other() -> None:
    spec = episode_spec({"family": "authz"}, {"family": "timeout"})
    opened = canonical_json(EpisodeOpened(spec).to_json())
    call = CallMade("agent", ToolCall("t", {}, 1), Value({}), "").to_json()
    for rule, is_planned in ((0, True), (1, True), (2, False), (-1, False)):
        fault = {"rule": rule, "family": "timeout"}
        fired = canonical_json({**call, "faults": [fault]})
        checked, sent = CheckedMessages(spec, TRACE_BYTES_MAX), forging_entries.records
        if is_planned:
            checked.add(sent(opened, fired))
        else:
            with pytest.raises(ValueError, match="no such planned fault"):
                checked.add(sent(opened, fired))


def test_the_check_of_a_process_that_is_asked_to_close_does_not_keep_the_service_alive(
    server: ForkServer,
) -> None:
    child = server.start("forge", {"forgery": "a message after the end of the trace"}, Limits())
    episode = ForkedEpisode(episode_spec(), child, b"", id, TRACE_BYTES_MAX)
    messages = episode.messages()
    next(messages)
    earlier = set(threading.enumerate())
    episode.close(timed_out=False)
    checks = set(threading.enumerate()) - earlier
    assert [check.daemon for check in checks] == [True]
    episode.abandon()
    list(messages)


def test_a_process_whose_last_messages_are_not_taken_is_not_stuck(server: ForkServer) -> None:
    child = server.start("forge", {"forgery": "a message after the end of the trace"}, Limits())
    episode = ForkedEpisode(episode_spec(), child, b"", id, TRACE_BYTES_MAX)
    messages = episode.messages()
    for _ in range(2):
        next(messages)  # The second message waits until the orchestrator takes it.
    episode._closed_s = time.monotonic()
    long_ago_s = time.monotonic() - 2 * forked_episode.CLOSE_TIMEOUT_S
    progress = read_progress(child.pid)
    assert progress is not None
    episode._kill_if_stuck(progress, long_ago_s)
    assert child.wait(0) is None
    episode._closed_s -= forked_episode.LAST_MESSAGES_S
    episode._kill_if_stuck(progress, long_ago_s)
    assert child.wait(60) is not None
    assert isinstance(messages, Generator)
    messages.close()


def believed(
    server: ForkServer,
    claim: str,
    evidence: _Evidence | None = None,
    rejection: SpecRejected | None = None,
) -> list[EpisodeMessage]:
    """Return what the orchestrator gets after a claim of a process."""
    child = server.start("claim", {"claim": claim}, Limits())
    episode = ForkedEpisode(
        episode_spec(), child, b"", id, TRACE_BYTES_MAX, evidence, lambda: rejection
    )
    _, *messages = episode.messages()
    return messages


def crash_of(messages: list[EpisodeMessage]) -> str:
    """Return why the agent crashed, from messages that complete a trace and do nothing else."""
    completion, end = messages
    assert isinstance(completion, Records)
    verify_chain(completion.records)
    assert end == SeatWorkEnded("agent")
    assert '"agent_crashed"' in completion.records[0].event_json
    return completion.records[0].event_json


@pytest.mark.parametrize("claim", forging_entries.CLAIMS)
def test_a_claim_without_evidence_gives_neither_time_nor_another_attempt(
    server: ForkServer, claim: str
) -> None:
    crash_of(believed(server, claim))


def test_a_process_gets_the_time_for_which_this_service_measured_waits(server: ForkServer) -> None:
    granted, *rest = believed(server, "its wall time is longer", _Evidence(waited_ms=1500))
    assert granted == TimeGranted("agent", 1500)
    crash_of(rest)


def test_a_process_cannot_fill_the_disk_with_model_requests_that_were_not_sent(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked_episode, "EXCHANGE_SPARE_BYTES", 1000)
    claim = forging_entries.EXCHANGES
    assert "were not sent" in crash_of(believed(server, claim))
    sent = _Evidence(passed_bytes=forging_entries.CLAIMED_BYTES // 2)
    assert isinstance(believed(server, claim, sent)[0], ModelExchange), "the control"


def test_the_time_for_waits_has_a_limit(server: ForkServer) -> None:
    granted, *_ = believed(server, "its wall time is longer", _Evidence(waited_ms=10**12))
    assert granted == TimeGranted("agent", GRANTED_MS_MAX)


def test_a_rejection_counts_if_a_new_process_rejects_the_episode_too(server: ForkServer) -> None:
    rejection = SpecRejected("data_source", "is missing")
    assert believed(server, "its task cannot be hosted", rejection=rejection) == [rejection]


def test_a_rejection_because_of_models_counts_after_a_failed_check(server: ForkServer) -> None:
    evidence = _Evidence(has_provider_failed=True)
    rejection = SpecRejected(MODELS_FIELD, "scripted: answers 500")
    assert believed(server, "no model provider works", evidence) == [rejection]
    assert "its task" in crash_of(believed(server, "its task cannot be hosted", evidence))
