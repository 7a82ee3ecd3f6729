"""Recorded model exchanges of a run, for replaying the run without models.

::

    episodes/AGENT-TASK-TRIAL.jsonl   one exchange per line, with numbers of chunks for its bodies
    bodies/SHA256                     chunks of requests and responses; equal ones are stored once

A body is cut into chunks between JSON objects, so the messages that a growing conversation repeats
with each request are stored once. A line names the chunks that no earlier line of the file names
(``chunks``). Request and response are lists of ranges, each with the number of its first chunk and
their count.

A cassette belongs to the plan of its run: exchanges are found by the name of their episode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import Any

from fumehood.core.errors import InputError
from fumehood.core.trace import ModelExchange
from fumehood.records.files import make_private_folder, read_plain, write_plain, write_whole
from fumehood.records.row import file_name

_BODIES = ("request", "response")
CASSETTE_FOLDERS = ("cassette", "judge")
"""Folders of a run that hold exchanges: of its agents, and of its judge."""
CHUNK_BYTES_MIN = 512
"""Smaller objects share a chunk with the next one."""
FILE_BYTES_MIN = 4096
"""Space that the file of a chunk takes on a disk, at least: an agent could otherwise fill the disk
with small objects."""
EPISODE_BYTES_MAX = 1 << 30
"""Size of all requests and responses of an episode that are read, at most. A short file could
otherwise name one chunk a million times."""
REFERENCE_BYTES = 64
"""Part of this limit that each reference to a chunk uses in addition to its size."""
_DIGEST = re.compile("[0-9a-f]{64}")
_BETWEEN_OBJECTS = re.compile(rb"(?<=\})(?=,\{|\],\")")


class Cassette:
    """A folder of exchanges. Safe to use from several threads for different episodes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def exists(self) -> bool:
        """Return whether the cassette has a folder, which the first exchanges create."""
        return self._path.is_dir()

    def write(self, episode_id: str, exchanges: Sequence[ModelExchange]) -> None:
        """Keep an episode's exchanges; replaces those of an earlier attempt."""
        recording = Recording(self, episode_id)
        for exchange in exchanges:
            recording.add(exchange)
        recording.finish()

    def read(self, episode_id: str) -> tuple[ModelExchange, ...]:
        """Return an episode's exchanges; none if it was not recorded.

        Raises:
            InputError: a body is missing or was changed, the file is no list of exchanges, or they
                have more than ``EPISODE_BYTES_MAX``.
        """
        path = self.file(episode_id)
        try:
            return tuple(self._exchanges(read_plain(path).decode("ascii")))
        except _LargeError:
            raise InputError(
                f"{path}: its requests and responses have more than {EPISODE_BYTES_MAX:,} bytes: "
                "record the episode again with a smaller budget of its model"
            ) from None
        except FileNotFoundError:
            return ()
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path} is not a list of exchanges: record it again") from None

    def drop(self, episode_id: str) -> None:
        """Forget the exchanges of an earlier attempt."""
        self.file(episode_id).unlink(missing_ok=True)

    def size_bytes(self) -> int:
        """Return the space of all bodies on the disk."""
        bodies = self._path / "bodies"
        paths = bodies.iterdir() if bodies.is_dir() else ()
        return sum(max(path.lstat().st_size, FILE_BYTES_MIN) for path in paths)

    def referenced(
        self,
        of_file: Callable[[Path, Callable[[Path], set[str]]], set[str]] = lambda path, read: read(
            path
        ),
    ) -> set[str]:
        """Return the names of the chunks that an exchange refers to.

        Args:
            of_file: reads a file with a function, or remembers what it read.

        Raises:
            OSError, KeyError, TypeError, ValueError: a file is no list of exchanges.
        """
        names: set[str] = set()
        for path in sorted((self._path / "episodes").glob("*.jsonl")):
            names |= of_file(path, _chunks_in)
        return names

    def drop_unreferenced(self) -> None:
        """Remove the chunks that only replaced attempts used, and unfinished ones."""
        bodies = self._path / "bodies"
        if bodies.is_dir():
            referenced = self.referenced()
            for path in bodies.iterdir():
                if path.name not in referenced:
                    path.unlink()

    def file(self, episode_id: str) -> Path:
        """Return the path of an episode's exchanges."""
        return self._path / "episodes" / f"{file_name(episode_id)}.jsonl"

    def has_chunk(self, digest: str) -> bool:
        """Return whether a chunk is stored."""
        return (self._path / "bodies" / digest).exists()

    def store(self, lines: Iterable[str], chunks: dict[str, bytes], episode_id: str = "") -> None:
        """Store chunks, then the lines of an episode.

        Args:
            lines: of the episode; ignored without its ID.
            chunks: by digest.
            episode_id: empty stores no lines yet.
        """
        for folder in (self._path, self._path / "episodes", self._path / "bodies"):
            make_private_folder(folder)
        for digest, chunk in chunks.items():
            path = self._path / "bodies" / digest
            if not path.exists():
                # Two episodes may keep the same chunk at once.
                partial = path.with_name(f"{digest}.{get_ident()}.partial")
                write_plain(partial, chunk)
                partial.replace(path)
        if episode_id:
            write_whole(self.file(episode_id), "".join(lines))

    def _exchanges(self, text: str) -> Iterator[ModelExchange]:
        chunks: list[bytes] = []
        known: set[str] = set()
        size = _Size()
        for line in text.splitlines():
            fields = json.loads(line)
            for digest in map(str, fields.pop("chunks")):
                if digest in known:
                    raise ValueError("a chunk is named twice")
                known.add(digest)
                chunks += size.add([self._read_chunk(digest)])
            for name in _BODIES:
                # All ranges are counted before anything is copied.
                ranges = [size.add(chunks[first : first + count]) for first, count in fields[name]]
                fields[name] = b"".join(chunk for part in ranges for chunk in part)
            yield ModelExchange(**fields)

    def _read_chunk(self, digest: str) -> bytes:
        if _DIGEST.fullmatch(digest) is None:
            raise ValueError(f"a chunk has the name {digest[:80]!r}, which is no SHA-256 digest")
        path = self._path / "bodies" / digest
        try:
            body = read_plain(path)
        except OSError:
            raise InputError(f"{path}: missing from the cassette") from None
        if sha256(body).hexdigest() != digest:
            raise InputError(
                f"{path}: its content does not match its name: the cassette was changed"
            )
        return body


