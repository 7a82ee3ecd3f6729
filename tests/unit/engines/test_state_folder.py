"""The place of engine state: owned by this user, closed to others, short, and not in /tmp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fumehood.core.errors import InfraError
from fumehood.engines import state_folder as places
from fumehood.engines.ownership import OWNER_START, owner_is_alive, owner_labels
from fumehood.engines.records import FolderRecords, owned_folder
from fumehood.engines.state_folder import claim_folder, open_folder, state_folder, temporary_folder

OTHER_UID = 1234
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
not_root = pytest.mark.skipif(os.geteuid() == 0, reason="root has other places")
PLANT = """
import json, os, sys
notes = os.path.join(sys.argv[1], "fumehood", "folders")
os.makedirs(notes, mode=0o755)
note = json.dumps({"folder": sys.argv[2], "labels": json.loads(sys.argv[3])})
open(os.path.join(notes, "0123abcd.json"), "w").write(note)
"""


@pytest.fixture(autouse=True)
def _without_the_users_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)


def test_state_is_never_below_the_folder_of_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for folder in (state_folder("sessions"), open_folder(), temporary_folder()):
        assert not folder.is_relative_to("/tmp")
        assert not folder.is_relative_to(tmp_path)


def test_the_runtime_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert state_folder("sessions") == tmp_path / "fumehood" / "sessions"
    assert (tmp_path / "fumehood").stat().st_mode & 0o777 == 0o711


def test_temporary_files_of_services_are_on_a_disk_and_their_sockets_have_short_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TemporaryDirectory(dir="/tmp") as short:
        Path(short).chmod(0o711)
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        if os.geteuid() == 0:
            assert temporary_folder() == Path("/var/lib/fumehood")
        Path(short, "state").mkdir(mode=0o711)
        monkeypatch.setenv("XDG_STATE_HOME", f"{short}/state")
        assert temporary_folder() == Path(short, "state", "fumehood")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ("long" * 20)))
        assert temporary_folder() == Path(short, "fumehood")


def test_a_relative_runtime_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert state_folder("sessions").is_absolute()


@not_root
def test_the_state_home_is_used_without_a_runtime_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_RUN", tmp_path / "run")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_folder("sessions") == tmp_path / "state" / "fumehood" / "sessions"


def test_memory_is_used_where_nothing_else_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for name in ("_RUN", "_STATE"):
        monkeypatch.setattr(places, name, tmp_path / "file")
    monkeypatch.setattr(places, "_MEMORY", tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert state_folder("sessions") == tmp_path / f"fumehood-{os.geteuid()}" / "sessions"


@pytest.mark.parametrize("length", [20, 40, 200])
def test_sockets_have_short_paths_however_long_the_runtime_folder_is(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TemporaryDirectory(prefix="", dir="/tmp") as top:
        runtime = Path(top, "x" * length)
        runtime.mkdir()
        for folder in (Path(top), runtime):
            folder.chmod(0o711)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        with owned_folder(owner_labels("r")) as folder:
            longest = folder / "0123abcd" / "0123abcd" / ("s" * 32) / "grpc.sock"
            assert len(os.fsencode(longest)) <= 107


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_can_write_is_not_used(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "fumehood").mkdir()
    (tmp_path / "fumehood").chmod(mode)
    assert not state_folder("sessions").is_relative_to(tmp_path)
    with pytest.raises(InfraError, match="set XDG_RUNTIME_DIR"):
        claim_folder(tmp_path / "fumehood")


@only_root
@pytest.mark.parametrize("is_protected", [True, False])
def test_another_user_cannot_make_a_command_remove_a_folder(
    is_protected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control removes both checks: of the owner of the records, and of the marker."""
    if not is_protected:
        monkeypatch.setattr(places, "_problem", lambda folder, others_may: "")
        monkeypatch.setattr(FolderRecords, "_was_made_here", lambda self, folder: True)
    labels = {**owner_labels("r"), OWNER_START: "1"}
    with TemporaryDirectory() as shared:
        precious = Path(shared, "precious")
        precious.mkdir(mode=0o700)
        (precious / "file").touch()
        Path(shared).chmod(0o1777)
        python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
        plant = [python, "-c", PLANT, shared, str(precious), json.dumps(labels)]
        subprocess.run(plant, check=True, user=OTHER_UID, group=OTHER_UID, extra_groups=[])
        monkeypatch.setenv("XDG_RUNTIME_DIR", shared)
        FolderRecords().reap(owner_is_alive)
        assert precious.exists() == is_protected
