"""A generated suite's folder: its files, what a manifest says they are, and the check that they are it.

``manifest.json`` names every file with its size and digest, and what it was made from. ``freeze.json`` names
the manifest by its digest: whoever holds that one text can tell whether a folder is the same suite.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import BaseModel, ConfigDict

from fumehood.benchmarks.shared.reading import Place, Placed, Problem, Unreadable
from fumehood.benchmarks.shared.records import validated
from fumehood.core.errors import InputError
from fumehood.core.json_values import ordered_json

FORMAT = "fumehood.suite/1"
MANIFEST = "manifest.json"
FREEZE = "freeze.json"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileEntry(_Strict):
    """One file of the suite."""

    path: str
    """Relative to the suite's folder, with forward slashes."""
    records: int
    bytes: int
    sha256: str


class Manifest(_Strict):
    """What a folder holds and what it was made from."""

    format: str
    family: str
    """Name of the benchmark that loads it."""
    profile: str
    release: str
    generator: int
    """Grows when the same seed would give other bytes."""
    seed: int
    files: list[FileEntry]


class SuiteWriter:
    """Writes a suite into a folder that appears whole or not at all.

    A context manager: files are written beside the folder and take its place at the end; after an error
    nothing is left.
    """

    def __init__(self, out: Path) -> None:
        """Prepare to write.

        Raises:
            InputError: there is something at ``out`` already.
        """
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"{out}: is there already; name a new or empty folder")
        self._out = out
        self._draft = out.with_name(f".{out.name}.partial")
        self._entries: list[FileEntry] = []

    def __enter__(self) -> SuiteWriter:
        shutil.rmtree(self._draft, ignore_errors=True)
        try:
            self._draft.mkdir(parents=True)
        except OSError as error:
            raise InputError(f"{self._out}: cannot be made: {error.strerror}") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            shutil.rmtree(self._draft, ignore_errors=True)
            return
        if self._out.exists():
            self._out.rmdir()
        self._draft.rename(self._out)

    def write_records(self, path: str, records: Iterable[Any]) -> None:
        """Write one record a line, as compact ASCII, so that the bytes depend on nothing else."""
        lines = [f"{ordered_json(record)}\n" for record in records]
        data = "".join(lines).encode("ascii")
        target = self._draft / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
        self._entries.append(
            FileEntry(
                path=path, records=len(lines), bytes=len(data), sha256=sha256(data).hexdigest()
            )
        )

    def seal(
        self, *, family: str, profile: str, release: str, generator: int, seed: int
    ) -> Manifest:
        """Write manifest and freeze; call once, last."""
        manifest = Manifest(
            format=FORMAT,
            family=family,
            profile=profile,
            release=release,
            generator=generator,
            seed=seed,
            files=self._entries,
        )
        text = f"{json.dumps(manifest.model_dump(), indent=2)}\n"
        (self._draft / MANIFEST).write_text(text, encoding="ascii")
        frozen = {"release": release, "manifest_sha256": sha256(text.encode("ascii")).hexdigest()}
        (self._draft / FREEZE).write_text(f"{json.dumps(frozen, indent=2)}\n", encoding="ascii")
        return manifest


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a generated suite; None where the folder is no such suite.

    Raises:
        Unreadable: it is one, and its manifest cannot be used or is not the one that was frozen.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    data = path.read_bytes()
    try:
        value = json.loads(data)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return None
    _refuse_thawed(folder, data)
    return validated(Placed(value, Place(path)), Manifest).value


def verify_files(folder: Path, manifest: Manifest, paths: Iterable[Path] | None = None) -> None:
    """Check files against the manifest.

    Args:
        folder: of the suite.
        manifest: its own.
        paths: which of its files to check; None means all.

    Raises:
        Unreadable: a file is missing or its bytes are not those of the manifest.
    """
    wanted = None if paths is None else {path.resolve() for path in paths}
    for entry in manifest.files:
        path = folder / entry.path
        if wanted is not None and path.resolve() not in wanted:
            continue
        if not path.is_file():
            raise Unreadable(Place(path), Problem.NOT_FOUND, f"is missing, but {MANIFEST} names it")
        if sha256(path.read_bytes()).hexdigest() != entry.sha256:
            reason = f"is not the file that {MANIFEST} names: its SHA-256 differs"
            raise Unreadable(Place(path), Problem.NOT_AS_PUBLISHED, reason)


def _refuse_thawed(folder: Path, manifest: bytes) -> None:
    path = folder / FREEZE
    try:
        frozen = json.loads(path.read_bytes())
    except (OSError, ValueError):
        raise Unreadable(Place(path), Problem.NOT_FOUND, "is missing or no JSON") from None
    if (
        not isinstance(frozen, dict)
        or frozen.get("manifest_sha256") != sha256(manifest).hexdigest()
    ):
        reason = f"is not the one that {FREEZE} names: its SHA-256 differs"
        raise Unreadable(Place(folder / MANIFEST), Problem.NOT_AS_PUBLISHED, reason)
