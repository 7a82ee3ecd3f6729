"""Processes of episodes that an agent has taken over, for the tests of the service."""

from __future__ import annotations

import ctypes
import json
import platform
import socket
import threading
from contextlib import suppress
from pathlib import Path

from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.tools import ToolCall, Value
from fumehood.core.trace import (
    CallMade,
    Chain,
    EpisodeClosed,
    EpisodeOpened,
    ModelExchange,
    Record,
)
from fumehood.service.trace_stream import BATCH_BYTES, BATCH_EVENTS
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.wire.episode_channel import message_to_bytes
from fumehood.wire.ports import (
    MODELS_FIELD,
    EpisodeMessage,
    Opened,
    Records,
    SeatReady,
    SeatSockets,
    SeatWorkEnded,
    SpecRejected,
    TimeGranted,
)
from tests.parts.specs import episode_spec

OPENED = canonical_json(EpisodeOpened(episode_spec()).to_json())
"""The first event of the episode of these processes."""
DEEP_EVENT = '{"kind":' + "[" * 100_000 + "]" * 100_000 + "}"


def _field(number: int, content: bytes) -> bytes:
    """Return a field of a protobuf message."""
    size, length = len(content), b""
    while size > 127:
        size, length = size >> 7, length + bytes([size & 127 | 128])
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def records(*events: str) -> Records:
    """Return events with the hashes of a trace."""
    chain = Chain()
    return Records(tuple(Record(event, chain.link(event), 0, 0) for event in events))


def _call(faults: str) -> str:
    call = CallMade("agent", ToolCall("t", {}, 1), Value({}), "").to_json()
    return canonical_json({**call, "faults": json.loads(faults)})


def _exchange(key: str, occurrence: int) -> ModelExchange:
    return ModelExchange(
        seat="agent",
        key=key,
        occurrence=occurrence,
        request=b"",
        status=200,
        content_type="",
        response=b"",
    )


_CLOSED = '{"final_state":{},"fire_counts":[],"kind":"closed"}'
_TINY = '{"confidence":1,"kind":"confidence","seat":"agent"}'


def _more_tiny(messages_before: int) -> Records:
    """Return as many tiny events as a message may have, which follow others."""
    chain = Chain()
    for event in (OPENED, *[_TINY] * (BATCH_EVENTS * messages_before - 1)):
        chain.link(event)
    return Records(tuple(Record(_TINY, chain.link(_TINY), 0, 0) for _ in range(BATCH_EVENTS)))


def _opened_at(wall_ms: int, duration_us: int) -> Records:
    return Records((Record(OPENED, Chain().link(OPENED), wall_ms, duration_us),))


FORGERIES: dict[str, EpisodeMessage | bytes | tuple[EpisodeMessage, ...]] = {
    "a seat that is ready again": (SeatReady("agent"),) * 2,
    "work of a seat that ends again": (SeatWorkEnded("agent"),) * 2,
    "a rejection after a rejection": (SpecRejected("initial_state", "is odd"),) * 2,
    "an episode that is opened again": Opened((SeatSockets("agent", "/etc"),)),
    "endless messages without an effect": (TimeGranted("agent", 0),) * 5000,
    "a long digest of a model request": _exchange("0" * 65, 1),
    "a model request that is no digest": _exchange("G" * 64, 1),
    "a model request without a number": _exchange("0" * 64, 0),
    "an event that is not in canonical form": records(OPENED.replace(":", ": ", 1)),
    "an event with a blank before it": records(" " + OPENED),
    "an event of the year 10000": _opened_at(253_402_300_800_000, 0),
    "an event before 1970": _opened_at(-1, 0),
    "an event of a negative duration": _opened_at(0, -1),
    "another seat is ready": SeatReady("another"),
    "the work of another seat ended": SeatWorkEnded("another"),
    "another seat gets time": TimeGranted("another", 10**9),
    "a wrong hash": Records((Record(OPENED, "0" * 64, 0, 0),)),
    "an event of an unknown kind": records(OPENED, '{"kind":"unknown"}'),
    "an event without a field": records(OPENED, '{"kind":"turn_began","seat":"agent","turn":1}'),
    "an event of another seat": records(
        OPENED, '{"kind":"turn_began","seat":"another","text":"","turn":1}'
    ),
    "an event that opens another episode": records(OPENED.replace('"seed":"', '"seed":"1')),
    "no event that opens the episode": records(
        '{"kind":"turn_began","seat":"agent","text":"","turn":1}'
    ),
    "a fault without a rule": records(OPENED, _call('[{"family":"timeout"}]')),
    "a fault that is not planned": records(OPENED, _call('[{"family":"timeout","rule":7}]')),
    "a wrong number of fire counts": records(
        OPENED, '{"final_state":{},"fire_counts":[1,2,3],"kind":"closed"}'
    ),
    "a number that is not finite": records(
        OPENED, '{"final_state":{"a":NaN},"fire_counts":[],"kind":"closed"}'
    ),
    "a final state with a wrong hash": (
        records(OPENED),
        Records((Record(_CLOSED, "0" * 64, 0, 0),)),
    ),
    "an event that opens the episode again": records(OPENED, OPENED),
    "an end of the trace without a final state": records(OPENED, '{"events":1,"kind":"sealed"}'),
    "an event that is no JSON": records('{"rule":'),
    "a deep event": records(DEEP_EVENT),
    "an event that is no ASCII": Records((Record("é", "0" * 64, 0, 0),)),
    "a long trace": records("x" * 2_000_000),
    "more events than a message may have": records(OPENED, *[_TINY] * BATCH_EVENTS),
    "a long event before another one": records("x" * BATCH_BYTES, _TINY),
    "many tiny events": (
        records(OPENED, *[_TINY] * (BATCH_EVENTS - 1)),
        *[_more_tiny(at) for at in range(1, 24)],
    ),
    "no message": b"\xff",
    "a million tiny records": _field(2, b"\x0a\x00" * 1_000_000),
    "a message with a part that no reader knows": _field(6, _field(1, b"agent") + _field(15, b"x")),
    "a record with a part that no reader knows": _field(2, _field(1, _field(15, b"x"))),
    "two messages in one": _field(2, b"") + _field(2, b""),
}


