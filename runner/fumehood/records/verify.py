"""Compares a run folder with its seals and lists every difference; changes nothing.

A difference proves a change. Without one, the folder is as its signer wrote it, so the reader must
also check the public key: another user can sign a changed folder again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath

from fumehood.core.errors import InputError
from fumehood.core.formats import refuse_newer
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.trace import BrokenTrace, CutTrace, Record, verify_chain
from fumehood.records.cassette import CASSETTE_FOLDERS, Cassette
from fumehood.records.files import digest_file, read_plain
from fumehood.records.packed_traces import PACK, PackedTrace, read_trace_content
from fumehood.records.row import EpisodeName
from fumehood.records.run_folder import FORMAT, RunFolder
from fumehood.records.run_memory import RunMemory
from fumehood.records.seals import (
    FIRST,
    PLAN_FILES,
    ROWS,
    RUN_FORMAT,
    SEAL,
    UNREADABLE,
    RunSeal,
    SealedFile,
    SealedRow,
    digest_bytes,
    episode_files,
    read_seal,
    row_is_signed,
    row_lines,
)
from fumehood.records.shard_seals import SHARDS, shard_damage

EPISODE_FOLDERS = ("traces", "output", "cassette", "judge")
"""Folders in which every file belongs to an episode."""
SINGLE_FILES = ("run.json", "seal.json", "suite.jsonl", "episodes.jsonl", PACK)
DERIVED_FOLDERS = ("report",)
"""Folders that later commands create from a run; they are not sealed."""
KNOWN_FOLDERS = (*EPISODE_FOLDERS, *DERIVED_FOLDERS, SHARDS)
BODY_FOLDERS = tuple(f"{name}/bodies" for name in CASSETTE_FOLDERS)
"""Folders whose files are named after the digest of their content."""
NOT_RUN = "missing: the run is not finished"
"""What is reported about each missing episode of an unfinished run."""
_LINK = "a symbolic link, which runs never create"


@dataclass(frozen=True, slots=True)
class Damage:
    """One difference between a run folder and its seals."""

    where: str
    """A file of the run folder, with a line number if it has lines, or an episode."""
    what: str
    is_of_crash: bool = False
    """True if a crash or a power cut can cause this in an unfinished run; ``resume`` repairs it."""
    episode: EpisodeName | None = None
    """Episode of the damaged trace or output."""
    is_of_unfinished: bool = False
    """True if any unfinished run can have this: missing rows, or a torn last row."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of comparing a run folder with its seals."""

    key: str
    """Public key of the signer, 64 hex digits; empty if the seal cannot be read."""
    planned: int
    damage: tuple[Damage, ...]
    is_final: bool = False
    """True if the signer sealed the run as finished."""
    plan: Mapping[str, bytes] = field(default_factory=dict)
    """Content of the plan files that was compared with the seal."""
    rows: Mapping[EpisodeName, SealedRow] = field(default_factory=dict)
    """The last row of each episode whose row is as sealed."""
    order: tuple[EpisodeName, ...] = ()
    """The planned episodes."""

    @property
    def episodes(self) -> int:
        """Number of episodes whose row is as sealed."""
        return len(self.rows)


