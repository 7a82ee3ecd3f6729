"""A run folder is read as it was written; torn rows are ignored and changes are errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InfraError, InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.outcome import Finished, Infra, InfraKind
from fumehood.core.score import Score
from fumehood.core.task import Case, Suite
from fumehood.core.trace import BrokenTrace, Chain, Record, verify_chain
from fumehood.orchestrator.plan import PlannedEpisode, plan_episodes
from fumehood.orchestrator.run import missing
from fumehood.records.cassette import Cassette
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.run_reader import open_run
from fumehood.records.seals import Signing
from fumehood.records.trust import Trust
from tests.parts.exchanges import exchange
from tests.parts.reading import unverified
from tests.parts.sealed_runs import KEY, NAMES, finished_run, new_run, play, trace_of
from tests.parts.specs import fault_plan
from tests.parts.tasks import crud_task

RENAMES = {"family": "schema_drift", "payload": {"rename_args": {"z": "a", "a": "z"}}}
SUITE = Suite(
    "small",
    tuple(
        Case(crud_task(name, fault_plan=fault_plan(RENAMES)), Gold("native", ()))
        for name in ("t1", "t2/x", "ä")
    ),
)
NAME = EpisodeName("agent", "t1", 0)


def row(name: EpisodeName = NAME, **changes: Any) -> EpisodeRow:
    plain = EpisodeRow(
        name=name,
        seed=7,
        outcome=Finished("é"),
        score=Score(True, {"check_0:equals": True}, {"steps": 1, "rate": 0.5}),
        trace="",
        trace_digest="",
        attempts=1,
        wall_ms=5,
        stdout_bytes=0,
        stderr_bytes=0,
        refusals=0,
    )
    return replace(plain, **changes)


def infra(name: EpisodeName = NAME) -> EpisodeRow:
    return row(name, outcome=Infra(InfraKind.ENGINE, "no daemon"), score=Score(None))


def trace(*events: dict[str, Any]) -> list[Record]:
    chain = Chain()
    records = [Record(text, chain.link(text), 10, 20) for text in map(canonical_json, events)]
    seal = chain.end_record()
    return [*records, Record(seal, chain.link(seal), 11, 0)]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A new run folder."""
    return RunFolder.create(tmp_path / "run", {"suite": "small", "n": 1}, SUITE)


def again(folder: RunFolder) -> RunFolder:
    """The same folder, opened again."""
    return RunFolder.open(folder.path)


def test_a_folder_is_read_unchanged(folder: RunFolder) -> None:
    records = trace({"kind": "call", "é": [1, 1.0, 10**30]})
    where = folder.write_trace(NAME, records)
    written = row(trace=where, trace_digest=verify_chain(records))
    folder.append_rows([written])
    folder.write_output(NAME, b"printed\xff", b"")
    other = again(folder)
    assert other.rows() == [written]
    assert other.read_trace(written) == records
    assert verify_chain(other.read_trace(written)) == written.trace_digest
    assert [path.read_bytes() for path in unverified(folder.path).outputs(NAME)] == [b"printed\xff"]
    assert other.manifest() == {"format": "fumehood.run/1", "suite": "small", "n": 1}


def test_a_suite_keeps_the_order_of_its_keys(folder: RunFolder) -> None:
    suite = unverified(folder.path).suite()
    assert suite == SUITE
    payload = suite.cases[0].task.fault_plan[0].payload["rename_args"]
    assert isinstance(payload, dict)
    assert list(payload) == ["z", "a"]


def test_a_new_run_needs_an_empty_folder(folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"run fumehood resume {folder.path}"):
        RunFolder.create(folder.path, {}, SUITE)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not empty"):
        RunFolder.create(tmp_path / "file", {}, SUITE)
    (tmp_path / "empty").mkdir()
    RunFolder.create(tmp_path / "empty", {}, SUITE)


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "{}", '{"format":"fumehood.run/99"}', "\ud800"]
)
def test_a_folder_without_a_valid_manifest_is_an_input_error(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "run.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=r"run\.json"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize("text", ["{}", '{"format":"fumehood.run/99"}'])
def test_the_file_of_another_format_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError) as refusal:
        RunFolder.open(tmp_path)
    assert str(refusal.value).startswith(str(tmp_path / "run.json"))


