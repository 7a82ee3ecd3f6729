"""Exchanges are read as they were written, and a growing conversation is stored once."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.errors import InputError
from fumehood.core.trace import ModelExchange
from fumehood.records.cassette import CHUNK_BYTES_MIN, EPISODE_BYTES_MAX, Cassette, chunks_of

EXCHANGE = ModelExchange(
    seat="agent",
    key="k",
    occurrence=1,
    request=b"",
    status=200,
    content_type="application/json",
    response=b"{}",
)
TOOLS = [
    {"type": "function", "function": {"name": f"tool_{number}", "description": "d" * 600}}
    for number in range(5)
]


def conversation(turns: int, message_characters: int = 1000) -> list[ModelExchange]:
    """Return the exchanges of an agent that sends its whole conversation with each request."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s" * 2000}]
    exchanges = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{turn} " + "u" * message_characters})
        request = {"model": "m", "messages": messages, "tools": TOOLS, "temperature": 0}
        body = json.dumps(request, separators=(",", ":")).encode()
        answer = {"role": "assistant", "content": f"{turn} " + "a" * message_characters}
        response = json.dumps({"choices": [{"message": answer}]}).encode()
        exchanges.append(replace(EXCHANGE, key=str(turn), request=body, response=response))
        messages.append(answer)
    return exchanges


def stored_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("message_characters", [10, 1000])
def test_a_conversation_of_twice_the_length_takes_twice_the_space(
    tmp_path: Path, message_characters: int
) -> None:
    sizes = []
    for turns in (50, 100):
        exchanges = conversation(turns, message_characters)
        folder = tmp_path / str(turns)
        Cassette(folder).write("e", exchanges)
        assert Cassette(folder).read("e") == tuple(exchanges)
        sizes.append(stored_bytes(folder))
    assert sizes[1] < 2.2 * sizes[0]
    plain = sum(len(each.request) + len(each.response) for each in conversation(50, 1000))
    assert message_characters == 10 or sizes[0] < plain / 8


texts = st.binary(max_size=40) | st.sampled_from([b"},{", b'}],"', b"},{" * 400, b"x" * 700])


@given(st.lists(texts, max_size=12))
def test_the_chunks_of_a_body_are_the_body(parts: list[bytes]) -> None:
    body = b"".join(parts)
    chunks = list(chunks_of(body))
    assert b"".join(chunks) == body
    assert all(len(chunk) >= CHUNK_BYTES_MIN for chunk in chunks[:-1])


@pytest.mark.slow
@given(st.lists(st.tuples(texts, texts), max_size=5))
def test_exchanges_are_read_as_they_were_written(bodies: list[tuple[bytes, bytes]]) -> None:
    exchanges = tuple(
        replace(EXCHANGE, request=request, response=response) for request, response in bodies
    )
    with TemporaryDirectory() as folder:
        Cassette(Path(folder)).write("e", exchanges)
        assert Cassette(Path(folder)).read("e") == exchanges


def test_a_chunk_names_no_file_outside_the_cassette(tmp_path: Path) -> None:
    cassette, secret = Cassette(tmp_path / "cassette"), tmp_path / "secret"
    secret.write_bytes(b"of the user")
    cassette.write("e", [EXCHANGE])
    fields = json.loads(cassette.file("e").read_text())
    fields["chunks"][0] = "../../secret"
    cassette.file("e").write_text(json.dumps(fields) + "\n")
    with pytest.raises(InputError, match="is not a list of exchanges"):
        cassette.read("e")


def test_a_file_of_another_form_is_no_list_of_exchanges(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path)
    cassette.write("e", [EXCHANGE])
    cassette.file("e").write_text('{"request": "0"}\n')
    with pytest.raises(InputError, match="is not a list of exchanges"):
        cassette.read("e")


@pytest.mark.parametrize(("chunk", "times"), [(b"", 200_000), (b"x" * (1 << 20), 10)])
def test_a_short_file_does_not_expand_without_limit(
    tmp_path: Path, chunk: bytes, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fumehood.records.cassette.EPISODE_BYTES_MAX", 8 << 20)
    cassette, exchange = Cassette(tmp_path), replace(EXCHANGE, request=chunk)
    cassette.write("e", [exchange])
    assert cassette.read("e") == (exchange,)
    fields = json.loads(cassette.file("e").read_text())
    fields["request"] *= times
    cassette.file("e").write_text(json.dumps(fields) + "\n")
    with pytest.raises(InputError, match="more than 8,388,608 bytes: record the episode again"):
        cassette.read("e")


def test_an_episode_may_have_exactly_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk counts when it is read and at each reference, each time with 64 bytes more."""
    cassette, exchange = Cassette(tmp_path), replace(EXCHANGE, request=b"x" * 1000)
    cassette.write("e", [exchange])
    counted = 2 * sum(len(body) + 64 for body in (exchange.request, exchange.response))
    monkeypatch.setattr("fumehood.records.cassette.EPISODE_BYTES_MAX", counted)
    assert cassette.read("e") == (exchange,)
    monkeypatch.setattr("fumehood.records.cassette.EPISODE_BYTES_MAX", counted - 1)
    with pytest.raises(InputError, match="record the episode again"):
        cassette.read("e")


def test_no_chunk_is_named_twice(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path)
    cassette.write("e", [EXCHANGE])
    fields = json.loads(cassette.file("e").read_text())
    fields["chunks"] += fields["chunks"][:1]
    cassette.file("e").write_text(json.dumps(fields) + "\n")
    with pytest.raises(InputError, match="is not a list of exchanges"):
        cassette.read("e")


def test_one_chunk_is_not_copied_a_thousand_times(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path)
    cassette.write("e", [replace(EXCHANGE, request=b"x" * (1 << 20))])
    fields = json.loads(cassette.file("e").read_text())
    fields["request"] *= 1 + EPISODE_BYTES_MAX // (1 << 20)
    cassette.file("e").write_text(json.dumps(fields) + "\n")
    tracemalloc.start()
    with pytest.raises(InputError, match="have more than 1,073,741,824 bytes"):
        cassette.read("e")
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_the_chunks_of_replaced_attempts_are_removed(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path)
    cassette.write("e", conversation(3))
    cassette.write("e", [EXCHANGE])
    cassette.drop_unreferenced()
    assert len(list((tmp_path / "bodies").iterdir())) == 2
    assert cassette.read("e") == (EXCHANGE,)
