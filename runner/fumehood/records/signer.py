"""The hand that seals a run folder while it is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.core.json_values import canonical_json
from fumehood.records.episode_name import EpisodeName
from fumehood.records.plain_file import digest_file, read_plain
from fumehood.records.row import EpisodeRow
from fumehood.records.signatures import RunSeal, SealedEpisode, SealedFile, seal_row
from fumehood.records.signing_key import SigningKey, is_signed_by
from fumehood.records.whole_file import force_to_disk, write_whole

SEAL = "seal.json"
PLAN_FILES = ("run.json", "suite.jsonl")
"""Written before anything happens, and never again."""
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
"""What reading text that somebody else wrote may raise: JSON can be too deep and numbers too large."""
FIRST = "0" * 64
"""What stands where the line before the first one would."""


@dataclass(frozen=True, slots=True)
class Signing:
    """Who signs what."""

    key: SigningKey
    episodes: tuple[EpisodeName, ...]
    """Of the run, in the order of its plan."""


class Sealing:
    """Seals rows and the run. Whoever calls it lets one call in at a time."""

    def __init__(self, path: Path, signing: Signing, run: str) -> None:
        self._path = path
        self._signing = signing
        self._run = run
        self._after: str | None = None

    def row_lines(self, rows: Sequence[EpisodeRow]) -> list[bytes]:
        """Return the lines of rows, each sealed, to be written next."""
        if self._after is None:
            before = row_lines(self._path)
            self._after = digest_bytes(before[-1]) if before else FIRST
        lines: list[bytes] = []
        for row in rows:
            lines.append(self._row_line(row, digest_bytes(lines[-1]) if lines else self._after))
        return lines

    def _row_line(self, row: EpisodeRow, after: str) -> bytes:
        records, files = _contents(self._path, row)
        sealed = seal_row(
            row.to_json(),
            self._signing.key,
            run=self._run,
            after=after,
            records=records,
            files=files,
        )
        return (canonical_json(sealed) + "\n").encode("ascii")

    def go_on_after(self, line: bytes) -> None:
        """Take note that ``line`` is written."""
        self._after = digest_bytes(line)

    def seal_plan(self, plan_digests: Sequence[str]) -> None:
        """Seal what is to be run, before anything is.

        Args:
            plan_digests: SHA-256 of each of ``PLAN_FILES``.
        """
        files = tuple(SealedFile(*one) for one in zip(PLAN_FILES, plan_digests, strict=True))
        self._write(
            RunSeal(
                run=self._run, key=self._signing.key.public, files=files, episodes=self._names()
            )
        )

    def require_plan(self) -> None:
        """Make sure that what is to be run is what was sealed.

        Raises:
            InputError: it was changed since.
        """
        seal = read_seal(self._path)
        sealed = {file.path: file.sha256 for file in seal.files}
        for name in PLAN_FILES:
            if sealed.get(name) != digest_file(self._path / name):
                raise InputError(
                    f"{self._path / name} was changed; see: fumehood verify {self._path}"
                )

    def seal_run(self, names: dict[EpisodeName, str]) -> None:
        """Seal the run when every episode has its row; does nothing before.

        Args:
            names: every episode that has a row, and the SHA-256 of its line.
        """
        episodes = tuple(
            SealedEpisode(name, names.get(name, "")) for name in self._signing.episodes
        )
        before = read_seal(self._path)
        files = (
            *(file for file in before.files if file.path in PLAN_FILES),
            SealedFile(ROWS, digest_file(self._path / ROWS)),
        )
        seal = RunSeal(run=self._run, key=self._signing.key.public, files=files, episodes=episodes)
        if seal.is_final:
            # A sealed run may not be found torn after a power cut, as if somebody had changed it.
            for name in self._signing.episodes:
                force_to_disk(self._path / name.trace_path)
            self._write(seal)

    def reopen(self) -> None:
        """Seal the run as one that is not over, where it was sealed as a whole before."""
        before = read_seal(self._path)
        if before.is_final:
            files = tuple(file for file in before.files if file.path in PLAN_FILES)
            self._write(RunSeal(run=self._run, key=before.key, files=files, episodes=self._names()))

    def _names(self) -> tuple[SealedEpisode, ...]:
        return tuple(SealedEpisode(name, "") for name in self._signing.episodes)

    def _write(self, seal: RunSeal) -> None:
        write_whole(self._path / SEAL, canonical_json(seal.signed(self._signing.key)) + "\n")


def read_seal(path: Path) -> RunSeal:
    """Return the seal of a run folder, signed by whom it says.

    Raises:
        InputError: it is missing or broken.
    """
    try:
        text = read_plain(path / SEAL).decode("ascii")
        value = json.loads(text)
        seal = RunSeal.from_json(value)
    except UNREADABLE:
        raise InputError(f"{path / SEAL} is missing or cannot be read") from None
    # To the letter: another writing of the same would be another file.
    statement = seal.statement()
    exact = f"{canonical_json({**statement, 'signature': value.get('signature')})}\n"
    if text != exact or not is_signed_by(seal.key, statement, value["signature"]):
        raise InputError(f"{path / SEAL} is not what was signed")
    return seal


def row_lines(path: Path) -> list[bytes]:
    """Return the lines of a run's rows; the last may be torn.

    Raises:
        InputError: there is something else in their place.
    """
    try:
        return read_plain(path / ROWS).splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{path / ROWS} cannot be read: {error.strerror}") from None


def digest_bytes(content: bytes) -> str:
    """Return the SHA-256, in hex."""
    return sha256(content).hexdigest()


def own_files(name: EpisodeName) -> tuple[str, ...]:
    """Return where the files of an episode may lie, relative to the folder: its trace first."""
    output = (f"{name.output_path}.{stream}" for stream in ("stdout", "stderr"))
    return name.trace_path, *output, name.cassette_path, name.judge_path


def _contents(path: Path, row: EpisodeRow) -> tuple[int, list[SealedFile]]:
    """Return how many records a row's trace has, and every file that belongs to the row."""
    records, files = 0, list[SealedFile]()
    if row.trace:
        trace = (path / row.trace).read_bytes()
        records = trace.count(b"\n")
        files.append(SealedFile(row.trace, digest_bytes(trace)))
    stdout, stderr, *exchanges = own_files(row.name)[1:]
    there = ((stdout, row.stdout_bytes > 0), (stderr, row.stderr_bytes > 0))
    printed = [name for name, is_there in there if is_there]
    found = ((name, digest_file(path / name)) for name in (*printed, *exchanges))
    files.extend(SealedFile(name, digest) for name, digest in found if digest)
    return records, files
