"""Build results stay in a folder that no other user can write."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError
from fumehood.engines.images.sources import cache_folder


def open_to_the_group(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o775)


def open_to_all(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o1777)


def link(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    (folder.parent / "target").mkdir()
    folder.symlink_to(folder.parent / "target")


def another_users(folder: Path) -> None:
    folder.mkdir(parents=True)
    if os.geteuid() != 0:
        pytest.skip("only root can change the owner of a folder")
    os.chown(folder, 12345, 12345)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/fumehood"


def test_only_this_user_can_write_it_under_any_umask(cache: Path) -> None:
    before = os.umask(0)
    try:
        folder = cache_folder("sdk")
    finally:
        os.umask(before)
    assert folder == cache / "sdk"
    assert [oct(made.stat().st_mode & 0o777) for made in (cache, folder)] == ["0o755"] * 2


@pytest.mark.parametrize("change", [open_to_the_group, open_to_all, link, another_users])
@pytest.mark.parametrize("inside", ["", "sdk"])
def test_a_folder_that_other_users_can_replace_is_rejected(
    change: Callable[[Path], None], inside: str, cache: Path
) -> None:
    change(cache / inside)
    with pytest.raises(InfraError, match="only this user can write"):
        cache_folder("sdk")


def test_a_user_without_a_home_folder_learns_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "~")
    with pytest.raises(InfraError, match="no home folder: set XDG_CACHE_HOME"):
        cache_folder("sdk")
