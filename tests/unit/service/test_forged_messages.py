"""Code of an agent that has taken over the process of its episode cannot harm other episodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.core.outcome import AgentCrashed
from fumehood.core.trace import verify_chain
from fumehood.service.forked_episode import ForkedEpisode
from fumehood.supervised.fork_server import ForkServer
from fumehood.supervised.limits import Limits
from fumehood.wire.ports import Records, SeatWorkEnded
from tests.parts import forging_entries
from tests.parts.specs import episode_spec

TRACE_BYTES_MAX = 1_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
        running = ForkServer({"forge": f"{forging_entries.__name__}:forge"})
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
    assert AgentCrashed(reason).detail in records[0].event_json
    assert child.wait(0) is not None