def verify(path: Path, key: str | None = None, memory: RunMemory | None = None) -> Verification:
    """Compare a run folder with its seals, and its signer's public key with ``key`` if it is given.

    Args:
        path: of the run folder.
        key: public key of the expected signer, 64 hex digits; None accepts any.
        memory: of earlier verifications, so that only new rows and changed files are verified.

    Raises:
        InputError: the path is not a run folder, has a newer format, or was never signed.
    """
    for name, known in ((PLAN_FILES[0], FORMAT), (SEAL, RUN_FORMAT)):
        with suppress(*UNREADABLE):
            stated = json.loads(read_plain(path / name))
            refuse_newer(stated.get("format"), known, path / name)
    if not (path / SEAL).exists() and "signing_key" not in RunFolder.open(path).manifest():
        raise InputError(f"{path} was never signed, so it cannot be verified")
    try:
        seal = read_seal(path)
    except InputError:
        return Verification("", 0, (Damage(SEAL, "missing or changed"),))
    if key is not None and key != seal.key:
        return Verification(
            seal.key, len(seal.episodes), (Damage(SEAL, f"signed with {seal.key}"),)
        )
    is_repeated, memory = memory is not None, memory or RunMemory()
    memory.begin(seal)
    if is_repeated:
        memory.begin_growing(path / PACK)
    plan: dict[str, bytes] = {}
    damage = list(_plan_damage(path, seal, plan))
    rows: dict[EpisodeName, SealedRow] = {}
    damage.extend(_row_damage(path, seal, rows, memory))
    damage.extend(_set_damage(path, seal, rows))
    for row in rows.values():
        damage.extend(_file_damage(path, seal, row, memory))
    damage.extend(_unsealed_files(path, seal, rows, memory))
    damage.extend(Damage(where, what) for where, what in shard_damage(path, plan))
    return Verification(
        seal.key,
        len(seal.episodes),
        tuple(damage),
        seal.is_final,
        plan=plan,
        rows=rows,
        order=tuple(episode.name for episode in seal.episodes),
    )


def _plan_damage(path: Path, seal: RunSeal, plan: dict[str, bytes]) -> Iterator[Damage]:
    """Yield the damage of the plan; fill ``plan`` with the content of its sound files."""
    sealed = {file.path: file.sha256 for file in seal.files}
    for name in PLAN_FILES:
        try:
            content = read_plain(path / name)
        except OSError:
            content = b""
        if digest_bytes(content) != sealed.get(name):
            yield Damage(name, "missing or edited")
            continue
        plan[name] = content


def _row_damage(
    path: Path, seal: RunSeal, rows: dict[EpisodeName, SealedRow], memory: RunMemory
) -> Iterator[Damage]:
    """Yield the damage of rows; fill ``rows`` with the last valid one of each episode."""
    last_digest = FIRST
    try:
        lines = row_lines(path)
    except InputError as error:
        yield Damage(ROWS, str(error))
        return
    # The seal of a finished run covers the digest of all rows, so it covers each of them.
    sealed = {file.path: file.sha256 for file in seal.files}
    is_sealed = seal.is_final and digest_bytes(b"".join(lines)) == sealed.get(ROWS)
    for number, line in enumerate(lines, 1):
        position = f"{ROWS}:{number}"
        last_digest, previous_digest = digest_bytes(line), last_digest
        if not line.endswith(b"\n"):
            is_open = not seal.is_final
            yield Damage(position, "a torn row", is_of_crash=is_open, is_of_unfinished=is_open)
            continue
        try:
            row, is_signed = memory.of_row(
                (last_digest, seal.run, seal.key, is_sealed),
                partial(_read_row, line, last_digest, seal, is_sealed),
            )
        except UNREADABLE:
            yield Damage(position, "not a sealed row")
            continue
        name = row.row.name
        if not is_signed:
            yield Damage(position, f"the row of {name} was edited")
            continue
        if row.after != previous_digest:
            yield Damage(
                position, f"the row of {name} does not follow the one before it: cut or reordered"
            )
        earlier = rows.get(name)
        rows[name] = replace(row, row=row.row.replacing(earlier.row)) if earlier else row


def _read_row(line: bytes, digest: str, run: RunSeal, is_sealed: bool) -> tuple[SealedRow, bool]:
    """Return a row, and whether its exact bytes are signed, by the seal of the run or its own."""
    value: JsonObject = json.loads(line)
    row = SealedRow.from_json(value, digest)
    if is_sealed:
        return row, True
    # A signature covers the canonical text; another text of the same row is another line.
    is_canonical = f"{canonical_json(value)}\n".encode("ascii") == line
    return row, is_canonical and row_is_signed(value, run.run, run.key)


