"""Is a run folder what it was when it was sealed? Names everything that is not, and changes nothing.

Without the key that the reader expects, a whole folder may have been written anew and signed by somebody
else; with it, nothing may.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.trace import BrokenTrace, CutTrace, Record, verify_chain
from fumehood.records.episode_name import EpisodeName
from fumehood.records.plain_file import digest_file
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.signatures import RunSeal, SealedFile, row_is_signed, sealed_files
from fumehood.records.signer import (
    FIRST,
    PLAN_FILES,
    SEAL,
    UNREADABLE,
    digest_bytes,
    own_files,
    read_seal,
    row_lines,
)
from fumehood.records.signer import ROWS as ROWS_FILE
from fumehood.records.unsigned_files import strays


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not as it was sealed."""

    where: str
    """A file of the run folder, with a line's number where it has lines, or an episode."""
    what: str
    is_of_crash: bool = False
    """True where a crash or a power cut may leave this in a run that is not over, which can go on."""
    episode: EpisodeName | None = None
    """Whose trace or output it is."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found."""

    key: str
    """Who signed, 64 hex digits; empty where that cannot be told."""
    planned: int
    episodes: int
    """With a row that is as it was sealed."""
    damage: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """A row as it was sealed."""

    row: EpisodeRow
    digest: str
    files: tuple[SealedFile, ...]
    records: int


def verify(path: Path, key: str | None = None, *, with_files: bool = True) -> Verification:
    """Compare a run folder with its seals.

    Args:
        path: of the run folder.
        key: public half of the key that must have signed it, 64 hex digits; None for whichever did.
        with_files: also read traces, output and whatever else lies there.

    Raises:
        InputError: it is no run folder, or was never signed.
    """
    if not (path / SEAL).exists() and "signing_key" not in RunFolder.open(path).manifest():
        raise InputError(f"{path} was never signed, so nothing can be said about it")
    try:
        seal = read_seal(path)
    except InputError:
        return Verification("", 0, 0, (Damage(SEAL, "missing, or not what was signed"),))
    if key is not None and key != seal.key:
        return Verification(
            seal.key, len(seal.episodes), 0, (Damage(SEAL, f"signed with {seal.key}"),)
        )
    damage = list(_plan_damage(path, seal))
    lines: dict[EpisodeName, _Line] = {}
    damage.extend(_row_damage(path, seal, lines))
    damage.extend(_set_damage(path, seal, lines))
    if with_files:
        for line in lines.values():
            damage.extend(_file_damage(path, seal, line))
        damage.extend(_stray_files(path, seal, lines))
    return Verification(seal.key, len(seal.episodes), len(lines), tuple(damage))


def _plan_damage(path: Path, seal: RunSeal) -> Iterator[Damage]:
    sealed = {file.path: file.sha256 for file in seal.files}
    for name in PLAN_FILES:
        if digest_file(path / name) != sealed.get(name):
            yield Damage(name, "missing or edited")


def _row_damage(path: Path, seal: RunSeal, lines: dict[EpisodeName, _Line]) -> Iterator[Damage]:
    """Yield what is wrong with rows; fill ``lines`` with the last sound one of each episode."""
    before = FIRST
    try:
        found = row_lines(path)
    except InputError as error:
        yield Damage(ROWS_FILE, str(error))
        return
    for number, raw in enumerate(found, 1):
        where = f"{ROWS_FILE}:{number}"
        before, after = digest_bytes(raw), before
        if not raw.endswith(b"\n"):
            yield Damage(where, "a torn row", is_of_crash=not seal.is_final)
            continue
        try:
            value = json.loads(raw)
            line = _read_line(raw, value)
            exact = f"{canonical_json(value)}\n".encode("ascii") == raw
            signed = exact and row_is_signed(value, seal.run, seal.key)
        except UNREADABLE:
            yield Damage(where, "not a sealed row")
            continue
        name = line.row.name
        if not signed:
            yield Damage(where, f"the row of {name} was edited")
            continue
        if value["seal"]["after"] != after:
            yield Damage(
                where, f"the row of {name} does not follow the one before it: cut or reordered"
            )
        lines[name] = line