@pytest.mark.parametrize("cut", [1, 2, 40, -2, -1])
def test_a_torn_last_row_is_ignored_and_removed(folder: RunFolder, cut: int) -> None:
    whole, torn = row(), row(EpisodeName("agent", "t2/x", 0))
    folder.append_rows([whole])
    line = canonical_json(torn.to_json()) + "\n"
    with (folder.path / "episodes.jsonl").open("a") as rows:
        rows.write(line[:cut])
    known = again(folder).rows()
    assert known == ([whole, torn] if cut == -1 else [whole])
    resumed = again(folder)
    resumed.drop_torn_row()
    assert resumed.rows() == [whole]
    resumed.append_rows([torn])
    assert again(folder).rows() == [whole, torn]


@pytest.mark.parametrize("kept", [0, 10, -3])
def test_an_episode_with_a_torn_trace_is_not_finished(folder: RunFolder, kept: int) -> None:
    records = trace({"kind": "call"})
    where = folder.write_trace(NAME, records)
    folder.append_rows([row(trace=where, trace_digest=verify_chain(records))])
    assert [item.name for item in folder.finished_rows()] == [NAME]
    whole = (folder.path / where).read_bytes()
    (folder.path / where).write_bytes(whole[:kept])
    assert folder.finished_rows() == []
    (folder.path / where).unlink()
    assert folder.finished_rows() == []
    assert [item.name for item in folder.rows()] == [NAME]


def test_a_batch_of_rows_is_written_like_single_rows(folder: RunFolder, tmp_path: Path) -> None:
    rows = [row(EpisodeName("agent", f"t{number}", 0)) for number in range(5)]
    folder.append_rows(rows)
    other = RunFolder.create(tmp_path / "other", {}, SUITE)
    for item in rows:
        other.append_rows([item])
    assert again(folder).rows() == rows
    assert (folder.path / "episodes.jsonl").read_bytes() == (
        other.path / "episodes.jsonl"
    ).read_bytes()


def test_dropping_a_torn_row_keeps_complete_rows(folder: RunFolder) -> None:
    folder.drop_torn_row()
    assert folder.rows() == []
    folder.append_rows([row()])
    before = (folder.path / "episodes.jsonl").read_bytes()
    folder.drop_torn_row()
    assert (folder.path / "episodes.jsonl").read_bytes() == before


def _lose_a_key(value: dict[str, Any]) -> None:
    del value["seed"]


def _lose_the_outcome(value: dict[str, Any]) -> None:
    value["end"] = {"outcome": "won"}


def _end_in_a_list(value: dict[str, Any]) -> None:
    value["end"] = [["outcome", "finished"]]


def _list_the_checks(value: dict[str, Any]) -> None:
    value["checks"] = []


@pytest.mark.parametrize(
    "spoil", [_lose_a_key, _lose_the_outcome, _end_in_a_list, _list_the_checks]
)
def test_an_invalid_row_is_named_with_its_line(
    folder: RunFolder, spoil: Callable[[dict[str, Any]], None]
) -> None:
    value = row().to_json()
    spoil(value)
    (folder.path / "episodes.jsonl").write_text(
        f"{canonical_json(row().to_json())}\n{canonical_json(value)}\n"
    )
    with pytest.raises(InputError, match=r"episodes\.jsonl:2 is not a row"):
        folder.rows()


def test_a_later_row_of_an_episode_replaces_the_earlier(folder: RunFolder) -> None:
    other = EpisodeName("agent", "t2/x", 0)
    for written in (infra(), row(other), row(attempts=2)):
        folder.append_rows([written])
    assert folder.rows() == [row(attempts=2, earlier_infra=1), row(other)]


def test_episodes_with_the_same_text_have_different_files(folder: RunFolder) -> None:
    first, second = EpisodeName("a/b", "c", 0), EpisodeName("a", "b/c", 0)
    assert str(first) == str(second)
    folder.append_rows([row(first)])
    folder.append_rows([row(second)])
    assert [written.name for written in again(folder).rows()] == [first, second]
    paths = {folder.write_trace(name, trace()) for name in (first, second)}
    assert len(paths) == 2


