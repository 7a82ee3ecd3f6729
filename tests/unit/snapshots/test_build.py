"""Builds are reproducible with any number of workers, resumable, and list broken inputs."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from fumehood_snapshots.build.options import BuildOptions, Pace, profile
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.errors import SnapshotBuildError, SnapshotInputError
from fumehood_snapshots.snapshot import open_snapshot
from fumehood_snapshots.sources.jsonl import JsonLines
from tests.unit.snapshots.building import ANIMALS, Record, build, built, contents, write_jsonl


def _many(count: int) -> list[Record]:
    return [
        {
            "id": f"d{number:04d}",
            "url": f"https://h{number % 3}.example/{number}",
            "text": f"word{number % 17} " * 9,
        }
        for number in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "pace",
    [
        Pace(),
        Pace(chunk_items=1),
        Pace(chunk_items=7, merge_postings=1),
        Pace(chunk_bytes=300),
        Pace(workers=2, chunk_items=50),
    ],
    ids=["one chunk", "a chunk each", "tiny merges", "by bytes", "two workers"],
)
def test_builds_are_reproducible_with_any_number_of_workers(tmp_path: Path, pace: Pace) -> None:
    build(tmp_path / "a" / "snapshot", _many(120))
    build(tmp_path / "b" / "snapshot", _many(120), pace=pace)
    assert contents(tmp_path / "a" / "snapshot") == contents(tmp_path / "b" / "snapshot")


def test_documents_are_in_the_order_of_their_ids_for_any_input_order(
    tmp_path: Path,
) -> None:
    forward = built(tmp_path / "a" / "snapshot", _many(40))
    backward = built(tmp_path / "b" / "snapshot", reversed(_many(40)))
    assert [document.id for document in backward.documents] == sorted(
        record["id"] for record in _many(40)
    )
    same = {
        "documents/records.jsonl",
        "index/documents.npy",
        "index/weights.npy",
        "documents/urls.utf8",
    }
    assert {name: contents(forward.root)[name] for name in same} == {
        name: contents(backward.root)[name] for name in same
    }


def test_broken_lines_are_listed_with_their_reason_and_the_rest_is_built(tmp_path: Path) -> None:
    source = tmp_path / "input.jsonl"
    lines = [
        json.dumps(ANIMALS[0]),
        "{not json",
        "[]",
        '{"text": "a line without an ID"}',
        '{"id": "two words", "text": "x"}',
        '{"id": "empty", "text": "  "}',
        '{"id": "cat", "text": "a second cat"}',
        '{"id": "lone", "text": "x", "url": "https://e.example/\\ud800"}',
        '{"id": "when", "text": "x", "fetched_at": "yesterday"}',
        '{"id": "fields", "text": "x", "fields": {"year": 2020}}',
        '{"id": "html", "html": "<p>an owl</p>", "url": "https://e.example/\\udfff"}',
        "[" * 100_000,
    ]
    source.write_text("\n".join(lines), encoding="utf-8")
    manifest = build_snapshot([JsonLines(source)], tmp_path / "snapshot", BuildOptions())
    assert (manifest.counts.documents, manifest.counts.broken) == (1, 11)
    listed = (
        (tmp_path / "snapshot" / "documents" / "broken.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    reasons = {
        entry["where"].removeprefix("input.jsonl:"): entry["reason"]
        for entry in map(json.loads, listed)
    }
    assert reasons.keys() == {"2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"}
    assert "used by input.jsonl:1" in reasons["7"]
    assert "not JSON" in reasons["2"]


def test_a_text_of_lone_surrogates_is_kept_with_replacements(tmp_path: Path) -> None:
    snapshot = built(
        tmp_path / "snapshot", [{"id": "x", "text": "caf\ud800 au lait", "title": "\udfff"}]
    )
    assert snapshot.documents[0].text == "caf? au lait"


def test_an_existing_folder_is_never_overwritten(tmp_path: Path) -> None:
    build(tmp_path / "snapshot")
    with pytest.raises(SnapshotInputError, match="exists"):
        build(tmp_path / "snapshot")


def test_inputs_without_a_single_item_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotInputError, match="contain no document"):
        build(tmp_path / "snapshot", [])


def test_a_finished_build_leaves_no_other_files(tmp_path: Path) -> None:
    build(tmp_path / "snapshot")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input.jsonl", "snapshot"]


def _build_slowly(source: Path, out: Path) -> None:
    def dawdle(stage: str, done: int, total: int | None) -> None:
        time.sleep(0.05)

    build_snapshot([JsonLines(source)], out, BuildOptions(), Pace(chunk_items=10), dawdle)


@pytest.mark.slow
def test_a_killed_build_resumes_with_its_finished_chunks(tmp_path: Path) -> None:
    source, out = write_jsonl(tmp_path / "input.jsonl", _many(400)), tmp_path / "snapshot"
    chunks = tmp_path / ".snapshot.building" / "chunks"
    process = multiprocessing.get_context("spawn").Process(target=_build_slowly, args=(source, out))
    process.start()
    while not (chunks / "000004").exists():
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    survivors = {path.name: path.stat().st_ino for path in chunks.iterdir() if path.name.isdigit()}
    assert not out.exists()

    seen: dict[str, int] = {}
    build_snapshot(
        [JsonLines(source)],
        out,
        BuildOptions(),
        Pace(chunk_items=10),
        lambda stage, done, total: (
            seen.update(
                {
                    path.name: path.stat().st_ino
                    for path in chunks.iterdir()
                    if path.name in survivors
                }
            )
            if stage == "reading"
            else None
        ),
    )
    assert seen == survivors
    build(tmp_path / "again" / "snapshot", _many(400))
    assert contents(out) == contents(tmp_path / "again" / "snapshot")


def test_chunks_of_other_options_are_not_resumed(tmp_path: Path) -> None:
    workshop = tmp_path / ".snapshot.building"
    (workshop / "chunks" / "000000").mkdir(parents=True)
    (workshop / "plan.json").write_text("{}", encoding="utf-8")
    assert len(built(tmp_path / "snapshot").documents) == len(ANIMALS)


def test_concurrent_builds_of_one_snapshot_are_refused(tmp_path: Path) -> None:
    source = JsonLines(write_jsonl(tmp_path / "input.jsonl", ANIMALS))

    def build_again(stage: str, done: int, total: int | None) -> None:
        with pytest.raises(SnapshotBuildError, match="another build"):
            build_snapshot([source], tmp_path / "snapshot", BuildOptions())

    build_snapshot([source], tmp_path / "snapshot", BuildOptions(), progress=build_again)


def test_a_manifest_contains_no_time_and_no_path(tmp_path: Path) -> None:
    build(tmp_path / "snapshot", options=BuildOptions(note="for a test", licences=("CC0",)))
    text = (tmp_path / "snapshot" / "manifest.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert json.loads(text)["provenance"]["inputs"][0]["name"] == "input.jsonl"


def test_a_profile_has_the_search_settings_of_the_paper(tmp_path: Path) -> None:
    options = profile("uniace", name="animals")
    manifest = built(tmp_path / "snapshot", options=options).manifest
    assert (manifest.ranking.method, manifest.ranking.k1, manifest.ranking.b) == (
        "okapi",
        1.5,
        0.75,
    )
    assert (manifest.search.k, manifest.search.snippet_chars) == (5, 20_000)
    assert manifest.analysis.stemmer == "porter"
    with pytest.raises(SnapshotInputError, match="uniace-sharded"):
        profile("unheard-of")


def test_a_reopened_snapshot_equals_the_written_one(tmp_path: Path) -> None:
    manifest = build(tmp_path / "snapshot")
    snapshot = open_snapshot(tmp_path / "snapshot")
    assert snapshot.manifest == manifest
    assert {document.id for document in snapshot.documents} == {record["id"] for record in ANIMALS}
