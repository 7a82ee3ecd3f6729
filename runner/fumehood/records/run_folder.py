"""The folder of a run.

::

    run.json         configuration, versions, digests; written once, after suite.jsonl
    seal.json        signed plan and, at the end, signed rows; written before run.json and last
    suite.jsonl      the tasks with their gold
    episodes.jsonl   one sealed row per episode; written before its episode counts as finished
    traces/          one complete trace per episode; written before its row
    traces.jsonl     traces of an inline run with many episodes, one after another
    output/          capped output of the boxes
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from threading import Lock

from fumehood.core.errors import InfraError, InputError
from fumehood.core.formats import require_format
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.task import Suite
from fumehood.core.trace import BrokenTrace, Record, verify_chain
from fumehood.records.cassette import CASSETTE_FOLDERS, Cassette
from fumehood.records.files import (
    append_whole,
    make_private_folder,
    read_plain,
    write_or_remove,
    write_plain,
    write_whole,
)
from fumehood.records.frozen_suite import freeze_suite
from fumehood.records.packed_traces import TracePack, read_trace_content
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.seals import (
    ROWS,
    UNREADABLE,
    SealedRow,
    Sealing,
    Signing,
    WrittenTrace,
    digest_bytes,
    row_lines,
)
from fumehood.records.signing_key import KEY_VARIABLE
from fumehood.records.trace_lines import read_record, record_line

FORMAT = "fumehood.run/1"


LOCK_WAIT_S = 2.0
"""The processes of a killed command hold its lock until the kernel has ended them, too."""


@contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Lock a run folder against other commands; the kernel unlocks it when this process ends.

    Raises:
        InputError: another command holds the lock.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    ends_at = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > ends_at:
                raise InputError(
                    f"another command is writing {folder}; wait until it has ended"
                ) from None
            time.sleep(0.02)
        else:
            return


class RunFolder:
    """Writes one run, from several threads of one process. Readers use ``run_reader``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._sealing: Sealing | None = None
        self._created: set[str] = set()
        self._written: dict[str, WrittenTrace] = {}
        """Traces that no row names yet, by path."""
        self._rows_size: int | None = None
        """Size of the rows after the last append, bytes; None before the first."""
        self._pack: TracePack | None = None
        self._has_own_traces = True
        """Whether traces may have their own files."""
        self.other_isolation = ""
        """Isolation of new episodes, if it is not that of ``run.json``."""

    @classmethod
    def create(
        cls, path: Path, manifest: JsonObject, suite: Suite, signing: Signing | None = None
    ) -> RunFolder:
        """Create a run folder.

        Args:
            path: must not exist, be empty, or hold the remains of an interrupted creation.
            manifest: content of ``run.json``.
            suite: the tasks.
            signing: key and plan; None leaves the run unsigned.

        Raises:
            InputError: the path is not empty or cannot be written.
        """
        if path.exists() and not _is_partial(path):
            raise InputError(
                f"{path} is not empty: choose another --out, or run fumehood resume {path}"
            )
        folder = cls(path)
        frozen = freeze_suite(suite)
        if signing is not None:
            manifest = {**manifest, "signing_key": signing.key.public}
        manifest_text = json.dumps({"format": FORMAT, **manifest}, indent=2) + "\n"
        try:
            for private in (path, path / "traces", path / "output"):
                make_private_folder(private)
            write_whole(path / "suite.jsonl", frozen)
            if signing is not None:
                folder._sealing = Sealing(path, signing, str(manifest.get("run", "")))
                folder._sealing.seal_plan(
                    [digest_bytes(text.encode()) for text in (manifest_text, frozen)]
                )
            # run.json comes last, because its presence marks the folder as complete.
            write_whole(path / "run.json", manifest_text)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open an existing run folder.

        Raises:
            InputError: the path is not a run folder.
        """
        folder = cls(path)
        require_format(folder.manifest().get("format"), FORMAT, path / "run.json")
        return folder

    def require_signer(self, key: str) -> None:
        """Check who signed the run.

        Raises:
            InputError: the run is not signed, or not with this public key.
        """
        signing_key = self.manifest().get("signing_key")
        if signing_key is None:
            raise InputError(
                f"{self.path} is not signed, so its origin is unknown: start another run"
            )
        if signing_key != key:
            raise InputError(
                f"{self.path} is signed with another key, {signing_key}: "
                f"set {KEY_VARIABLE} to its file"
            )

    def sign_with(self, signing: Signing) -> None:
        """Sign new rows.

        Raises:
            InputError: the run is not signed, another key signed it, or its plan was changed.
        """
        self.require_signer(signing.key.public)
        self._sealing = Sealing(self.path, signing, str(self.manifest().get("run", "")))
        self._sealing.require_plan()

    def reopen(self) -> None:
        """Mark a finished signed run as unfinished, before it is changed."""
        if self._sealing is not None:
            with self._writing():
                self._sealing.reopen()

    def seal(self) -> list[SealedRow]:
        """Seal the run if it is signed and every episode has its row.

        Returns:
            The rows in the order in which they were written; none of an unsigned run.

        Raises:
            InfraError: another program removed or changed the rows, or the seal cannot be written.
        """
        if self._sealing is None:
            return []
        lines = row_lines(self.path)
        if self._rows_size not in (None, sum(map(len, lines))):
            raise self._changed_rows()
        rows = [SealedRow.from_json(json.loads(line), digest_bytes(line)) for line in lines]
        if not self._sealing.is_chain(rows):
            raise self._changed_rows()
        with self._writing():
            for folder in CASSETTE_FOLDERS:
                Cassette(self.path / folder).drop_unreferenced()
            self._sealing.seal_run(rows)
        return rows

    def _changed_rows(self) -> InfraError:
        return InfraError(
            f"{self.path / ROWS} was removed or changed by another program during the run; "
            f"run fumehood resume {self.path}"
        )

    def manifest(self) -> JsonObject:
        """Return the content of ``run.json``.

        Raises:
            InputError: it cannot be read.
        """
        try:
            manifest = json.loads(read_plain(self.path / "run.json"))
        except (OSError, ValueError, RecursionError):
            raise not_a_run(self.path) from None
        if not isinstance(manifest, dict):
            raise InputError(f"{self.path / 'run.json'}: must be an object")
        return manifest

    @cached_property
    def _isolation(self) -> str | None:
        isolation = self.manifest().get("isolation")
        return None if isolation is None else str(isolation)

    def rows(self) -> list[EpisodeRow]:
        """Return one row per episode, in the order in which episodes first finished.

        A later row replaces an earlier one of the same episode, which failed as infra. A torn last
        line is ignored.

        Raises:
            InputError: a row before the last cannot be read.
        """
        path = self.path / ROWS
        lines = row_lines(self.path)
        rows: dict[EpisodeName, EpisodeRow] = {}
        for number, line in enumerate(lines, 1):
            try:
                row = EpisodeRow.from_json(json.loads(line))
                rows[row.name] = row.replacing(rows.get(row.name))
            except UNREADABLE:
                if number == len(lines) and not line.endswith(b"\n"):
                    break
                raise InputError(f"{path}:{number} is not a row") from None
        return list(rows.values())

    def finished_rows(self) -> list[EpisodeRow]:
        """Return the rows without a trace, and those whose trace is complete and unchanged."""
        return [row for row in self.rows() if not row.trace or self._has_whole_trace(row)]

    def _has_whole_trace(self, row: EpisodeRow) -> bool:
        try:
            return verify_chain(self.read_trace(row)) == row.trace_digest
        except (InputError, BrokenTrace):
            return False

    def drop_torn_row(self) -> None:
        """Remove the last line of the rows if a crash has torn it."""
        path = self.path / ROWS
        if path.exists():
            content = path.read_bytes()
            if content and not content.endswith(b"\n"):
                write_whole(path, content[: content.rfind(b"\n") + 1].decode())

    def pack_traces(self) -> None:
        """Write the traces of further episodes into one file."""
        self._pack = TracePack(self.path)
        self._has_own_traces = any((self.path / "traces").iterdir())

    def append_rows(self, rows: Sequence[EpisodeRow]) -> None:
        """Append rows and flush them to the disk once.

        Raises:
            InfraError: they cannot be written; none of them is stored.
        """
        with self._lock, self._writing():
            for row in rows if self._has_own_traces else ():
                # A trace of an earlier attempt would belong to no row.
                if row.trace != (where := row.name.trace_path):
                    (self.path / where).unlink(missing_ok=True)
            if self._pack is not None:
                self._pack.write()
            if self._sealing is None:
                lines = [(canonical_json(row.to_json()) + "\n").encode("ascii") for row in rows]
            else:
                lines = self._sealing.row_lines(rows, self._written)
            content = b"".join(lines)
            self._rows_size = append_whole(self.path / ROWS, content, self._rows_size)
            if self._sealing is not None:
                self._sealing.continue_after(lines[-1])
            for row in rows:
                self._written.pop(row.trace, None)

    def write_trace(self, name: EpisodeName, records: Sequence[Record]) -> str:
        """Write a complete trace and return its path within the folder, or its part of the pack.

        A trace in the pack is written with the next rows.

        The first line also states the isolation of the agent, outside the hashed fields, because
        the digest must not depend on the engine. The file is not flushed to the disk, which would
        cost more than the episode: a power cut may tear it, and :meth:`finished_rows` then omits
        its episode.

        Raises:
            InfraError: the trace cannot be written; no part of it is stored.
        """
        lines = [record_line(record) for record in records]
        if lines:
            lines[0] = record_line(records[0], self.other_isolation or self._isolation)
        where, content = name.trace_path, "".join(lines).encode("ascii")
        if self._pack is not None:
            where = self._pack.add(content)
        else:
            path = f"{self.path}/{where}"
            with self._writing():
                self._create(os.path.dirname(path))
                write_or_remove(path, content)
        self._written[where] = WrittenTrace.of(content)
        return where

    def read_trace(self, row: EpisodeRow) -> list[Record]:
        """Return the trace of an episode.

        Raises:
            InputError: it is missing or is not a trace.
        """
        path = self.path / row.trace
        try:
            content = read_trace_content(self.path, row.trace)
        except OSError:
            raise InputError(f"{path} is not a readable trace") from None
        return parse_trace(path, content)

    def write_output(self, name: EpisodeName, stdout: bytes, stderr: bytes) -> None:
        """Write the output of the boxes, and remove that of an earlier attempt.

        Args:
            name: of the episode.
            stdout: standard output, capped.
            stderr: standard error, capped.

        Raises:
            InfraError: the output cannot be written.
        """
        with self._writing():
            for stream, content in (("stdout", stdout), ("stderr", stderr)):
                path = f"{self.path}/{name.output_path}.{stream}"
                if content:
                    self._create(os.path.dirname(path))
                    write_plain(Path(path), content)
                elif os.path.lexists(path):
                    os.unlink(path)

    def _create(self, path: str) -> None:
        if path not in self._created:
            if not self.path.is_dir():
                # Another program removed the run; a part of it would block another one there.
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
            make_private_folder(Path(path))
            self._created.add(path)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn a full disk or missing permissions into an ``InfraError``."""
        try:
            yield
        except OSError as error:
            raise InfraError(f"{self.path} cannot be written: {error.strerror}") from error


