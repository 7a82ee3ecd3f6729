"""A changed run is not resumed; episodes that a power cut spoiled are run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.score import UNGRADED
from fumehood.orchestrator.launch import DAMAGED, prepare_resume
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.seals import Signing
from fumehood.records.verify import verify
from tests.parts.sealed_runs import KEY, NAMES, OTHER_KEY, finished_run, new_run, play

SIGNING = Signing(KEY, NAMES)
TRACE = "traces/agent/t2.0.jsonl"
PRINTED = "output/agent/t2.0.stdout"


def unfinished_run(path: Path) -> RunFolder:
    folder = new_run(path)
    for name in NAMES[:2]:
        play(folder, name)
    return folder


def damage_of(folder: RunFolder) -> list[str]:
    return [str(damage) for damage in verify(folder.path).damage]


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def edit_row(run: Path) -> None:
    rewrite(run / "episodes.jsonl", '"success":true', '"success":false')


def edit_trace(run: Path) -> None:
    rewrite(run / TRACE, '"number":1', '"number":7')


def edit_time(run: Path) -> None:
    rewrite(run / TRACE, '"wall_ms":1001', '"wall_ms":1002')


def link_trace(run: Path) -> None:
    (run / TRACE).rename(run.parent / "elsewhere")
    (run / TRACE).symlink_to(run.parent / "elsewhere")


def sign_the_plan_again(run: Path) -> None:
    other = new_run(run.parent / "other", OTHER_KEY).path
    (other / "seal.json").replace(run / "seal.json")
    rewrite(other / "run.json", OTHER_KEY.public, KEY.public)


def reorder_rows(run: Path) -> None:
    first, second, *rest = (run / "episodes.jsonl").read_text().splitlines(keepends=True)
    (run / "episodes.jsonl").write_text("".join([second, first, *rest]))


CHANGES = [edit_row, edit_trace, edit_time, link_trace, sign_the_plan_again, reorder_rows]


@pytest.mark.parametrize("make", [finished_run, unfinished_run])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_run_is_neither_resumed_nor_signed(
    change: Callable[[Path], None], make: Callable[[Path], RunFolder], tmp_path: Path
) -> None:
    folder = make(tmp_path / "run")
    change(folder.path)
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=f"fumehood verify {folder.path}"):
        prepare_resume(RunFolder.open(folder.path), SIGNING)
    assert {path: path.read_bytes() for path in before} == before


def test_a_run_without_a_signature_is_not_resumed(tmp_path: Path) -> None:
    folder = unfinished_run(tmp_path / "run")
    rewrite(folder.path / "run.json", "signing_key", "another_name")
    with pytest.raises(InputError, match="not signed, so its origin is unknown"):
        prepare_resume(RunFolder.open(folder.path), SIGNING)


def remove_trace(run: Path) -> None:
    (run / TRACE).unlink()


def tear_trace(run: Path) -> None:
    (run / TRACE).write_bytes((run / TRACE).read_bytes()[:-50])


def empty_trace(run: Path) -> None:
    (run / TRACE).write_bytes(b"")


def lose_output(run: Path) -> None:
    (run / PRINTED).write_bytes(b"")


LOSSES = [remove_trace, tear_trace, empty_trace, lose_output]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_finished_run_with_damage_is_not_repaired(
    lose: Callable[[Path], None], tmp_path: Path
) -> None:
    folder = finished_run(tmp_path / "run")
    lose(folder.path)
    with pytest.raises(InputError, match="nothing was run or signed"):
        prepare_resume(RunFolder.open(folder.path), SIGNING)


@pytest.mark.parametrize("lose", LOSSES)
def test_an_episode_with_a_torn_file_is_run_again_and_gets_an_infra_row(
    lose: Callable[[Path], None], tmp_path: Path
) -> None:
    lose(unfinished_run(tmp_path / "run").path)
    resumed = RunFolder.open(tmp_path / "run")
    assert prepare_resume(resumed, SIGNING) == 1
    assert [row.outcome for row in resumed.rows() if row.is_infra] == [DAMAGED]
    # A crash after the new trace and before its row does not prevent resuming.
    resumed.write_trace(NAMES[1], [])
    assert prepare_resume(RunFolder.open(resumed.path), SIGNING) == 0
    for name in NAMES[1:]:
        play(resumed, name)
    resumed.seal()
    assert damage_of(resumed) == []
    assert '"success":null' in (resumed.path / "episodes.jsonl").read_text()


def test_a_torn_row_is_removed(tmp_path: Path) -> None:
    rows = unfinished_run(tmp_path / "run").path / "episodes.jsonl"
    rows.write_bytes(rows.read_bytes()[:-1])
    resumed = RunFolder.open(tmp_path / "run")
    assert prepare_resume(resumed, SIGNING) == 0
    assert [row.name for row in resumed.rows()] == [NAMES[0]]


def lost(row: EpisodeRow) -> EpisodeRow:
    nothing = replace(row, outcome=Infra(InfraKind.ENGINE, "no daemon"), score=UNGRADED)
    return replace(nothing, trace="", trace_digest="", stdout_bytes=0)


def test_a_reopened_run_can_be_interrupted_again(
    tmp_path: Path,
) -> None:
    folder = finished_run(tmp_path / "run")
    folder.append_rows([lost(folder.rows()[1])])
    (folder.path / PRINTED).unlink()
    folder.seal()
    assert damage_of(folder) == []
    resumed = RunFolder.open(folder.path)
    assert prepare_resume(resumed, SIGNING) == 0
    # A crash after the trace and before the row.
    resumed.write_trace(NAMES[1], [])
    (resumed.path / TRACE).write_text("{")
    once_more = RunFolder.open(folder.path)
    assert prepare_resume(once_more, SIGNING) == 0
    play(once_more, NAMES[1])
    once_more.seal()
    assert damage_of(once_more) == []