def _set_damage(path: Path, seal: RunSeal, rows: dict[EpisodeName, SealedRow]) -> Iterator[Damage]:
    """Yield missing and unplanned episodes, and differences from the seal of the run."""
    planned = {episode.name for episode in seal.episodes}
    for episode in seal.episodes:
        if episode.name not in rows:
            is_open = not seal.is_final
            what = NOT_RUN if is_open else "missing"
            yield Damage(str(episode.name), what, is_of_crash=is_open, is_of_unfinished=is_open)
        elif episode.row not in ("", rows[episode.name].digest):
            yield Damage(str(episode.name), "its row is not the one that was sealed with the run")
    for name in rows:
        if name not in planned:
            yield Damage(str(name), "not an episode of this run")
    complete = all(episode.name in rows for episode in seal.episodes)
    if not seal.is_final and complete:
        what = "the finished run was not sealed; run fumehood resume to seal it"
        yield Damage(SEAL, what, is_of_crash=True, is_of_unfinished=True)
    sealed = {file.path: file.sha256 for file in seal.files}
    for file in (ROWS, PACK) if seal.is_final else ():
        if file in sealed:
            is_as_sealed = digest_file(path / file) == sealed[file]
        else:
            is_as_sealed = not os.path.lexists(path / file)
        if not is_as_sealed:
            yield Damage(file, "not the file that was sealed with the run")


def _file_damage(
    path: Path, seal: RunSeal, sealed: SealedRow, memory: RunMemory
) -> Iterator[Damage]:
    row, is_open = sealed.row, not seal.is_final
    is_packed = PackedTrace.parse(row.trace) is not None
    own_trace = row.trace or row.name.trace_path
    if not is_packed and own_trace != row.name.trace_path:
        yield Damage(str(row.name), f"its row names the trace of another episode: {row.trace}")
        return
    for file in sealed.files:
        if file.path != own_trace and file.path not in episode_files(row.name):
            yield Damage(str(row.name), f"its seal names a file of another episode: {file.path}")
            continue
        digest = _digest(path, sealed, file, memory)
        if digest == file.sha256:
            continue
        what, is_torn = _describe_change(path, sealed, file, digest)
        # An infra row is not scored, and the attempt after it may have been interrupted.
        is_of_crash = is_open and (is_torn or row.is_infra)
        yield Damage(file.path, what, is_of_crash=is_of_crash, episode=row.name)


def _digest(path: Path, sealed: SealedRow, file: SealedFile, memory: RunMemory) -> str:
    """Return the SHA-256 of what a seal names; empty if it cannot be read."""
    if PackedTrace.parse(file.path) is None:
        # Joining a path takes as long as opening a file, so the names are joined as text.
        return memory.of_file(f"{path}/{file.path}", digest_file)

    def read() -> str:
        with suppress(OSError):
            return digest_bytes(read_trace_content(path, file.path))
        return ""

    # The pack grows during a run, so a part is read again only if earlier ones changed. One that
    # could not be read may be complete now.
    digest = memory.of_part(file.path, read)
    return digest if digest == file.sha256 else read()


def _describe_change(
    path: Path, sealed: SealedRow, file: SealedFile, digest: str
) -> tuple[str, bool]:
    """Return a description of the change of a file, and whether a power cut can cause it."""
    if not digest:
        exists = os.path.lexists(path / file.path)
        return ("not a regular file", False) if exists else ("missing", True)
    return _trace_change(path, sealed) if file.path == sealed.row.trace else ("edited", True)


def _trace_change(path: Path, sealed: SealedRow) -> tuple[str, bool]:
    try:
        records: list[Record] = RunFolder(path).read_trace(sealed.row)
        trace_digest = verify_chain(records)
    except CutTrace as error:
        return str(error), True
    except BrokenTrace as error:
        return str(error), False
    except InputError:
        return "cannot be read", True
    if trace_digest != sealed.row.trace_digest:
        counts = f"it has {len(records)} records, the sealed one has {sealed.records}"
        return f"another trace: {counts}", False
    return "edited outside the hashed fields", False