def _is_partial(path: Path) -> bool:
    """Return whether a folder holds only files that are created before ``run.json``."""
    if not path.is_dir():
        return False
    before = {"traces", "output", "suite.jsonl", "seal.json"}
    names = {entry.name.removesuffix(".partial") for entry in path.iterdir()}
    complete = (path / "run.json").exists()
    return not complete and names <= before | {"run.json"} and not any(path.glob("*/*"))


def parse_trace(path: Path, content: bytes) -> list[Record]:
    """Return the records of a trace with this content; the path is for messages.

    Raises:
        InputError: it is not a trace.
    """
    try:
        return [read_record(line) for line in content.decode("ascii").splitlines()]
    except UNREADABLE:
        raise InputError(f"{path} is not a readable trace") from None


def not_a_run(path: Path) -> InputError:
    """Return the error about a folder that is no run folder, but may contain some.

    An experiment has them in ``runs``, a reproduction in ``experiment/runs``.
    """
    found = (path.glob(f"{folder}runs/*/run.json") for folder in ("", "experiment/"))
    runs = sorted(manifest.parent for manifest in chain.from_iterable(found))
    if runs:
        number = f"{len(runs)} run folder{'' if len(runs) == 1 else 's'}"
        return InputError(
            f"{path} is not a run folder, but has {number}: name one, such as {runs[0]}"
        )
    reason = "it has no readable run.json" if path.exists() else "it does not exist"
    return InputError(f"{path} is not a run folder: {reason}")