def test_rows_of_concurrent_threads_are_complete(folder: RunFolder) -> None:
    names = [EpisodeName("agent", "t1", trial) for trial in range(60)]
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda name: folder.append_rows([row(name)]), names))
    assert {written.name for written in again(folder).rows()} == set(names)


def test_an_edited_trace_is_found(folder: RunFolder) -> None:
    where = folder.write_trace(NAME, trace({"kind": "call", "n": 1}))
    path = folder.path / where
    path.write_text(path.read_text().replace('"n":1', '"n":2'))
    with pytest.raises(BrokenTrace):
        verify_chain(folder.read_trace(row(trace=where)))


@pytest.mark.parametrize("text", ["x\n", "[]\n", "{}\n", '{"event":1}\n', "\xff\n"])
def test_an_invalid_trace_is_an_input_error(folder: RunFolder, text: str) -> None:
    where = folder.write_trace(NAME, trace())
    (folder.path / where).write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="is not a readable trace"):
        folder.read_trace(row(trace=where))
    with pytest.raises(InputError, match="is not a readable trace"):
        folder.read_trace(row(trace="traces/none.jsonl"))


def test_a_sealed_trace_is_read_as_it_was_recorded(tmp_path: Path) -> None:
    run = open_run(finished_run(tmp_path / "run").path, Trust(KEY.public, {}))
    assert [run.read_trace(row) for row in run.rows()] == [trace_of(name.task) for name in NAMES]


@pytest.mark.parametrize("text", ["x\n", "[]\n", '{"event":1}\n', "\xff\n"])
def test_a_sealed_file_that_is_no_trace_is_an_input_error(tmp_path: Path, text: str) -> None:
    folder = new_run(tmp_path / "run")
    where = folder.write_trace(NAMES[0], trace_of("t1"))
    (folder.path / where).write_text(text, encoding="latin-1")
    signer = RunFolder.open(folder.path)
    signer.sign_with(Signing(KEY, NAMES))
    signer.append_rows([row(NAMES[0], trace=where, trace_digest="0" * 64)])
    run = open_run(folder.path, Trust(KEY.public, {}))
    with pytest.raises(InputError, match="is not a readable trace"):
        run.read_trace(run.rows()[0])


def test_an_unsealed_file_whose_event_is_no_json_is_an_input_error(tmp_path: Path) -> None:
    folder = finished_run(tmp_path / "run")
    for trace in folder.path.glob("traces/*/*.jsonl"):
        trace.write_text(trace.read_text().replace('"number":1', '"number":'))
    run = unverified(folder.path)
    with pytest.raises(InputError, match="is not a readable trace"):
        run.read_trace(run.rows()[0])


@pytest.mark.parametrize(("mode", "read"), [("record", b"elsewhere"), ("replay", b"own")])
def test_exchanges_are_read_from_where_the_run_stored_them(
    tmp_path: Path, mode: str, read: bytes
) -> None:
    """A run that records writes into the cassette of its settings; a replay only reads it."""
    models: JsonObject = {"mode": mode, "cassette": str(tmp_path / "cassette")}
    manifest: JsonObject = {"run": "r1", "suite": "small", "config": {"models": models}}
    folder = RunFolder.create(tmp_path / "run", manifest, SUITE)
    stored = {tmp_path / "cassette": b"elsewhere", folder.path / "cassette": b"own"}
    for path, request in stored.items():
        Cassette(path).write(NAME.identifier, [exchange(request)])
    (kept,) = unverified(folder.path).exchanges(NAME)
    assert kept.request == read


def test_the_trace_of_an_earlier_attempt_is_removed(folder: RunFolder) -> None:
    folder.append_rows([row(trace=folder.write_trace(NAME, trace({"kind": "call"})))])
    folder.append_rows([infra()])
    assert list((folder.path / "traces").rglob("*.jsonl")) == []


