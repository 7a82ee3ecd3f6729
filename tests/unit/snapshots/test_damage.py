"""A damaged snapshot is reported in one line."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fumehood_snapshots.errors import SnapshotDamagedError, SnapshotInputError, SnapshotVersionError
from fumehood_snapshots.snapshot import open_snapshot
from tests.unit.snapshots.building import build, change_manifest, contents, flip_byte

EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    build(tmp_path / "snapshot")
    return tmp_path / "snapshot"


def _files(root: Path) -> dict[str, Any]:
    files: dict[str, Any] = json.loads((root / "manifest.json").read_text(encoding="utf-8"))[
        "files"
    ]
    return files


def test_one_flipped_byte_is_found_in_any_file(root: Path) -> None:
    for relative, content in contents(root).items():
        if relative == "manifest.json" or not content:
            continue
        flip_byte(root / relative, len(content) // 2)
        with pytest.raises(SnapshotDamagedError, match="has changed") as caught:
            open_snapshot(root, verify=True)
        assert relative in str(caught.value)
        assert "\n" not in str(caught.value)
        flip_byte(root / relative, len(content) // 2)
    open_snapshot(root, verify=True)


def test_a_flipped_byte_of_the_manifest_changes_the_digest_or_is_refused(root: Path) -> None:
    digest = open_snapshot(root).digest
    size = (root / "manifest.json").stat().st_size
    for position in range(0, size, 97):
        flip_byte(root / "manifest.json", position)
        with suppress(SnapshotDamagedError, SnapshotVersionError, SnapshotInputError):
            assert open_snapshot(root, verify=True).digest != digest
        flip_byte(root / "manifest.json", position)


@pytest.mark.parametrize(
    "relative", ["index/weights.npy", "documents/records.jsonl", "index/terms.utf8"]
)
def test_a_missing_file_is_reported_without_verification(root: Path, relative: str) -> None:
    (root / relative).unlink()
    with pytest.raises(SnapshotDamagedError, match=relative):
        open_snapshot(root)


def test_a_truncated_file_is_reported_without_verification(root: Path) -> None:
    path = root / "index" / "documents.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SnapshotDamagedError, match=r"index/documents\.npy has \d+ bytes"):
        open_snapshot(root)


def test_a_file_that_is_not_listed_is_found_without_verification(root: Path) -> None:
    (root / "index" / "extra.py").write_text("", encoding="utf-8")
    with pytest.raises(
        SnapshotDamagedError, match=r"index/extra\.py is in the folder but not in the manifest"
    ):
        open_snapshot(root)


@pytest.mark.parametrize("name", ["documents/ids.utf8", "documents"])
def test_an_unlisted_link_to_the_outside_is_refused(root: Path, name: str) -> None:
    place, outside = root / name, root.parent / "of-the-user"
    place.rename(outside)
    place.symlink_to(outside)
    listed = {file: entry for file, entry in _files(root).items() if not file.startswith(name)}
    change_manifest(root, files=listed)
    with pytest.raises(SnapshotDamagedError, match=f"{name} is in the folder but not in the mani"):
        open_snapshot(root)


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/passwd", "index/../../outside", "..\\outside", ".", "", "a\0b"]
)
def test_a_path_that_leaves_the_folder_is_refused(root: Path, path: str) -> None:
    (root.parent / "outside").write_bytes(b"")
    change_manifest(root, files={**_files(root), path: {"bytes": 0, "sha256": EMPTY_SHA256}})
    with pytest.raises(SnapshotDamagedError, match="outside the snapshot"):
        open_snapshot(root)


def test_a_link_that_leaves_the_folder_is_refused(root: Path) -> None:
    weights = root / "index" / "weights.npy"
    weights.rename(root.parent / "outside.npy")
    weights.symlink_to(root.parent / "outside.npy")
    with pytest.raises(SnapshotDamagedError, match="link that leaves the snapshot"):
        open_snapshot(root)


def test_a_manifest_of_a_later_release_asks_for_an_upgrade(root: Path) -> None:
    change_manifest(root, schema_version=7, colour="unknown today")
    with pytest.raises(SnapshotVersionError, match=r"schema version 7.*upgrade"):
        open_snapshot(root)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema_version": "one"}, "schema_version"),
        ({"files": []}, "files"),
        ({"surprise": 1}, "surprise"),
        ({"ranking": {"method": "guess"}}, "ranking"),
    ],
)
def test_an_invalid_manifest_is_reported_with_its_field(
    root: Path, changes: dict[str, Any], named: str
) -> None:
    change_manifest(root, **changes)
    with pytest.raises(SnapshotDamagedError, match=named):
        open_snapshot(root)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_a_manifest_must_be_a_json_object(root: Path, content: bytes) -> None:
    (root / "manifest.json").write_bytes(content)
    with pytest.raises(SnapshotDamagedError, match=r"manifest\.json"):
        open_snapshot(root)


def test_a_folder_without_a_manifest_is_not_a_snapshot(tmp_path: Path) -> None:
    with pytest.raises(SnapshotInputError, match="not a snapshot"):
        open_snapshot(tmp_path)


def _admit(root: Path, relative: str) -> None:
    """Give a replaced file the size that the manifest expects of it."""
    entry = {"bytes": (root / relative).stat().st_size, "sha256": EMPTY_SHA256}
    change_manifest(root, files={**_files(root), relative: entry})


class _Bomb:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (exec, ("raise SystemExit('unpickled')",))


def test_a_pickled_array_is_refused_without_unpickling(root: Path) -> None:
    with (root / "documents" / "offsets.npy").open("wb") as stream:
        np.save(stream, np.array([_Bomb()], dtype=object), allow_pickle=True)
    _admit(root, "documents/offsets.npy")
    with pytest.raises(SnapshotDamagedError, match=r"offsets\.npy is not a plain numeric array"):
        open_snapshot(root)


@pytest.mark.parametrize(
    "content", [pickle.dumps(_Bomb()), b"", b"\x93NUMPY", b"PK\x03\x04", b"\x93NUMPY\x01\0v\0{"]
)
def test_a_file_that_is_not_an_array_is_refused(root: Path, content: bytes) -> None:
    (root / "documents" / "offsets.npy").write_bytes(content)
    _admit(root, "documents/offsets.npy")
    with pytest.raises(SnapshotDamagedError, match=r"offsets\.npy is not a plain numeric array"):
        open_snapshot(root)


def test_an_array_of_another_type_is_refused(root: Path) -> None:
    with (root / "documents" / "offsets.npy").open("wb") as stream:
        np.save(stream, np.zeros(5, dtype="<f8"))
    _admit(root, "documents/offsets.npy")
    with pytest.raises(SnapshotDamagedError, match="has type <f8"):
        open_snapshot(root)


def test_postings_of_missing_documents_are_refused(root: Path) -> None:
    path = root / "index" / "documents.npy"
    documents = np.load(path)
    with path.open("wb") as stream:
        np.save(stream, documents + 1000)
    snapshot = open_snapshot(root)
    with pytest.raises(SnapshotDamagedError, match="refers to missing documents"):
        snapshot.rank("cat", 3)


def test_a_snapshot_of_another_stemmer_is_refused(root: Path) -> None:
    analysis = json.loads((root / "manifest.json").read_text(encoding="utf-8"))["analysis"]
    analysis["stems"]["running"] = "runn"
    change_manifest(root, analysis=analysis)
    with pytest.raises(SnapshotVersionError, match="gives 'run' for 'running'"):
        open_snapshot(root)


def test_a_foreign_word_pattern_is_refused(root: Path) -> None:
    analysis = json.loads((root / "manifest.json").read_text(encoding="utf-8"))["analysis"]
    change_manifest(root, analysis={**analysis, "word_pattern": "(a+)+$"})
    with pytest.raises(SnapshotDamagedError, match="word_pattern"):
        open_snapshot(root)
