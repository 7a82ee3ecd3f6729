"""Traces that share a file are sealed, read and resumed like traces with their own files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.errors import InfraError, InputError
from fumehood.orchestrator.launch import prepare_resume
from fumehood.records.packed_traces import PACK, PackedTrace, TracePack, read_trace_content
from fumehood.records.run_folder import RunFolder
from fumehood.records.run_memory import RunMemory
from fumehood.records.run_reader import open_run
from fumehood.records.seals import FIRST, SealedFile, Signing, digest_bytes, sealed_line
from fumehood.records.trust import Trust
from fumehood.records.verify import verify
from tests.parts.sealed_runs import KEY, NAMES, finished_run, new_run, play, trace_of

SIGNING = Signing(KEY, NAMES)


def packed_run(path: Path, finished: int = len(NAMES)) -> RunFolder:
    folder = new_run(path)
    folder.pack_traces()
    for name in NAMES[:finished]:
        play(folder, name)
    folder.seal()
    return folder


def damage_of(run: Path) -> list[str]:
    return [str(damage) for damage in verify(run).damage]


def test_the_traces_of_a_packed_run_are_parts_of_one_file(tmp_path: Path) -> None:
    folder = packed_run(tmp_path / "run")
    assert damage_of(folder.path) == []
    assert list((folder.path / "traces").iterdir()) == []
    run = open_run(folder.path, Trust(KEY.public))
    assert [run.read_trace(row) for row in run.rows()] == [trace_of(name.task) for name in NAMES]
    parts = [PackedTrace.parse(row.trace) for row in run.rows()]
    sizes = [part.size for part in parts if part]
    assert sum(sizes) == (folder.path / PACK).stat().st_size
    assert folder.finished_rows() == run.rows()


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_each_place_holds_the_trace_that_was_added(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("pack")
    pack = TracePack(folder)

    def add(content: bytes) -> str:
        where = pack.add(content)
        pack.write()
        return where

    with ThreadPoolExecutor(4) as threads:
        places = list(threads.map(add, contents))
    filled = [(where, content) for where, content in zip(places, contents, strict=True) if content]
    assert [read_trace_content(folder, where) for where, _ in filled] == [
        content for _, content in filled
    ]


def append_a_byte(run: Path) -> None:
    (run / PACK).write_bytes((run / PACK).read_bytes() + b"x")


def exchange_two_bytes(run: Path) -> None:
    content = bytearray((run / PACK).read_bytes())
    content[20:22] = content[21:19:-1]
    (run / PACK).write_bytes(content)


def link_to_another_file(run: Path) -> None:
    (run / PACK).rename(run.parent / "elsewhere")
    (run / PACK).symlink_to(run.parent / "elsewhere")


@pytest.mark.parametrize(
    "change",
    [append_a_byte, exchange_two_bytes, link_to_another_file, lambda run: (run / PACK).unlink()],
)
def test_a_changed_pack_of_a_finished_run_is_damage(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    run = packed_run(tmp_path / "run").path
    change(run)
    assert f"{PACK}: not the file that was sealed with the run" in damage_of(run)
    with pytest.raises(InputError, match="does not verify"):
        open_run(run, Trust(KEY.public))


def test_a_changed_part_is_found_while_the_run_goes_on(tmp_path: Path) -> None:
    folder, memory = packed_run(tmp_path / "run", finished=1), RunMemory()
    not_run = [str(name) for name in NAMES[1:]]
    assert [damage.where for damage in verify(folder.path, memory=memory).damage] == not_run
    content = (folder.path / PACK).read_bytes()
    changed = content.replace(b"t1", b"T1", 1)
    assert changed != content
    (folder.path / PACK).write_bytes(changed)
    assert memory.is_stale()
    part = str(PackedTrace(0, len(content)))
    assert [damage.where for damage in verify(folder.path, memory=memory).damage] == [
        *not_run,
        part,
    ]
    (folder.path / PACK).write_bytes(content)
    assert [damage.where for damage in verify(folder.path, memory=memory).damage] == not_run


def test_a_part_of_a_file_that_grows_is_read_once_until_earlier_content_changes(
    tmp_path: Path,
) -> None:
    file, memory, readings = tmp_path / PACK, RunMemory(), list[str]()

    def part() -> str:
        readings.append(file.read_text()[:5])
        return readings[-1]

    def first_part() -> str:
        memory.begin_growing(file)
        return memory.of_part("first", part)

    file.write_text("12345")
    for appended in ("", "6", "x" * (3 << 20), "9"):
        with file.open("a") as grown:
            grown.write(appended)
        assert first_part() == "12345"
    assert readings == ["12345"]
    file.write_text("1234x" + file.read_text()[5:])
    assert first_part() == "1234x"
    file.write_text("12")
    assert first_part() == "12"
    file.unlink()
    memory.begin_growing(file)
    file.write_text("abcde")
    assert first_part() == "abcde"


def test_a_part_is_read_once_while_its_file_grows_from_nothing(tmp_path: Path) -> None:
    file, memory, readings = tmp_path / PACK, RunMemory(), list[int]()

    def read() -> int:
        readings.append(file.stat().st_size)
        return readings[-1]

    for content in (b"", b"1", b"12"):
        file.write_bytes(content)
        memory.begin_growing(file)
        assert memory.of_part("all", read) == 0
    assert readings == [0]


def test_a_pack_that_is_added_to_a_finished_run_is_damage(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run").path
    (run / PACK).write_text("{}\n")
    assert damage_of(run) == [f"{PACK}: not the file that was sealed with the run"]


def test_a_run_whose_pack_was_torn_repeats_the_torn_episodes(tmp_path: Path) -> None:
    folder = packed_run(tmp_path / "run", finished=2)
    content = (folder.path / PACK).read_bytes()
    (folder.path / PACK).write_bytes(content[:-10])
    resumed = RunFolder.open(folder.path)
    assert prepare_resume(resumed, SIGNING) == 1
    resumed.pack_traces()
    for name in NAMES[1:]:
        play(resumed, name)
    resumed.seal()
    assert damage_of(folder.path) == []
    run = open_run(folder.path, Trust(KEY.public))
    assert [run.read_trace(row) for row in run.rows()] == [trace_of(name.task) for name in NAMES]


def test_a_resumed_run_may_store_further_traces_in_their_own_files(tmp_path: Path) -> None:
    packed_run(tmp_path / "run", finished=1)
    resumed = RunFolder.open(tmp_path / "run")
    assert prepare_resume(resumed, SIGNING) == 0
    for name in NAMES[1:]:
        play(resumed, name)
    resumed.seal()
    assert damage_of(resumed.path) == []


def test_a_trace_of_a_killed_attempt_does_not_remain_beside_the_packed_one(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    play(folder, NAMES[0])
    folder.write_trace(NAMES[1], trace_of(NAMES[1].task))
    resumed = RunFolder.open(folder.path)
    assert prepare_resume(resumed, SIGNING) == 0
    resumed.pack_traces()
    for name in NAMES[1:]:
        play(resumed, name)
    resumed.seal()
    assert damage_of(folder.path) == []


def test_a_pipe_instead_of_a_pack_is_damage(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run").path
    os.mkfifo(run / PACK)
    assert damage_of(run) == [f"{PACK}: not the file that was sealed with the run"]


@pytest.mark.parametrize("part", ["@0+999999999999999", "@999999999999999+1", "@0+1"])
def test_a_signed_place_without_a_trace_is_an_input_error(part: str, tmp_path: Path) -> None:
    run = packed_run(tmp_path / "run", finished=1).path
    row = json.loads((run / "episodes.jsonl").read_text())
    del row["seal"]
    row["trace"] = f"{PACK}{part}"
    sealed = SealedFile(row["trace"], digest_bytes(b"{"))
    line = sealed_line(row, KEY, run="r1", after=FIRST, records=1, files=[sealed])
    (run / "episodes.jsonl").write_bytes(line)
    with pytest.raises(InputError, match="does not verify"):
        open_run(run, Trust(KEY.public))


def test_a_pack_that_another_program_changes_during_a_run_ends_it_without_a_row(
    tmp_path: Path,
) -> None:
    folder = packed_run(tmp_path / "run", finished=1)
    append_a_byte(folder.path)
    with pytest.raises(InfraError, match=r"another program removed or changed traces\.jsonl"):
        play(folder, NAMES[1])
    assert [row.name for row in folder.rows()] == [NAMES[0]]
