"""Processes of episodes that an agent has taken over, for the tests of the service."""

from __future__ import annotations

import socket

from fumehood.core.json_values import JsonObject
from fumehood.core.trace import Chain, ModelExchange, Record
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

DEEP_EVENT = '{"rule":' + "[" * 100_000 + "]" * 100_000 + "}"


def records(*events: str) -> Records:
    """Return events with the hashes of a trace."""
    chain = Chain()
    return Records(tuple(Record(event, chain.link(event), 0, 0) for event in events))


FORGERIES: dict[str, EpisodeMessage | bytes] = {
    "another seat is ready": SeatReady("another"),
    "the work of another seat ended": SeatWorkEnded("another"),
    "another seat gets time": TimeGranted("another", 10**9),
    "a wrong hash": Records((Record("{}", "0" * 64, 0, 0),)),
    "an event that is no JSON": records('{"rule":'),
    "a deep event": records(DEEP_EVENT),
    "an event that is no ASCII": Records((Record("é", "0" * 64, 0, 0),)),
    "a long trace": records("x" * 2_000_000),
    "no message": b"\xff",
}


CLAIMS: dict[str, tuple[EpisodeMessage, ...]] = {
    "its wall time is longer": (TimeGranted("agent", 10**12), TimeGranted("agent", 10**12)),
    "its task cannot be hosted": (SpecRejected("initial_state", "is odd"),),
    "no model provider works": (SpecRejected(MODELS_FIELD, "scripted: answers 500"),),
    "its sockets are elsewhere": (Opened((SeatSockets("agent", "/etc"),)),),
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


def forge(channel: socket.socket, arguments: JsonObject) -> None:
    """Open the episode, then send a forged message and go on."""
    receive_frame(channel)
    send_frame(channel, message_to_bytes(Opened((SeatSockets("agent", "/nowhere"),))))
    forged = FORGERIES[str(arguments["forgery"])]
    send_frame(channel, forged if isinstance(forged, bytes) else message_to_bytes(forged))
    receive_frame(channel)
