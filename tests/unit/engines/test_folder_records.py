"""A folder that lost its owner is found by its note and removed; nobody else's is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fumehood.engines.ownership import OWNER_BOOT, OWNER_START, owner_is_alive, owner_labels
from fumehood.engines.records import FolderRecords, owned_folder

OURS = owner_labels("r1")
OF_THE_DEAD = {**OURS, OWNER_START: "1"}
OF_AN_EARLIER_BOOT = {**OURS, OWNER_BOOT: "another"}


@pytest.fixture
def records(tmp_path: Path) -> FolderRecords:
    (tmp_path / "below").mkdir()
    return FolderRecords(tmp_path / "notes", tmp_path / "below")


@pytest.mark.parametrize("labels", [OF_THE_DEAD, OF_AN_EARLIER_BOOT])
def test_what_lost_its_owner_goes_and_nothing_else(
    records: FolderRecords, labels: dict[str, str]
) -> None:
    kept, lost = records.make(OURS), records.make(labels)
    (lost / "inside").mkdir()
    (lost / "inside" / "file").touch()
    assert records.lost(owner_is_alive) == [(lost, labels)]
    assert lost.exists()
    assert records.reap(owner_is_alive) == 1
    assert (kept.exists(), lost.exists()) == (True, False)
    assert records.reap(owner_is_alive) == 0


def test_a_folder_is_closed_to_others_and_its_note_goes_with_it(
    records: FolderRecords, tmp_path: Path
) -> None:
    folder = records.make(OURS)
    assert folder.stat().st_mode & 0o777 == 0o700
    records.remove(folder)
    assert list((tmp_path / "below").iterdir()) == list((tmp_path / "notes").iterdir()) == []


def test_a_link_that_stands_where_a_folder_was_is_left_alone(
    records: FolderRecords, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    lost = records.make(OF_THE_DEAD)
    lost.rmdir()
    lost.symlink_to(precious)
    assert records.reap(owner_is_alive) == 0
    assert precious.is_dir()
    assert list((tmp_path / "notes").iterdir()) == []


def test_a_note_that_was_never_finished_hurts_nobody(
    records: FolderRecords, tmp_path: Path
) -> None:
    records.make(OURS)
    (tmp_path / "notes" / "x.json").write_text("{")
    assert records.reap(owner_is_alive) == 0


def test_a_context_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with owned_folder(OURS) as folder:
        (folder / "file").touch()
    assert not folder.exists()
    assert [path for path in Path(tmp_path).rglob("*") if path.is_file()] == []


def test_a_socket_in_it_has_a_path_that_is_short_enough(records: FolderRecords) -> None:
    folder = FolderRecords(records._notes).make(OURS)
    try:
        longest_seat = "s" * 32
        assert len(os.fsencode(folder / ("0" * 8) / ("0" * 8) / longest_seat / "grpc.sock")) <= 107
    finally:
        records.remove(folder)
