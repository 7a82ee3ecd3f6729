"""Folders without an owner are found by their records and removed; other folders are kept."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError
from fumehood.engines.ownership import OWNER_BOOT, OWNER_START, owner_is_alive, owner_labels
from fumehood.engines.records import MARKER, FolderRecords, owned_folder, remove_tree, write_record

OWN = owner_labels("r1")
OF_A_DEAD_PROCESS = {**OWN, OWNER_START: "1"}
OF_AN_EARLIER_BOOT = {**OWN, OWNER_BOOT: "another"}


@pytest.fixture
def records(tmp_path: Path) -> FolderRecords:
    (tmp_path / "below").mkdir()
    return FolderRecords(tmp_path / "notes", tmp_path / "below")


@pytest.mark.parametrize("labels", [OF_A_DEAD_PROCESS, OF_AN_EARLIER_BOOT])
def test_only_folders_without_an_owner_are_removed(
    records: FolderRecords, labels: dict[str, str]
) -> None:
    kept, lost = records.make(OWN), records.make(labels)
    (lost / "inside").mkdir()
    (lost / "inside" / "file").touch()
    assert records.lost(owner_is_alive) == [(lost, labels)]
    assert lost.exists()
    assert records.reap(owner_is_alive) == 1
    assert (kept.exists(), lost.exists()) == (True, False)
    assert records.reap(owner_is_alive) == 0


def test_a_folder_is_private_and_its_record_is_removed_with_it(
    records: FolderRecords, tmp_path: Path
) -> None:
    folder = records.make(OWN)
    assert folder.stat().st_mode & 0o777 == 0o700
    records.remove(folder)
    assert list((tmp_path / "below").iterdir()) == list((tmp_path / "notes").iterdir()) == []


def test_a_link_in_place_of_a_folder_is_not_followed(
    records: FolderRecords, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    lost = records.make(OF_A_DEAD_PROCESS)
    shutil.rmtree(lost)
    lost.symlink_to(precious)
    assert records.reap(owner_is_alive) == 0
    assert precious.is_dir()
    assert list((tmp_path / "notes").iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_records_that_another_user_could_have_written_remove_nothing(
    mode: int, tmp_path: Path
) -> None:
    precious, notes = tmp_path / "precious", tmp_path / "notes"
    precious.mkdir()
    notes.mkdir()
    notes.chmod(mode)
    (notes / "x.json").write_text(json.dumps({"folder": str(precious), "labels": {}}))
    with pytest.raises(InfraError, match="other users have access"):
        FolderRecords(notes, tmp_path).reap(owner_is_alive)
    assert precious.is_dir()


def test_an_incomplete_record_is_ignored(records: FolderRecords, tmp_path: Path) -> None:
    records.make(OWN)
    (tmp_path / "notes" / "x.json").write_text("{")
    assert records.reap(owner_is_alive) == 0


def test_the_context_manager_removes_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with owned_folder(OWN) as folder:
        (folder / "file").touch()
    assert not folder.exists()
    assert [path for path in Path(tmp_path).rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("place", "kept_file"),
    [
        ("below/runs", MARKER),  # Not a name that this module gives.
        ("below/0123abcd", "precious"),  # Without the marker.
        ("elsewhere/0123abcd", MARKER),  # Not a child of the state folder.
        ("below/0123abcd/89ab4567", MARKER),  # Not a direct child.
    ],
)
def test_only_marked_direct_children_of_the_state_folder_are_removed(
    place: str, kept_file: str, records: FolderRecords, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir(mode=0o700)
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / kept_file).touch()
    write_record(
        tmp_path / "notes" / "0123abcd.json", {"folder": str(folder), "labels": OF_A_DEAD_PROCESS}
    )
    assert records.reap(owner_is_alive) == 0
    assert (folder / kept_file).exists()


def test_a_folder_whose_maker_died_before_it_wrote_the_marker_is_removed(
    records: FolderRecords,
) -> None:
    lost = records.make(OF_A_DEAD_PROCESS)
    (lost / MARKER).unlink()
    assert records.reap(owner_is_alive) == 1
    assert not lost.exists()


@pytest.mark.slow
def test_a_folder_that_is_deeper_than_python_can_recurse_is_removed(tmp_path: Path) -> None:
    program = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    top = tmp_path / "top"
    top.mkdir()
    subprocess.run([sys.executable, "-c", program], cwd=top, check=True)
    remove_tree(top)
    assert not top.exists()