class _LargeError(Exception):
    """The exchanges of an episode exceed ``EPISODE_BYTES_MAX``."""


class _Size:
    """The size of what one episode refers to."""

    def __init__(self) -> None:
        self._bytes = 0

    def add(self, chunks: list[bytes]) -> list[bytes]:
        """Count the chunks, and return them."""
        self._bytes += sum(len(chunk) + REFERENCE_BYTES for chunk in chunks)
        if self._bytes > EPISODE_BYTES_MAX:
            raise _LargeError
        return chunks


class Recording:
    """The exchanges of one attempt at an episode, until they are stored."""

    def __init__(
        self,
        cassette: Cassette,
        episode_id: str,
        recode: Callable[[bytes], bytes] = bytes,
        bytes_max: int | None = None,
    ) -> None:
        """Begin with no exchange; :meth:`finish` stores them.

        Args:
            cassette: receives them.
            episode_id: ID of the episode.
            recode: changes each chunk before it is stored, for example encrypts it.
            bytes_max: space of new chunks that are held in memory, at most; of a longer recording
                nothing is stored. None stores each chunk at once.
        """
        self._cassette = cassette
        self._episode_id = episode_id
        self._recode = recode
        self._bytes_max = bytes_max
        self._lines: list[str] = []
        self._numbers: dict[str, int] = {}
        """Number of each chunk, by digest."""
        self._chunks: dict[str, bytes] = {}
        """Chunks to store."""
        self.new_bytes = 0
        """Space of all chunks that were not stored before, on the disk."""
        self._failure: OSError | None = None

    def add(self, exchange: ModelExchange) -> None:
        """Add an exchange; an error of the disk is raised by :meth:`finish`."""
        if self._is_too_large or self._failure is not None:
            return
        fields: dict[str, Any] = asdict(exchange)
        known = len(self._numbers)
        for name in _BODIES:
            fields[name] = _ranges([self._number(chunk) for chunk in chunks_of(fields[name])])
        fields["chunks"] = list(self._numbers)[known:]
        self._lines.append(json.dumps(fields) + "\n")
        if self._bytes_max is None:
            try:
                self._cassette.store((), self._chunks)
            except OSError as error:
                self._failure = error
            self._chunks = {}

    def finish(self) -> bool:
        """Store the exchanges, in place of those of an earlier attempt.

        Returns:
            Whether they were stored: not if they are too large, or if there are none.

        Raises:
            OSError: they cannot be written.
        """
        if self._failure is not None:
            raise self._failure
        if self._is_too_large or (self._bytes_max is not None and not self._lines):
            self.discard()
            return False
        self._cassette.store(self._lines, self._chunks, self._episode_id)
        return True

    def discard(self) -> None:
        """Store nothing, and forget the exchanges of an earlier attempt."""
        self._cassette.drop(self._episode_id)

    @property
    def _is_too_large(self) -> bool:
        return self._bytes_max is not None and self.new_bytes > self._bytes_max

    def _number(self, chunk: bytes) -> int:
        chunk = self._recode(chunk)
        digest = sha256(chunk).hexdigest()
        if digest not in self._numbers:
            self._numbers[digest] = len(self._numbers)
            if not self._cassette.has_chunk(digest):
                self._chunks[digest] = chunk
                self.new_bytes += max(len(chunk), FILE_BYTES_MIN)
        return self._numbers[digest]


def chunks_of(body: bytes) -> Iterator[bytes]:
    """Yield the chunks of a body; together they are the body."""
    start = 0
    for match in _BETWEEN_OBJECTS.finditer(body):
        if match.start() - start >= CHUNK_BYTES_MIN:
            yield body[start : match.start()]
            start = match.start()
    yield body[start:]


def _chunks_in(path: Path) -> set[str]:
    lines = read_plain(path).decode("ascii").splitlines()
    return {str(name) for line in lines for name in json.loads(line)["chunks"]}


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Return first number and length of each ascending part of a list."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and sum(ranges[-1]) == number:
            ranges[-1][1] += 1
        else:
            ranges.append([number, 1])
    return ranges