_SEALED = '{"events":2,"kind":"sealed"}'
LATE: dict[str, tuple[EpisodeMessage, ...]] = {
    "another final state": (records(OPENED, _CLOSED, _CLOSED),),
    "an event after the final state": (records(OPENED, _CLOSED, _call("[]")),),
    "an event after the end of the trace": (records(OPENED, _CLOSED, _SEALED, OPENED),),
    "a message after the end of the trace": (
        records(OPENED, _CLOSED, _SEALED),
        records(OPENED),
    ),
}
"""Records that follow the final state."""

CLAIMS: dict[str, tuple[EpisodeMessage, ...]] = {
    "its wall time is longer": (TimeGranted("agent", 10**12), TimeGranted("agent", 10**12)),
    "its task cannot be hosted": (SpecRejected("initial_state", "is odd"),),
    "no model provider works": (SpecRejected(MODELS_FIELD, "scripted: answers 500"),),
    "nothing, and it ends": (),
}
"""Valid messages that are not true."""
EXCHANGES = "its model requests were large"
CLAIMED_BYTES = 100_000
_EXCHANGE = ModelExchange(
    seat="agent",
    key="0" * 64,
    occurrence=1,
    request=b"x" * (CLAIMED_BYTES // 2),
    status=200,
    content_type="application/json",
    response=b"x" * (CLAIMED_BYTES // 2),
)


def claim(channel: socket.socket, arguments: JsonObject) -> None:
    """Open the episode, claim something, and end as if all work was done."""
    receive_frame(channel)
    send_frame(channel, message_to_bytes(Opened((SeatSockets("agent", "/nowhere"),))))
    for message in {**CLAIMS, EXCHANGES: (_EXCHANGE,)}[str(arguments["claim"])]:
        send_frame(channel, message_to_bytes(message))


EXIT_CALL = {"x86_64": 60, "aarch64": 93}
"""Number of exit(2), by processor."""


def leave(channel: socket.socket, arguments: JsonObject) -> None:
    """Open the episode, announce a message that is too large or close the socket, and go on.

    The first thread can end, too: then only another thread goes on.
    """
    receive_frame(channel)
    send_frame(channel, message_to_bytes(Opened((SeatSockets("agent", "/nowhere"),))))
    if arguments["how"] == "large":
        channel.sendall(b"\xff" * 4)
    else:
        channel.shutdown(socket.SHUT_RDWR)
        channel.close()
    if arguments["how"] == "first_thread_ended":
        threading.Thread(target=threading.Event().wait).start()
        # Ends only this thread, other than exit_group(2).
        ctypes.CDLL(None).syscall(EXIT_CALL[platform.machine()], 0)
    threading.Event().wait()


def forge(channel: socket.socket, arguments: JsonObject) -> None:
    """Open the episode, then send forged messages and go on."""
    receive_frame(channel)
    send_frame(channel, message_to_bytes(Opened((SeatSockets("agent", "/nowhere"),))))
    forged = {**FORGERIES, **LATE}[str(arguments["forgery"])]
    for message in forged if isinstance(forged, tuple) else (forged,):
        send_frame(channel, message if isinstance(message, bytes) else message_to_bytes(message))
    receive_frame(channel)


def grow(channel: socket.socket, arguments: JsonObject) -> None:
    """Open the episode, and send a trace whose final state has ``size_bytes``."""
    receive_frame(channel)
    send_frame(channel, message_to_bytes(Opened((SeatSockets("agent", "/nowhere"),))))
    text = "x" * int(str(arguments["size_bytes"]))
    closed = canonical_json(EpisodeClosed({"text": text}, ()).to_json())
    chain = Chain()
    sent = [Record(event, chain.link(event), 0, 0) for event in (OPENED, closed)]
    end = Record(chain.end_record(), chain.link(chain.end_record()), 0, 0)
    with suppress(BrokenPipeError, ConnectionResetError):
        for part in (tuple(sent), (end,)):
            send_frame(channel, message_to_bytes(Records(part)))


def cut_off(channel: socket.socket, arguments: JsonObject) -> None:
    """Open an episode in which the seats ``order`` start, and end each connection to the second.

    The agent has taken over this process as soon as it connects. The trace shows none of its
    actions.
    """
    receive_frame(channel)
    folder, order = Path(str(arguments["folder"])), str(arguments["order"]).split()
    listeners = {}
    for seat in order:
        (folder / seat).mkdir()
        listeners[seat] = socket.socket(socket.AF_UNIX)
        listeners[seat].bind(str(folder / seat / "grpc.sock"))
        listeners[seat].listen()
    send_frame(channel, message_to_bytes(Opened(tuple(SeatSockets(seat, "") for seat in order))))
    send_frame(channel, message_to_bytes(SeatReady(order[0])))
    held, _ = listeners[order[0]].accept()
    send_frame(channel, message_to_bytes(SeatReady(order[1])))
    with suppress(OSError):
        listeners[order[1]].accept()[0].close()
    receive_frame(channel)
    held.close()
