"""Files of a run folder survive crashes, and reading them follows no link."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.records.files import (
    append_whole,
    digest_file,
    read_part,
    read_plain,
    write_or_remove,
    write_plain,
    write_whole,
)
from fumehood.records.run_folder import one_writer


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The content of each file at the time of its fsync."""
    contents: list[str] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        fsync(descriptor)
        contents.append(Path(f"/proc/self/fd/{descriptor}").read_text())

    monkeypatch.setattr(os, "fsync", spy)
    return contents


def test_a_replaced_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, synced: list[str]
) -> None:
    write_whole(tmp_path / "run.json", "first")
    write_whole(tmp_path / "run.json", "second")
    assert synced == ["first", "second"]
    assert [path.read_text() for path in tmp_path.iterdir()] == ["second"]


def test_appended_lines_are_on_the_disk(tmp_path: Path, synced: list[str]) -> None:
    append_whole(tmp_path / "rows", b"one\n")
    append_whole(tmp_path / "rows", b"two\n")
    assert synced == ["one\n", "one\ntwo\n"]


@pytest.mark.parametrize(("start", "size"), [(0, 7), (2, 3), (7, 0)])
def test_a_part_of_a_file_is_read(tmp_path: Path, start: int, size: int) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert read_part(tmp_path / "file", start, size) == b"content"[start : start + size]


@pytest.mark.parametrize(("start", "size"), [(0, 8), (7, 1), (8, 0), (0, 10**15)])
def test_a_part_beyond_the_end_of_a_file_is_not_read(tmp_path: Path, start: int, size: int) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with pytest.raises(OSError, match="too short"):
        read_part(tmp_path / "file", start, size)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "nothing"])
def test_only_regular_files_are_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    (tmp_path / "target").write_text("content")
    if kind == "link":
        path.symlink_to(tmp_path / "target")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(OSError, match="file"):
        read_plain(path)
    assert digest_file(path) == ""


@pytest.mark.parametrize("kind", ["link", "pipe"])
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("file.partial", lambda path: write_whole(path.with_suffix(""), "new")),
        ("file", lambda path: write_or_remove(path, b"new")),
        ("file", lambda path: write_plain(path, b"new")),
        ("file", lambda path: append_whole(path, b"new")),
    ],
    ids=["whole", "or_remove", "plain", "append"],
)
def test_writing_follows_no_link_and_waits_for_no_pipe(
    name: str, write: Callable[[Path], object], kind: str, tmp_path: Path
) -> None:
    path, target = tmp_path / name, tmp_path / "target"
    target.write_text("of the user")
    if kind == "link":
        path.symlink_to(target)
    else:
        os.mkfifo(path)
    with pytest.raises(OSError, match="file"):
        write(path)
    assert target.read_text() == "of the user"


@pytest.mark.slow
def test_one_command_writes_a_folder_at_a_time(tmp_path: Path) -> None:
    with (
        one_writer(tmp_path),
        pytest.raises(InputError, match="another command is writing"),
        one_writer(tmp_path),
    ):
        pass
    with one_writer(tmp_path):
        pass


def test_the_lock_is_not_inherited_by_other_processes(tmp_path: Path) -> None:
    with one_writer(tmp_path):
        child = subprocess.Popen(
            [sys.executable, "-c", "print(flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=False,
        )
        # Popen may return before the kernel has closed all descriptors of the child.
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
    try:
        with one_writer(tmp_path):
            pass
    finally:
        child.communicate(b"\n")


def test_only_a_folder_can_be_locked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError), one_writer(tmp_path / "file"):
        pass
