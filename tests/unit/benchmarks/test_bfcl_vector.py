"""Tests of BFCL's memory with embeddings: its unmodified class over this project's index."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.bfcl.tasks import Bfcl
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError, SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.task import Task
from tests.parts.folders import short_folder
from tests.parts.installed import installed

installed("bfcl_eval", "mpmath", "overrides", "rank_bm25", "numpy")

import numpy as np  # noqa: E402

from fumehood.benchmarks.bfcl.sentence_model import SentenceModel  # noqa: E402
from fumehood.benchmarks.bfcl.vectors import FlatIndex, HashedWords  # noqa: E402

PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "##s", "sleep", "bread", ",", "中", "naive")
TEXTS = ("cats sleep", "bread, bread", "naive cat")
CONFIG: Mapping[str, Any] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "layer_norm_eps": 1e-12,
}


@pytest.fixture
def model() -> Iterator[Path]:
    """A model with random weights, which all users can read."""
    with short_folder() as folder:
        write_model(Path(folder))
        yield Path(folder)


def write_model(folder: Path) -> None:
    dense: dict[str, tuple[int, ...]] = {"weight": (8, 8), "bias": (8,)}
    norm: dict[str, tuple[int, ...]] = {"weight": (8,), "bias": (8,)}
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(PIECES), 8),
        "embeddings.position_embeddings.weight": (512, 8),
        "embeddings.token_type_embeddings.weight": (2, 8),
    }
    parts = {f"attention.self.{part}": dense for part in ("query", "key", "value")}
    parts |= {"attention.output.dense": dense, "attention.output.LayerNorm": norm}
    parts |= {"intermediate.dense": {"weight": (16, 8), "bias": (16,)}}
    parts |= {"output.dense": {"weight": (8, 16), "bias": (8,)}, "output.LayerNorm": norm}
    for layer in range(2):
        for part, ends in parts.items():
            names = {f"encoder.layer.{layer}.{part}.{end}": shape for end, shape in ends.items()}
            shapes |= names
    shapes |= {f"embeddings.LayerNorm.{end}": shape for end, shape in norm.items()}
    rng = np.random.default_rng(1)
    table: dict[str, Any] = {}
    content = b""
    for name, shape in shapes.items():
        values = rng.normal(size=shape).astype(np.float32).tobytes()
        ends_at = len(content) + len(values)
        table[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(content), ends_at]}
        content += values
    header = json.dumps(table).encode()
    weights = len(header).to_bytes(8, "little") + header + content
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    vocabulary = {piece: number for number, piece in enumerate(PIECES)}
    tokenizer = {"model": {"type": "WordPiece", "vocab": vocabulary}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")


def task(argument: str = "memory_vector") -> Task:
    return Bfcl().load(argument).cases[0].task


def call(tool: str, **arguments: Json) -> Move:
    return {"tool_name": tool, "args": arguments}


def outputs(of: Task, *moves: Move) -> list[Any]:
    calls = play_in_memory(of, moves).calls
    return [done.output or (done.failure and done.failure.message) for done in calls]


def test_texts_are_found_by_their_words() -> None:
    added = [call("core_memory_add", text=text) for text in TEXTS]
    *ids, found, removed, rest, refused = outputs(
        task(),
        *added,
        call("core_memory_retrieve", query="What about BREAD?", top_k=1),
        call("core_memory_remove", vec_id=1),
        call("core_memory_retrieve_all"),
        call("core_memory_retrieve", query="bread", top_k=0),
    )
    assert [each["id"] for each in ids] == [0, 1, 2]
    assert [(hit["id"], hit["text"]) for hit in found["result"]] == [(1, "bread, bread")]
    assert removed == {"status": "ID 1 removed from store."}
    assert [entry["id"] for entry in rest["result"]] == [0, 2]
    assert refused == "Error during execution: at least one result"


@pytest.mark.slow
def test_limits_and_wrong_types_are_those_of_the_original() -> None:
    moves = [call("core_memory_add", text=f"text {number}") for number in range(8)]
    *_, last = outputs(task(), *moves)
    assert last == {"error": "Memory size exceeds maximum size of 7 entries."}
    (long, number, unknown) = outputs(
        task(),
        call("core_memory_add", text="x" * 301),
        call("archival_memory_add", text=3),
        call("archival_memory_update", vec_id=9, new_text="x"),
    )
    assert long == {"error": "Entry length exceeds maximum length of 300 characters."}
    assert number == "Error during execution: object of type 'int' has no len()"
    assert unknown == {"error": "ID 9 not present in store."}


def test_the_state_is_the_content_that_the_original_writes_to_a_file() -> None:
    played = play_in_memory(task(), [call("archival_memory_add", text="bread")])
    stores = {
        "core_memory": {"next_id": 0, "store": {}},
        "archival_memory": {"next_id": 1, "store": {"0": "bread"}},
    }
    assert played.final_state == {"MemoryAPI_vector": stores}
    later = replace(task(), initial_state={"memory": played.final_state})
    found, added = outputs(
        later,
        call("archival_memory_retrieve", query="bread"),
        call("archival_memory_add", text="more"),
    )
    assert [hit["text"] for hit in found["result"]] == ["bread"]
    assert added == {"id": 1}


@pytest.mark.parametrize(
    "store",
    [
        {"next_id": 1, "store": {"1": "x"}},
        {"next_id": 1, "store": {"a": "x"}},
        {"next_id": 1, "store": {"0": 5}},
        {"next_id": "1", "store": {}},
        {},
        None,
    ],
)
def test_a_memory_that_no_agent_can_have_written_is_refused(store: Json) -> None:
    memory: dict[str, Json] = {
        "core_memory": store,
        "archival_memory": {"next_id": 0, "store": {}},
    }
    with pytest.raises(SpecError, match=r"MemoryAPI_vector\.core_memory"):
        play_in_memory(replace(task(), initial_state={"memory": {"MemoryAPI_vector": memory}}), ())


def test_a_users_model_embeds_in_a_separate_process(model: Path) -> None:
    with_model = task(f"memory_vector:model={model}")
    added = [call("core_memory_add", text=text) for text in TEXTS]
    *_, found = outputs(with_model, *added, call("core_memory_retrieve", query=TEXTS[1], top_k=3))
    embed = SentenceModel(model).embed
    scores = {text: float(embed(TEXTS[1]) @ embed(text)) for text in TEXTS}
    hits = found["result"]
    assert hits[0] == {"id": 1, "similarity_score": 1.0, "text": TEXTS[1]}
    assert {hit["text"]: hit["similarity_score"] for hit in hits} == pytest.approx(scores, abs=1e-4)


def test_a_model_with_other_weights_than_the_task_names_is_not_used(model: Path) -> None:
    named: JsonObject = {"folder": str(model), "sha256": "0" * 64}
    other = replace(task(), initial_state={**task().initial_state, "embeddings": named})
    (reply,) = outputs(other, call("core_memory_add", text="cat"))
    assert "changed" in reply


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can close a folder to others")
def test_a_model_that_other_users_cannot_read_is_refused(model: Path) -> None:
    model.chmod(0o700)
    with pytest.raises(InputError, match="must be a model that all users can read"):
        task(f"memory_vector:model={model}")


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("config.json", None, r"has no config\.json"),
        ("config.json", "{", "cannot be read as JSON"),
        ("config.json", '{"model_type": "mpnet"}', "only models of type bert"),
        ("tokenizer.json", "{}", "no vocabulary"),
        ("model.safetensors", None, r"has no model\.safetensors"),
        ("model.safetensors", "x" * 99, "format safetensors"),
        ("model.safetensors", "\2\0\0\0\0\0\0\0{}", r"has no embeddings\.word_embeddings.* more"),
    ],
)
def test_a_folder_that_is_no_usable_model_is_one_clear_line(
    model: Path, file: str, content: str | None, reason: str
) -> None:
    if content is None:
        (model / file).unlink()
    else:
        (model / file).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=reason) as error:
        Bfcl().load(f"memory_vector:model={model}")
    assert "\n" not in str(error.value)


def test_the_criterion_states_that_scores_without_a_model_are_not_comparable() -> None:
    about = Bfcl().load("memory_vector:chats").about
    assert about is not None
    assert "not comparable" in about.criterion


def test_words_become_the_longest_known_pieces(model: Path) -> None:
    def pieces(text: str) -> Sequence[str]:
        return [PIECES[number] for number in SentenceModel(model).tokens(text)]

    assert pieces("Cats, NAÏVE") == ["[CLS]", "cat", "##s", ",", "naive", "[SEP]"]
    assert pieces("catss dog 中cat\u0000") == [
        *("[CLS]", "cat", "##s", "##s", "[UNK]", "中", "cat", "[SEP]"),
    ]
    assert len(pieces("cat " * 9_999)) == 256
    assert pieces("s" * 101) == ["[CLS]", "[UNK]", "[SEP]"]


@given(st.lists(st.text(max_size=30), min_size=1, max_size=8), st.text(max_size=30))
def test_a_search_returns_the_most_similar_texts_in_order(texts: list[str], query: str) -> None:
    words = HashedWords()
    index = FlatIndex()
    vectors = words.encode(texts)
    index.add_with_ids(vectors, np.arange(len(texts)))
    count = random.Random(query).randint(1, len(texts))
    ((scores,), (ids,)) = index.search(words.encode([query]), count)
    assert len(ids) == len(set(ids)) == count
    assert scores == sorted(scores, reverse=True)
    expected = sorted(
        (float(vector @ words.encode([query])[0]) for vector in vectors), reverse=True
    )
    assert scores == pytest.approx(expected[:count], abs=1e-4)
    assert all(
        length == pytest.approx(1) or length == 0 for length in np.linalg.norm(vectors, axis=1)
    )