def test_no_partial_files_remain(folder: RunFolder) -> None:
    folder.append_rows([row(trace=folder.write_trace(NAME, trace({"kind": "call"})))])
    files = sorted(path.name for path in folder.path.rglob("*") if path.is_file())
    assert files == ["episodes.jsonl", "run.json", "suite.jsonl", "t1.0.jsonl"]


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("")])
def test_rows_that_another_program_removes_during_a_run_are_an_infra_error(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    folder = new_run(tmp_path / "run")
    play(folder, NAMES[0])
    change(folder.path / "episodes.jsonl")
    with pytest.raises(InfraError, match=r"removed or changed by another program"):
        folder.seal()
    with pytest.raises(InfraError, match=r"another program removed or changed episodes\.jsonl"):
        play(folder, NAMES[1])


@pytest.mark.parametrize("number", [0, 1])
def test_a_row_of_the_same_size_that_another_program_writes_is_not_signed(
    number: int, tmp_path: Path
) -> None:
    folder = new_run(tmp_path / "run")
    for name in NAMES[:2]:
        play(folder, name)
    rows = folder.path / "episodes.jsonl"
    lines = rows.read_text().splitlines(keepends=True)
    lines[number] = lines[number].replace('"success":true', '"success":null')
    rows.write_text("".join(lines))
    with pytest.raises(InfraError, match="removed or changed by another program"):
        folder.seal()


def test_an_unsigned_run_is_not_signed_later(folder: RunFolder) -> None:
    resumed = again(folder)
    with pytest.raises(InputError, match="not signed, so its origin is unknown"):
        resumed.sign_with(Signing(KEY, NAMES))
    resumed.append_rows([row()])
    resumed.seal()
    assert b'"seal"' not in (folder.path / "episodes.jsonl").read_bytes()
    assert not (folder.path / "seal.json").exists()


PLANNED = list(plan_episodes(SUITE, ["one", "two"], trials=2, seed=0))


def test_all_episodes_are_missing_at_first_and_none_at_the_end() -> None:
    assert missing(PLANNED, []) == PLANNED
    assert missing(PLANNED, [row(planned.name) for planned in PLANNED]) == []


def test_missing_episodes_have_the_order_of_the_plan() -> None:
    done = [row(PLANNED[place].name) for place in (5, 0, 7)]
    assert missing(PLANNED, done) == [
        episode for place, episode in enumerate(PLANNED) if place not in (0, 5, 7)
    ]


def test_only_infra_rows_are_run_again() -> None:
    rows = [infra(PLANNED[0].name), row(PLANNED[1].name, score=Score(False)), row(PLANNED[2].name)]
    assert missing(PLANNED, rows) == [PLANNED[0], *PLANNED[3:]]


def test_rows_of_another_plan_are_ignored() -> None:
    assert (
        missing(PLANNED, [row(EpisodeName("three", "t1", 0)), row(EpisodeName("one", "t1", 9))])
        == PLANNED
    )


def test_missing_distinguishes_episodes_with_the_same_text() -> None:
    suite = Suite("s", (Case(crud_task("c"), Gold("x", ())), Case(crud_task("b/c"), Gold("x", ()))))
    planned: list[PlannedEpisode] = list(plan_episodes(suite, ["a/b", "a"], trials=1, seed=0))
    left = missing(planned, [row(EpisodeName("a/b", "c", 0))])
    assert [item.name for item in left] == [
        item.name for item in planned if item.name != EpisodeName("a/b", "c", 0)
    ]
    assert len({item.to_spec(1).episode_id for item in planned}) == len(planned) == 4


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_only_the_user_can_read_a_run(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        run = finished_run(tmp_path / "runs" / "run")
        Cassette(run.path / "cassette").write(NAMES[0].identifier, ())
    finally:
        os.umask(before)
    modes = {path: path.lstat().st_mode & 0o777 for path in (run.path, *run.path.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if not path.is_dir()} == {0o600}


def test_a_trace_that_cannot_be_written_leaves_no_file(folder: RunFolder, tmp_path: Path) -> None:
    where = folder.path / folder.write_trace(NAME, trace({"kind": "call"}))
    where.unlink()
    where.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InfraError, match="cannot be written"):
        folder.write_trace(NAME, trace({"kind": "call"}))
    assert not where.is_symlink()
    assert not (tmp_path / "elsewhere").exists()
