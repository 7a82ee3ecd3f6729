"""A run stores what models were asked and answered, without keys, within its size budget."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.encryption import ENCRYPTED, decrypt_text
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.trace import ModelExchange
from fumehood.orchestrator.config import ModelsConfig
from fumehood.orchestrator.models import ModelRun
from fumehood.records.cassette import CHUNK_BYTES_MIN, Cassette
from fumehood.report.model_texts import Conversation
from tests.parts.exchanges import exchange
from tests.parts.specs import episode_spec

KEY = "sk-secret-0123456789"


def keep(
    run: ModelRun,
    *exchanges: ModelExchange,
    spec: EpisodeSpec | None = None,
    success: bool | None = False,
) -> None:
    recording = run.recording(spec or episode_spec())
    for each in exchanges:
        run.add(recording, each)
    run.keep(recording, success)


def kept(
    folder: Path,
    *exchanges: ModelExchange,
    spec: EpisodeSpec | None = None,
    success: bool | None = False,
    **settings: Any,
) -> tuple[ModelExchange, ...]:
    """Store the exchanges of one episode, and return what is stored."""
    run = ModelRun(ModelsConfig.model_validate(settings), folder, [KEY, "", "short"])
    keep(run, *exchanges, spec=spec, success=success)
    return Cassette(folder / "cassette").read((spec or episode_spec()).episode_id)


def test_requests_and_responses_are_stored_by_default(tmp_path: Path) -> None:
    asked = exchange(b'{"a": 1}', b'{"b": 2}')
    assert kept(tmp_path, asked) == (asked,)


def test_keys_are_replaced(tmp_path: Path) -> None:
    (stored,) = kept(tmp_path, exchange(b"short", f'"wrong key {KEY}"'.encode()))
    assert (stored.request, stored.response) == (b"short", b'"wrong key [key]"')
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*.*"))


@pytest.mark.parametrize("mode", ["live", "record"])
def test_the_bodies_of_encrypted_questions_are_encrypted_and_not_shown(
    tmp_path: Path, mode: str
) -> None:
    spec = replace(
        episode_spec(), harness_mode=ENCRYPTED, initial_state={"canary": "bird", "question": ""}
    )
    stored = kept(tmp_path, exchange(b'"the question"'), spec=spec, mode=mode)
    assert b"question" not in stored[0].request
    assert decrypt_text(stored[0].request.decode(), "bird") == '"the question"'
    conversation = Conversation(stored)
    assert conversation.is_encrypted
    assert conversation.lines("agent", "k") == []


@pytest.mark.parametrize(
    ("mode", "harness_mode", "is_replayed"),
    [
        ("replay", "native", True),
        ("replay", ENCRYPTED, False),
        ("live", "native", False),
        ("record", "native", False),
    ],
)
def test_only_a_replay_of_plain_questions_uses_what_is_stored(
    tmp_path: Path, mode: str, harness_mode: str, *, is_replayed: bool
) -> None:
    stored = kept(tmp_path, exchange())
    assert stored
    run = ModelRun(ModelsConfig.model_validate({"mode": mode}), tmp_path, [])
    recorded = run.recorded(replace(episode_spec(), harness_mode=harness_mode))
    assert tuple(recorded) == (stored if is_replayed else ())


def test_nothing_is_stored_if_the_run_does_not_want_it(tmp_path: Path) -> None:
    assert kept(tmp_path, exchange(), bodies="none") == ()
    assert len(kept(tmp_path, exchange(), bodies="none", mode="record")) == 1


@pytest.mark.parametrize(("success", "stored"), [(True, 0), (False, 1), (None, 1)])
def test_a_run_can_store_only_episodes_without_success(
    tmp_path: Path, success: bool | None, stored: int
) -> None:
    assert len(kept(tmp_path, exchange(), bodies="failed", success=success)) == stored
    assert len(kept(tmp_path, exchange(), bodies="failed", success=success, mode="record")) == 1


def test_an_attempt_that_is_not_kept_replaces_an_earlier_one(tmp_path: Path) -> None:
    assert len(kept(tmp_path, exchange(), bodies="failed")) == 1
    assert kept(tmp_path, exchange(), bodies="failed", success=True) == ()


@pytest.mark.slow
def test_a_recorded_run_holds_no_bodies_in_memory(tmp_path: Path) -> None:
    run = ModelRun(ModelsConfig.model_validate({"mode": "record"}), tmp_path, [])
    recording = run.recording(episode_spec())
    tracemalloc.start()
    for number in range(40):
        run.add(recording, exchange(bytes([number]) * (1 << 20)))
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    run.keep(recording, success=None)
    assert held_bytes < 2 << 20
    assert len(Cassette(tmp_path / "cassette").read(episode_spec().episode_id)) == 40


def test_an_episode_beyond_the_size_budget_is_not_stored(tmp_path: Path) -> None:
    config = ModelsConfig.model_validate({"bodies_mb": 1})
    run = ModelRun(config, tmp_path, [])
    for number in range(3):
        large = exchange(bytes([number]) * (600 << 10))
        keep(run, large, spec=replace(episode_spec(), episode_id=f"e{number}"))
    cassette = Cassette(tmp_path / "cassette")
    assert [len(cassette.read(f"e{number}")) for number in range(3)] == [1, 0, 0]
    # A resumed run counts what is stored already.
    again = ModelRun(config, tmp_path, [])
    keep(again, exchange(b"3" * (600 << 10)), spec=replace(episode_spec(), episode_id="e3"))
    assert cassette.read("e3") == ()
    # Equal bodies take no space.
    keep(again, exchange(bytes(600 << 10)), spec=replace(episode_spec(), episode_id="e4"))
    assert len(cassette.read("e4")) == 1


def test_small_objects_take_the_space_of_their_files(tmp_path: Path) -> None:
    run = ModelRun(ModelsConfig.model_validate({"bodies_mb": 1}), tmp_path, [])
    objects = [
        json.dumps({"number": number, "text": "x" * CHUNK_BYTES_MIN}) for number in range(400)
    ]
    keep(run, exchange(f"[{','.join(objects)}]".encode()))
    assert not (tmp_path / "cassette" / "bodies").exists(), "400 files have more than 1 MiB"
    keep(run, exchange(f"[{','.join(objects[:200])}]".encode()))
    assert len(list((tmp_path / "cassette" / "bodies").iterdir())) == 201


def test_one_episode_cannot_use_up_the_space_of_the_others(tmp_path: Path) -> None:
    config = ModelsConfig.model_validate({"bodies_mb": 4})
    run = ModelRun(config, tmp_path, [], episodes=4)
    sizes_kib = (3000, 100, 1000, 2900)
    for number, size_kib in enumerate(sizes_kib):
        large = exchange(bytes([number]) * (size_kib << 10))
        keep(run, large, spec=replace(episode_spec(), episode_id=f"e{number}"))
    cassette = Cassette(tmp_path / "cassette")
    # The last one also gets what the others left.
    assert [len(cassette.read(f"e{number}")) for number in range(4)] == [0, 1, 1, 1]
    greedy = ModelRun(config, tmp_path / "greedy", [])
    keep(greedy, exchange(bytes(3000 << 10)), spec=episode_spec())
    stored = Cassette(tmp_path / "greedy" / "cassette").read(episode_spec().episode_id)
    assert len(stored) == 1, "the control: no other episode needs the space"


def test_a_replay_is_stored_in_its_own_run_and_reads_from_the_cassette(tmp_path: Path) -> None:
    source = tmp_path / "source"
    recorded = exchange(b"1", b"2")
    Cassette(source).write(episode_spec().episode_id, [recorded])
    config = ModelsConfig.model_validate({"mode": "replay", "cassette": source})
    run = ModelRun(config, tmp_path / "run", [])
    assert run.recorded(episode_spec()) == (recorded,)
    keep(run, exchange(b"3"))
    assert Cassette(source).read(episode_spec().episode_id) == (recorded,)
    assert len(Cassette(tmp_path / "run" / "cassette").read(episode_spec().episode_id)) == 1