def _unsealed_files(
    path: Path, seal: RunSeal, rows: dict[EpisodeName, SealedRow], memory: RunMemory
) -> Iterator[Damage]:
    sealed = {file.path for row in rows.values() for file in row.files}
    # An interrupted attempt may leave files, which the next attempt replaces.
    scored = {name for name, row in rows.items() if not row.row.is_infra}
    unfinished = (
        []
        if seal.is_final
        else [episode.name for episode in seal.episodes if episode.name not in scored]
    )
    expected = {
        file
        for name in unfinished
        for expected_path in episode_files(name)
        for file in (expected_path, f"{expected_path}.partial")
    }
    bodies = _referenced_bodies(path, memory)
    digest_of = partial(memory.of_file, read=digest_file)
    accepted_bodies = bodies if seal.is_final else None
    for where, what in unknown_files(path, sealed | expected, accepted_bodies, digest_of):
        yield Damage(where, what, is_of_crash=True)
    for body in sorted(bodies):
        if not os.path.lexists(path / body):
            yield Damage(body, "missing", is_of_crash=not seal.is_final)
    yield from _unknown_folders(path, seal)


def _referenced_bodies(path: Path, memory: RunMemory) -> set[str]:
    """Return the bodies that exchanges refer to; an unreadable list of them is damage already."""
    bodies = set()
    for name in CASSETTE_FOLDERS:
        with suppress(*UNREADABLE):
            named = Cassette(path / name).referenced(memory.of_file)
            bodies |= {f"{name}/bodies/{body}" for body in named}
    return bodies


def _unknown_folders(path: Path, seal: RunSeal) -> Iterator[Damage]:
    """Yield the folders in which no planned episode can have a file."""
    found = [
        f"{Path(parent).relative_to(path).as_posix()}/{folder}"
        for name in EPISODE_FOLDERS
        for parent, folders, _ in os.walk(path / name)
        for folder in sorted(folders)
        if not os.path.islink(f"{parent}/{folder}")
    ]
    if not found:  # A large run has many episodes, and often no files of single episodes.
        return
    files = (file for episode in seal.episodes for file in episode_files(episode.name))
    folders_of_files = {file.rpartition("/")[0] for file in files}
    known = {
        parent.as_posix()
        for folder in folders_of_files
        for parent in (PurePosixPath(folder), *PurePosixPath(folder).parents)
    }
    known.update(BODY_FOLDERS)
    for where in found:
        if where not in known:
            yield Damage(where, "belongs to no episode", is_of_crash=True)


def unknown_files(
    path: Path,
    known: Collection[str],
    bodies: Collection[str] | None = None,
    digest_of: Callable[[Path], str] = digest_file,
) -> Iterator[tuple[str, str]]:
    """Yield the files that are not part of a run, each with a description; follows no link.

    Args:
        path: of the run folder.
        known: files below ``EPISODE_FOLDERS`` that are part of the run, relative to the folder.
        bodies: bodies that an exchange refers to, relative to the folder; None accepts every body
            whose name matches its content, and unfinished ones.
        digest_of: returns the SHA-256 of a file.
    """
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        expected = KNOWN_FOLDERS if entry.is_dir() else SINGLE_FILES
        if entry.is_symlink():
            yield entry.name, _LINK
        elif entry.name not in expected:
            yield entry.name, "not part of a run"
    for folder in EPISODE_FOLDERS:
        if not (path / folder).is_symlink():
            yield from _unknown_below(path, folder, known, bodies, digest_of)


def _unknown_below(
    path: Path,
    folder: str,
    known: Collection[str],
    bodies: Collection[str] | None,
    digest_of: Callable[[Path], str],
) -> Iterator[tuple[str, str]]:
    for parent, folders, files in os.walk(path / folder):
        folders.sort()
        within = Path(parent).relative_to(path).as_posix()
        for name in folders:
            if os.path.islink(f"{parent}/{name}"):
                yield f"{within}/{name}", _LINK
        for name in sorted(files):
            where = f"{within}/{name}"
            if os.path.islink(f"{parent}/{name}"):
                yield where, _LINK
            elif within in BODY_FOLDERS:
                if bodies is None and name.endswith(".partial"):
                    continue
                if digest_of(path / where) != name:
                    yield where, "its content does not match its name"
                elif bodies is not None and where not in bodies:
                    yield where, "belongs to no exchange"
            elif where not in known:
                yield where, "belongs to no episode"
