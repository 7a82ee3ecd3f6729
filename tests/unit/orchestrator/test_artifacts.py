"""What a verifier gets of a workspace."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.orchestrator.workspaces.artifacts import (
    BadArtifacts,
    Copied,
    copied,
    files_of,
    tar_of,
)
from fumehood.orchestrator.workspaces.verification import rewards_of

KINDS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)


def tar(files: Mapping[str, bytes], **others: bytes) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.uid = len(data), 0o4755, 1000
            archive.addfile(entry, io.BytesIO(data))
        for name, kind in others.items():
            entry = tarfile.TarInfo(f"app/{name}")
            entry.type, entry.linkname = kind, "/logs/verifier/reward.txt"
            archive.addfile(entry)
    return content.getvalue()


def contents(result: Copied) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(result.archive)) as archive:
        entries = [entry for entry in archive if not entry.isdir()]
        assert all(entry.isreg() and entry.uid == 0 for entry in entries)
        assert all(entry.mode & ~0o777 == 0 for entry in entries)
        return {entry.name: archive.extractfile(entry).read() for entry in entries}  # type: ignore[union-attr]


def test_links_and_devices_are_left_out() -> None:
    names = {f"n{number}": kind for number, kind in enumerate(KINDS)}
    result = copied([("/app", tar({"app/x": b"1"}, **names))], None, None)
    assert contents(result) == {"app/x": b"1"}
    assert (result.files, result.left_out) == (1, len(KINDS))


def test_only_changed_files_are_copied_if_a_task_declares_none() -> None:
    archive = tar({"app/new": b"1", "app/old": b"2"})
    result = copied([("/app", archive)], {"/app/new"}, None)
    assert contents(result) == {"app/new": b"1"}
    assert result.left_out == 0


@pytest.mark.parametrize(
    "name",
    [
        *("conftest.py", "deep/conftest.py", "sitecustomize.py", "pytest.py", "pytest/__init__.py"),
        *("venv/bin/python", "x/site-packages/y.py", "__pycache__/z.pyc", "evil.pth", "json.so"),
        *("pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", ".git/hooks/pre-commit"),
        *("pytest.toml", ".pytest.toml", ".git/config", "x/.git", ".git/commondir"),
        *("evil-1.0.dist-info/entry_points.txt", "src/evil.egg-info/entry_points.txt"),
        # The working folder can be a home folder.
        *(".local/bin/uvx", ".cargo/bin/uv", ".config/git/config", ".gitconfig", ".zshenv"),
    ],
)
def test_a_changed_file_that_would_change_the_tests_is_left_out(name: str) -> None:
    path = f"/app/{name}"
    result = copied([("/app", tar({path[1:]: b"x"}))], {path}, None)
    assert (contents(result), result.left_out) == ({}, 1)
    declared = copied([("/app", tar({path[1:]: b"x"}))], None, None)
    assert contents(declared) == {path[1:]: b"x"}


def test_commits_of_a_repository_are_copied() -> None:
    paths = ["/app/.git/HEAD", "/app/.git/objects/ab/cd", "/app/.gitignore"]
    archive = tar({path[1:]: b"x" for path in paths})
    assert set(contents(copied([("/app", archive)], paths, None))) == {path[1:] for path in paths}


@pytest.mark.parametrize("folder", ["/logs/verifier", "/tests"])
def test_nothing_reaches_the_folders_of_the_verifier(folder: str) -> None:
    name = folder.rpartition("/")[2]
    archive = tar({f"{name}/reward.txt": b"1", f"{name}/test.sh": b"echo 1"})
    own = tar({"tests/test.sh": b"real"})
    assert contents(copied([(folder, archive)], None, own)) == {"tests/test.sh": b"real"}


@pytest.mark.parametrize("name", ["../x", "app/../../x", "/etc/passwd"])
def test_an_entry_outside_is_refused(name: str) -> None:
    with pytest.raises(BadArtifacts, match="outside"):
        copied([("/app", tar({name: b"x"}))], None, None)


@given(st.binary(max_size=2000))
def test_a_damaged_tar_is_refused_or_empty(archive: bytes) -> None:
    with suppress(BadArtifacts):
        assert copied([("/app", archive)], None, None).files == 0


@pytest.mark.parametrize(
    ("files", "rewards"),
    [
        ({"reward.txt": b"1\n"}, {"reward": 1.0}),
        ({"reward.txt": b"0.5"}, {"reward": 0.5}),
        ({"reward.txt": b"0", "reward.json": b'{"a": 1, "b": 0.5}'}, {"a": 1.0, "b": 0.5}),
        *(({"reward.txt": text}, {}) for text in (b"", b"nan", b"inf", b"yes", b"\xff", b"1e308")),
        *(
            ({"reward.json": text, "reward.txt": b"1"}, {})
            for text in (b"", b"[1]", b"{}", b'{"a": "1"}', b'{"a": NaN}', b'{"a": 1e999}')
        ),
        # No such reward could be converted, stored, or be part of a mean.
        *(
            ({"reward.json": text}, {})
            for text in (
                b'{"a": 1%s}' % (b"0" * 400),
                b'{"\\ud800": 1}',
                b'{"a": 1, "b": -1e308}',
                b'{"%s": 1}' % (b"a" * 201),
                json.dumps(dict.fromkeys(map(str, range(1001)), 1)).encode(),
            )
        ),
        ({}, {}),
    ],
)
def test_only_numbers_that_reports_can_use_are_rewards(
    files: dict[str, bytes], rewards: dict[str, float]
) -> None:
    found, problem = rewards_of(files)
    assert found == rewards
    assert bool(problem) is not bool(rewards)


def test_files_of_a_missing_folder_are_none() -> None:
    assert files_of(None) == {}
    assert files_of(tar({"verifier/reward.txt": b"1"}, link=tarfile.SYMTYPE)) == {
        "reward.txt": b"1"
    }


def test_folders_count_for_the_limit_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fumehood.orchestrator.workspaces.artifacts.FILES_MAX", 3)
    folders = {f"n{number}": tarfile.DIRTYPE for number in range(3)}
    assert copied([("/app", tar({}, **folders))], None, None).files == 0
    with pytest.raises(BadArtifacts, match="more than 3 files and folders"):
        copied([("/app", tar({"app/x": b"1"}, **folders))], None, None)


def test_files_of_the_agent_below_the_folder_of_rewards_are_no_rewards() -> None:
    copied_by_tests = {"verifier/app/reward.json": b'{"reward": 1}', "verifier/reward.txt": b"0"}
    for prefix in ("", "./"):
        archive = tar({prefix + name: content for name, content in copied_by_tests.items()})
        assert rewards_of(files_of(archive)) == ({"reward": 0.0}, "")


def test_a_tar_of_files_needs_no_other_tar() -> None:
    alone = tar_of({"a": "1"})
    for archive, names in ((alone, ["a"]), (tar_of({"b": "2"}, alone), ["a", "b"])):
        with tarfile.open(fileobj=io.BytesIO(archive)) as read:
            assert read.getnames() == names
