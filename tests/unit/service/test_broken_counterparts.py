"""Code of an agent that has taken over the process of its episode gets no other attempt by ending
the connection of a counterpart."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.ledger import Budget
from fumehood.core.outcome import InfraKind
from fumehood.engines.engine import BoxSpec, EngineOptions, ExitReason, Image
from fumehood.engines.process import ProcessEngine
from fumehood.orchestrator.episode_time import EpisodeTime
from fumehood.orchestrator.seat_boxes import SeatBox, SeatBoxes
from fumehood.orchestrator.seat_exit import SeatExit
from fumehood.orchestrator.trace_receiver import TraceReceiver
from fumehood.service.forked_episode import ForkedEpisode
from fumehood.supervised.fork_server import ForkServer
from fumehood.supervised.limits import Access, Limits
from fumehood.wire.ports import Opened
from tests.parts import forging_entries
from tests.parts.folders import short_folder
from tests.parts.specs import episode_spec

WALL_MS = 60_000
TRACE_BYTES_MAX = 1_000_000
CUT_OFF = 41
CONNECTED = f"""
import os, socket, sys
seat = socket.socket(socket.AF_UNIX)
seat.connect(os.environ["FUMEHOOD_SOCKET"])
seat.recv(1)
sys.exit({CUT_OFF})
"""
BROKEN = f"raise SystemExit({CUT_OFF})"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with short_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
        entries = {"cut_off": f"{forging_entries.__name__}:cut_off"}
        with closing(ForkServer(entries, folder=Path(folder))) as running:
            yield running


def played(server: ForkServer, order: str, user: str) -> SeatBoxes:
    """Play an agent that only connects and a counterpart with the program ``user``.

    Args:
        server: forks the process of the episode, which an agent takes over when it connects.
        order: the seats, in the order of their starts.
        user: a Python program.
    """
    seats = tuple(SeatSpec(name=name, instruction="", budget=Budget()) for name in order.split())
    child = server.start("cut_off", {"order": order}, Limits(), Access(folder=True))
    episode = ForkedEpisode(episode_spec(seats=seats), child, b"", id, TRACE_BYTES_MAX)
    messages = episode.messages()
    opened = next(messages)
    assert isinstance(opened, Opened)
    programs = {"agent": CONNECTED, "user": user}
    specs = {
        seat.name: BoxSpec(
            image=Image("", "", (sys.executable, "-S", "-c", programs[seat.name])),
            socket_dir=Path(seat.directory),
        )
        for seat in opened.seats
    }
    receiver = TraceReceiver(messages, tuple(specs), in_turn=True, flush_s=0.0)
    receiver.start()
    with closing(ProcessEngine(EngineOptions(trust=True))) as engine:
        boxes = {seat: SeatBox(spec, engine.start, seat == "user") for seat, spec in specs.items()}
        played = SeatBoxes(boxes, receiver, EpisodeTime(0))
        played.play(WALL_MS)
        episode.abandon()
        played.wait_for_end()
    assert played.exit == SeatExit(CUT_OFF, ExitReason.EXITED, "user")
    assert not receiver.records, "the trace shows no action of the agent"
    return played


def test_a_process_that_ends_the_connection_of_a_counterpart_fails_its_attempt(
    server: ForkServer,
) -> None:
    assert played(server, "agent user", CONNECTED).infra is None


def test_a_counterpart_that_fails_before_the_agent_starts_is_a_failure_of_the_infrastructure(
    server: ForkServer,
) -> None:
    infra = played(server, "user agent", BROKEN).infra
    assert infra is not None
    assert infra.kind is InfraKind.COUNTERPART
