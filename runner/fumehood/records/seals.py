"""Seals: signatures over rows and over whole runs.

The seal of a row covers the row, the files of its episode, and the row before it. The seal of a run
covers the plan in order and, when every episode has its row, all rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject, canonical_around, canonical_json
from fumehood.records.cassette import CASSETTE_FOLDERS
from fumehood.records.files import digest_file, force_all_to_disk, read_plain, write_whole
from fumehood.records.packed_traces import PACK, file_of_trace, read_trace_content
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.signing_key import SigningKey, is_signed_by

ROW_FORMAT = "fumehood.row/1"
RUN_FORMAT = "fumehood.seal/1"
SEAL = "seal.json"
PLAN_FILES = ("run.json", "suite.jsonl")
"""Files that are written once, before any episode runs."""
ROWS = "episodes.jsonl"
UNREADABLE = (
    OSError,
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
)
"""Exceptions of parsing untrusted JSON, whose nesting and numbers are not limited."""
FIRST = "0" * 64
"""Digest of the line before the first row."""


@dataclass(frozen=True, slots=True)
class SealedFile:
    """A file of the run folder and its digest when it was sealed."""

    path: str
    """Relative to the folder."""
    sha256: str

    def to_json(self) -> JsonObject:
        """Return the JSON object of this file in a seal."""
        # ``dataclasses.asdict`` takes five times as long, and a run has thousands of files.
        return {"path": self.path, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class WrittenTrace:
    """What a seal states of a trace."""

    records: int
    """Number of its records."""
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> WrittenTrace:
        """Return what a seal states of a trace with this content."""
        return cls(content.count(b"\n"), digest_bytes(content))


@dataclass(frozen=True, slots=True)
class SealedEpisode:
    """A planned episode."""

    name: EpisodeName
    row: str
    """SHA-256 of its line in ``episodes.jsonl``; empty until the run is finished."""

    def to_json(self) -> JsonObject:
        """Return the JSON object of this episode in the seal of a run."""
        name = self.name
        return {"agent": name.agent, "task": name.task, "trial": name.trial, "row": self.row}


@dataclass(frozen=True, slots=True)
class SealedRow:
    """A row with its seal."""

    row: EpisodeRow
    digest: str
    """SHA-256 of its line."""
    after: Json
    """SHA-256 of the line before it."""
    files: tuple[SealedFile, ...]
    """Files of its episode."""
    records: int
    """Number of records of its trace."""

    @classmethod
    def from_json(cls, value: JsonObject, digest: str) -> SealedRow:
        """Return the row of a line, without checking its seal.

        Args:
            value: content of the line.
            digest: SHA-256 of the line.

        Raises:
            KeyError, TypeError, ValueError: the value is not a row with its seal.
        """
        seal = value["seal"]
        if not isinstance(seal, dict):
            raise TypeError("seal must be an object")
        files = tuple(sealed_files(seal["files"]))
        records = int(str(seal["records"]))
        return cls(EpisodeRow.from_json(value), digest, seal["after"], files, records)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeal:
    """The seal of a run."""

    run: str
    key: str
    """Public key of the signer, 64 hex digits."""
    files: tuple[SealedFile, ...]
    episodes: tuple[SealedEpisode, ...]
    """In the order of the plan."""
    is_final: bool = field(init=False)
    """True if every episode has its row."""

    def __post_init__(self) -> None:
        """Compute ``is_final`` once, because verification asks for each of thousands of rows."""
        is_final = all(episode.row for episode in self.episodes)
        is_final = is_final and any(file.path == ROWS for file in self.files)
        object.__setattr__(self, "is_final", is_final)

    def statement(self) -> JsonObject:
        """Return the signed content."""
        return {
            "format": RUN_FORMAT,
            "run": self.run,
            "key": self.key,
            "files": [file.to_json() for file in self.files],
            "episodes": [episode.to_json() for episode in self.episodes],
        }

    def signed(self, key: SigningKey) -> JsonObject:
        """Return the seal with its signature."""
        statement = self.statement()
        return {**statement, "signature": key.sign(statement)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RunSeal:
        """Return the seal that :meth:`signed` wrote, without checking its signature.

        Raises:
            KeyError, TypeError, ValueError: the value is not a seal.
        """
        return cls(
            run=str(value["run"]),
            key=str(value["key"]),
            files=tuple(sealed_files(value["files"])),
            episodes=tuple(
                SealedEpisode(
                    EpisodeName(str(item["agent"]), str(item["task"]), int(item["trial"])),
                    str(item["row"]),
                )
                for item in value["episodes"]
            ),
        )


@dataclass(frozen=True, slots=True)
class Signing:
    """The key that signs a run, and the plan that it signs."""

    key: SigningKey
    episodes: tuple[EpisodeName, ...]
    """In the order of the plan."""


class Sealing:
    """Seals rows and the run. Not thread-safe."""

    def __init__(self, path: Path, signing: Signing, run: str) -> None:
        self._path = path
        self._signing = signing
        self._run = run
        self._after: str | None = None

    def row_lines(
        self, rows: Sequence[EpisodeRow], traces: Mapping[str, WrittenTrace]
    ) -> list[bytes]:
        """Return the lines of rows with their seals, to be appended next.

        Args:
            rows: to seal.
            traces: those that this process has written, by path; the others are read.
        """
        if self._after is None:
            before = row_lines(self._path)
            self._after = digest_bytes(before[-1]) if before else FIRST
        has_exchanges = any(os.path.isdir(self._path / name) for name in CASSETTE_FOLDERS)
        lines: list[bytes] = []
        for row in rows:
            records, files = _contents(self._path, row, traces.get(row.trace), has_exchanges)
            line = sealed_line(
                row.to_json(),
                self._signing.key,
                run=self._run,
                after=digest_bytes(lines[-1]) if lines else self._after,
                records=records,
                files=files,
            )
            lines.append(line)
        return lines

    def continue_after(self, line: bytes) -> None:
        """Chain the next row to ``line``, which has been written."""
        self._after = digest_bytes(line)

    def is_chain(self, rows: Sequence[SealedRow]) -> bool:
        """Return whether each row follows the one before it, and the last one is as written."""
        digests = [FIRST, *(row.digest for row in rows)]
        follows = all(row.after == digest for row, digest in zip(rows, digests, strict=False))
        return follows and self._after in (None, digests[-1])

    def seal_plan(self, plan_digests: Sequence[str]) -> None:
        """Seal the SHA-256 of each of ``PLAN_FILES``, before any episode runs."""
        files = (SealedFile(*item) for item in zip(PLAN_FILES, plan_digests, strict=True))
        self._write(files=tuple(files), episodes=self._episodes({}))

    def require_plan(self) -> None:
        """Check that the plan is unchanged.

        Raises:
            InputError: the plan was changed.
        """
        seal = read_seal(self._path)
        sealed = {file.path: file.sha256 for file in seal.files}
        for name in PLAN_FILES:
            if sealed.get(name) != digest_file(self._path / name):
                raise InputError(
                    f"{self._path / name} was changed; see: fumehood verify {self._path}"
                )

    def seal_run(self, rows: Sequence[SealedRow]) -> None:
        """Seal the run if every planned episode is among the rows; otherwise do nothing."""
        digests = {row.row.name: row.digest for row in rows}
        if not all(map(digests.get, self._signing.episodes)):
            return
        # After a power cut, a sealed run must not look as if its traces had been changed.
        traces = {file_of_trace(row.row.trace) for row in rows if row.row.trace}
        force_all_to_disk(self._path, sorted(traces))
        written = (ROWS, PACK) if os.path.lexists(self._path / PACK) else (ROWS,)
        files = (SealedFile(name, digest_file(self._path / name)) for name in written)
        self._write(files=(*self._plan_files(), *files), episodes=self._episodes(digests))

    def reopen(self) -> None:
        """Replace the seal of a finished run by one of an unfinished run."""
        if read_seal(self._path).is_final:
            self._write(files=self._plan_files(), episodes=self._episodes({}))

    def _plan_files(self) -> tuple[SealedFile, ...]:
        return tuple(file for file in read_seal(self._path).files if file.path in PLAN_FILES)

    def _episodes(self, row_digests: Mapping[EpisodeName, str]) -> tuple[SealedEpisode, ...]:
        return tuple(
            SealedEpisode(name, row_digests.get(name, "")) for name in self._signing.episodes
        )

    def _write(self, *, files: tuple[SealedFile, ...], episodes: tuple[SealedEpisode, ...]) -> None:
        key = self._signing.key
        seal = RunSeal(run=self._run, key=key.public, files=files, episodes=episodes)
        write_whole(self._path / SEAL, canonical_json(seal.signed(key)) + "\n")


def sealed_line(
    row: JsonObject,
    key: SigningKey,
    *,
    run: str,
    after: str,
    records: int,
    files: Sequence[SealedFile],
) -> bytes:
    """Return the line of a row with its seal.

    Args:
        row: without a seal.
        key: the signer's key.
        run: ID of the run.
        after: SHA-256 of the line before it, in hex; ``FIRST`` for the first row.
        records: number of records of the trace, its end record included; 0 if there is no trace.
        files: of the episode.
    """
    seal: JsonObject = {
        "after": after,
        "records": records,
        "files": [file.to_json() for file in files],
    }
    # The signed text and the line have the same row, whose text is therefore written once.
    before, behind = canonical_around(row, "seal")
    start, end = canonical_around({"format": ROW_FORMAT, "run": run}, "row")
    signed = f"{start}{before}{canonical_json(seal)}{behind}{end}"
    signature = key.sign_bytes(signed.encode("ascii")).hex()
    sealed = canonical_json({**seal, "signature": signature})
    return f"{before}{sealed}{behind}\n".encode("ascii")


def row_is_signed(row: JsonObject, run: str, public: str) -> bool:
    """Return whether a row has a valid seal.

    Args:
        row: with its seal.
        run: ID of the run.
        public: public key of the signer, 64 hex digits.
    """
    seal = row.get("seal")
    if not isinstance(seal, dict):
        return False
    unsigned = {name: value for name, value in seal.items() if name != "signature"}
    statement: JsonObject = {"format": ROW_FORMAT, "run": run, "row": {**row, "seal": unsigned}}
    return is_signed_by(public, statement, seal.get("signature"))


def sealed_files(value: Json) -> list[SealedFile]:
    """Return the files that a seal names.

    Raises:
        KeyError, TypeError: the value is not a list of files.
    """
    if not isinstance(value, list):
        raise TypeError("files must be a list")
    return [
        SealedFile(str(file["path"]), str(file["sha256"]))
        for file in value
        if isinstance(file, dict)
    ]


def read_seal(path: Path) -> RunSeal:
    """Return the seal of a run folder; its signature has been checked.

    Raises:
        InputError: the seal is missing or invalid.
    """
    try:
        text = read_plain(path / SEAL).decode("ascii")
        value = json.loads(text)
        seal = RunSeal.from_json(value)
    except UNREADABLE:
        raise InputError(f"{path / SEAL} is missing or cannot be read") from None
    # Compare bytes: another encoding of the same content is another file.
    statement = seal.statement()
    exact = f"{canonical_json({**statement, 'signature': value.get('signature')})}\n"
    if text != exact or not is_signed_by(seal.key, statement, value["signature"]):
        raise InputError(f"{path / SEAL} was changed: its signature does not match")
    return seal


def row_lines(path: Path) -> list[bytes]:
    """Return the lines of a run's rows; the last may be torn.

    Raises:
        InputError: ``episodes.jsonl`` is not a readable file.
    """
    try:
        return read_plain(path / ROWS).splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{path / ROWS} cannot be read: {error.strerror}") from None


def digest_bytes(content: bytes) -> str:
    """Return the SHA-256 in hex."""
    return sha256(content).hexdigest()


def episode_files(name: EpisodeName) -> tuple[str, ...]:
    """Return the possible files of an episode, relative to the folder; the trace is the first."""
    output = (f"{name.output_path}.{stream}" for stream in ("stdout", "stderr"))
    return name.trace_path, *output, name.cassette_path, name.judge_path


def _contents(
    path: Path, row: EpisodeRow, written: WrittenTrace | None, has_exchanges: bool
) -> tuple[int, list[SealedFile]]:
    """Return the number of records of a row's trace, and the files of its episode."""
    # Joining a path takes as long as opening a file, so the names are joined as text.
    records, files = 0, list[SealedFile]()
    if row.trace:
        if written is None:
            written = WrittenTrace.of(read_trace_content(path, row.trace))
        records = written.records
        files.append(SealedFile(row.trace, written.sha256))
    if not (row.stdout_bytes or row.stderr_bytes or has_exchanges):
        return records, files
    stdout, stderr, *exchanges = episode_files(row.name)[1:]
    streams = ((stdout, row.stdout_bytes > 0), (stderr, row.stderr_bytes > 0))
    printed = [name for name, has_output in streams if has_output]
    digests = ((name, digest_file(f"{path}/{name}")) for name in (*printed, *exchanges))
    files.extend(SealedFile(name, digest) for name, digest in digests if digest)
    return records, files
