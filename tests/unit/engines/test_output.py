"""The bounded output of a box."""

from __future__ import annotations

import os
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.engines.output import CappedOutput, FrameReader, PipeReader


@pytest.mark.slow
@given(st.lists(st.binary(max_size=50)), st.integers(min_value=0, max_value=120))
def test_output_above_the_limit_keeps_its_beginning_and_end(
    chunks: list[bytes], limit: int
) -> None:
    output = CappedOutput(limit)
    for chunk in chunks:
        output.write(chunk)
    printed = b"".join(chunks)
    head, tail = limit - limit // 2, limit // 2
    expected = printed if len(printed) <= limit else printed[:head] + printed[len(printed) - tail :]
    assert output.kept() == expected
    assert output.total_bytes == len(printed)


def test_the_reader_does_not_wait_for_a_pipe_that_stays_open() -> None:
    (stdout, held), (stderr, closed) = os.pipe(), os.pipe()
    reader = PipeReader(stdout, stderr, 100)
    os.write(held, b"before")
    os.close(closed)
    output = reader.finish(0.3)
    os.close(held)
    assert output.stdout == b"before"


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=3000)), max_size=20))
def test_each_frame_goes_to_its_stream(frames: list[tuple[int, bytes]]) -> None:
    near, far = socket.socketpair()
    reader = FrameReader(near, 100_000)
    sender = threading.Thread(target=_send, args=(far, frames))
    sender.start()
    sender.join()
    output = reader.finish(10)
    assert output.stdout == b"".join(payload for kind, payload in frames if kind == 1)
    assert output.stderr == b"".join(payload for kind, payload in frames if kind == 2)


def test_a_partial_frame_is_kept() -> None:
    near, far = socket.socketpair()
    reader = FrameReader(near, 100)
    far.sendall(struct.pack(">BxxxL", 1, 10) + b"half")
    far.close()
    output = reader.finish(10)
    assert (output.stdout, output.stdout_bytes) == (b"half", 4)


def test_the_reader_does_not_wait_for_a_stream_that_stays_open() -> None:
    near, far = socket.socketpair()
    with far:
        reader = FrameReader(near, 100)
        far.sendall(struct.pack(">BxxxL", 2, 3) + b"new")
        assert reader.finish(0.3).stderr == b"new"


def _send(far: socket.socket, frames: list[tuple[int, bytes]]) -> None:
    with far:
        for kind, payload in frames:
            far.sendall(struct.pack(">BxxxL", kind, len(payload)) + payload)