def _read_line(raw: bytes, value: JsonObject) -> _Line:
    seal = value["seal"]
    if not isinstance(seal, dict):
        raise TypeError("a seal is an object")
    row = EpisodeRow.from_json(value)
    return _Line(
        row, digest_bytes(raw), tuple(sealed_files(seal["files"])), int(str(seal["records"]))
    )


def _set_damage(path: Path, seal: RunSeal, lines: dict[EpisodeName, _Line]) -> Iterator[Damage]:
    planned = {one.name for one in seal.episodes}
    for one in seal.episodes:
        if one.name not in lines:
            what = "missing" if seal.is_final else "missing: the run is not over"
            yield Damage(str(one.name), what, is_of_crash=not seal.is_final)
        elif one.row not in ("", lines[one.name].digest):
            yield Damage(str(one.name), "its row is not the one that was sealed with the run")
    for name in lines:
        if name not in planned:
            yield Damage(str(name), "not an episode of this run")
    complete = all(one.name in lines for one in seal.episodes)
    if not seal.is_final and complete:
        what = "the run was never sealed as a whole; fumehood resume does it"
        yield Damage(SEAL, what, is_of_crash=True)
    sealed = {file.path: file.sha256 for file in seal.files}
    if seal.is_final and digest_file(path / ROWS_FILE) != sealed.get(ROWS_FILE):
        yield Damage(ROWS_FILE, "not the file that was sealed with the run")


def _file_damage(path: Path, seal: RunSeal, line: _Line) -> Iterator[Damage]:
    row, open_run = line.row, not seal.is_final
    own = own_files(row.name)
    if row.trace not in ("", row.name.trace_path):
        yield Damage(str(row.name), f"its row names the trace {row.trace}, which is not its own")
        return
    for file in line.files:
        if file.path not in own:
            yield Damage(str(row.name), f"its seal names {file.path}, which is not its own")
            continue
        found = digest_file(path / file.path)
        if found == file.sha256:
            continue
        what, is_torn = _what_happened(path, line, file, found)
        # Of what failed on our side nothing counts, and the next attempt may have been cut short.
        is_of_crash = open_run and (is_torn or row.is_infra)
        yield Damage(file.path, what, is_of_crash=is_of_crash, episode=row.name)


def _what_happened(path: Path, line: _Line, file: SealedFile, found: str) -> tuple[str, bool]:
    """Say what happened to a file, and whether a power cut does that."""
    if not found:
        return (
            ("not a plain file", False) if os.path.lexists(path / file.path) else ("missing", True)
        )
    if file.path != line.row.trace:
        return "edited", True
    return _trace_damage(path, line)


def _trace_damage(path: Path, line: _Line) -> tuple[str, bool]:
    try:
        records: list[Record] = RunFolder(path).read_trace(line.row)
        digest = verify_chain(records)
    except CutTrace as error:
        return str(error), True
    except BrokenTrace as error:
        return str(error), False
    except InputError:
        return "cannot be read", True
    if digest != line.row.trace_digest:
        return f"another trace, of {len(records)} records where {line.records} were sealed", False
    return "edited beside what its hashes cover", False


def _stray_files(path: Path, seal: RunSeal, lines: dict[EpisodeName, _Line]) -> Iterator[Damage]:
    sealed = {file.path for line in lines.values() for file in line.files}
    # What an attempt left that a crash cut short is no damage: the next attempt writes it anew.
    done = {name for name, line in lines.items() if not line.row.is_infra}
    unfinished = (
        [] if seal.is_final else [one.name for one in seal.episodes if one.name not in done]
    )
    expected = {
        each for name in unfinished for own in own_files(name) for each in (own, f"{own}.partial")
    }
    for where, what in strays(path, sealed | expected):
        yield Damage(where, what, is_of_crash=True)
