"""A checkpoint of a workspace is a tar that later trials start from."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InputError
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import Progress, start_run
from fumehood.orchestrator.setup import RunSetup
from fumehood.orchestrator.workspaces.checkpoints import read_checkpoint, with_checkpoint
from fumehood.scorers.verdict import Verdict, verdict_from_json
from tests.architecture.project import ROOT

TASKS = f"harbor:{ROOT / 'examples' / 'workspaces'}"
TASK = f"{TASKS}:fix-the-average"


def checkpoint(folder: Path, *paths: str, kind: bytes = tarfile.REGTYPE) -> Path:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path in paths:
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode, entry.uid = kind, 0o4755, 1000
            archive.addfile(entry)
    file = folder / "checkpoint.tar"
    file.write_bytes(content.getvalue())
    return file


def set_up(**settings: Any) -> RunSetup:
    return RunSetup.create(run_config({"suite": TASK, "agents": ["noop"], **settings}))


def test_it_contains_files_of_root_and_names_deleted_ones(tmp_path: Path) -> None:
    file = checkpoint(tmp_path, "./app/average.py", "app/.wh.data.csv")
    read = read_checkpoint(file)
    assert read.deleted == ("/app/data.csv",)
    with tarfile.open(fileobj=io.BytesIO(read.archive)) as archive:
        (entry,) = archive
    assert (entry.name, entry.mode, entry.uid) == ("app/average.py", 0o755, 0)


@pytest.mark.parametrize(
    ("paths", "kind", "reason"),
    [
        (["app/link"], tarfile.SYMTYPE, "neither a file nor a folder"),
        (["app/device"], tarfile.CHRTYPE, "neither a file nor a folder"),
        (["app/../../etc/passwd"], tarfile.REGTYPE, "outside"),
        (["/etc/passwd"], tarfile.REGTYPE, "outside"),
        (["tests/test.sh"], tarfile.REGTYPE, "may not contain /tests/test.sh"),
        (["logs/verifier/reward.txt"], tarfile.REGTYPE, "may not contain"),
        (["app/.wh..wh.opq"], tarfile.REGTYPE, "may not contain"),
        (["app/.wh."], tarfile.REGTYPE, "may not contain"),
        (["app/.wh.."], tarfile.REGTYPE, "may not contain"),
        (["app/.wh..."], tarfile.REGTYPE, "may not contain"),
        ([".init"], tarfile.REGTYPE, "may not contain /.init"),
        (["app/.wh.a", "app/a/b"], tarfile.REGTYPE, "contains and deletes /app/a"),
    ],
)
def test_what_no_workspace_wrote_is_refused(
    tmp_path: Path, paths: list[str], kind: bytes, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        read_checkpoint(checkpoint(tmp_path, *paths, kind=kind))


def test_a_file_that_is_no_tar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text", encoding="utf-8")
    with pytest.raises(InputError, match="is not a checkpoint"):
        read_checkpoint(tmp_path / "text")
    with pytest.raises(InputError, match="No such file"):
        read_checkpoint(tmp_path / "none")


def test_a_task_from_a_checkpoint_is_another_task(tmp_path: Path) -> None:
    suite = set_up().suite
    file = checkpoint(tmp_path, "app/a")
    changed = with_checkpoint(suite, file)
    assert changed == set_up(from_workspace=str(file)).suite
    assert changed.cases[0].task != suite.cases[0].task
    other = with_checkpoint(suite, checkpoint(tmp_path, "app/b"))
    assert other.cases[0].task != changed.cases[0].task


def test_it_belongs_to_one_task(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name it"):
        set_up(suite=TASKS, from_workspace=str(checkpoint(tmp_path, "app/a")))


def test_a_task_without_a_workspace_has_none(tmp_path: Path) -> None:
    one: dict[str, Any] = {"suite": "sample", "tasks": {"limit": 1}}
    file = str(checkpoint(tmp_path, "app/a"))
    with pytest.raises(InputError, match="has no workspace"):
        set_up(**one, from_workspace=file)
    with pytest.raises(InputError, match="has no workspace"):
        set_up(**one, keep_workspaces=str(tmp_path))


def test_a_kept_workspace_is_not_replaced_by_a_new_run(tmp_path: Path) -> None:
    kept = tmp_path / "noop" / "fix-the-average.0.tar"
    settings = {"suite": TASK, "agents": ["noop"], "keep_workspaces": str(tmp_path)}
    kept.parent.mkdir()
    kept.touch()
    with pytest.raises(InputError, match="exists already"):
        start_run(run_config(settings), tmp_path / "run", Progress(print, print, print))
    assert set_up(keep_workspaces=str(tmp_path)).episodes


def test_a_row_states_the_kept_workspace() -> None:
    verdict = Verdict({"reward": 1.0}, checkpoint="none: /app was deleted")
    assert verdict_from_json(verdict.to_json()) == verdict
    assert "checkpoint" not in Verdict().to_json()


def test_a_compressed_file_is_read_only_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fumehood.orchestrator.workspaces.checkpoints.BYTES_MAX", 1000)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name in ("one", "two"):
            entry = tarfile.TarInfo(f"app/{name}")
            entry.size = 600
            archive.addfile(entry, io.BytesIO(bytes(600)))
    (tmp_path / "small").write_bytes(content.getvalue())
    with pytest.raises(InputError, match="more than 1000 bytes"):
        read_checkpoint(tmp_path / "small")


@pytest.mark.parametrize("time_s", ["inf", "nan", "1e300"])
def test_a_time_that_no_file_can_have_is_dropped(tmp_path: Path, time_s: str) -> None:
    with tarfile.open(tmp_path / "file", "w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("app/average.py")
        entry.pax_headers = {"mtime": time_s}
        archive.addfile(entry)
    read = read_checkpoint(tmp_path / "file")
    with tarfile.open(fileobj=io.BytesIO(read.archive)) as archive:
        assert [entry.mtime for entry in archive] == [0]
