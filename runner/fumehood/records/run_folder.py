"""A run on disk.

::

    run.json         what was run: frozen configuration, versions, digests; written once, first
    seal.json        what was to be run and what came of it, signed; written first and last
    suite.jsonl      the tasks with their gold, as they were
    episodes.jsonl   one row an episode, sealed; a row is written before its episode counts as done
    traces/          one trace an episode, sealed; written before its row
    output/          what each box printed, capped
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock

from fumehood.core.errors import InfraError, InputError
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.task import Suite
from fumehood.core.trace import BrokenTrace, Record, verify_chain
from fumehood.records.episode_name import EpisodeName
from fumehood.records.frozen_suite import freeze_suite, thaw_suite
from fumehood.records.plain_file import read_plain
from fumehood.records.row import EpisodeRow
from fumehood.records.signer import ROWS, UNREADABLE, Sealing, Signing, digest_bytes, row_lines
from fumehood.records.signing_key import KEY_VARIABLE
from fumehood.records.trace_line import record_from_json, record_line
from fumehood.records.whole_file import append_whole, write_or_remove, write_whole

FORMAT = "fumehood.run/1"


class RunFolder:
    """Reads and writes one run. Writing is safe from several threads of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._sealing: Sealing | None = None
        self._folders: set[Path] = set()
        """Made already."""

    @classmethod
    def create(
        cls, path: Path, manifest: JsonObject, suite: Suite, signing: Signing | None = None
    ) -> RunFolder:
        """Make a new run folder.

        Args:
            path: must not exist, be empty, or hold what was left of this very step when it was killed.
            manifest: what is run.
            suite: its tasks.
            signing: who signs it; None leaves it unsigned.

        Raises:
            InputError: something is there already, or it cannot be written.
        """
        if path.exists() and not _is_unborn(path):
            raise InputError(
                f"{path} is not empty: choose another --out, or go on with: fumehood resume {path}"
            )
        folder = cls(path)
        frozen = freeze_suite(suite)
        if signing is not None:
            manifest = {**manifest, "signing_key": signing.key.public}
        about = json.dumps({"format": FORMAT, **manifest}, indent=2) + "\n"
        try:
            (path / "traces").mkdir(parents=True, exist_ok=True)
            (path / "output").mkdir(exist_ok=True)
            write_whole(path / "suite.jsonl", frozen)
            if signing is not None:
                folder._sealing = Sealing(path, signing, str(manifest.get("run", "")))
                folder._sealing.seal_plan([digest_bytes(text.encode()) for text in (about, frozen)])
            # Last, because its presence says that the folder is whole.
            write_whole(path / "run.json", about)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open an existing run folder.

        Raises:
            InputError: it is none.
        """
        folder = cls(path)
        if folder.manifest().get("format") != FORMAT:
            raise InputError(f"{path / 'run.json'} is not of the format {FORMAT}")
        return folder

    def sign_with(self, signing: Signing) -> None:
        """Go on signing, where the folder is a signed one.

        Raises:
            InputError: somebody else signed it, or what is to be run was changed since.
        """
        manifest = self.manifest()
        key = manifest.get("signing_key")
        if key is None:
            return
        if key != signing.key.public:
            raise InputError(
                f"{self.path} is signed with another key, {key}; name that key's file with {KEY_VARIABLE}"
            )
        self._sealing = Sealing(self.path, signing, str(manifest.get("run", "")))
        self._sealing.require_plan()

    def reopen(self) -> None:
        """Make a run that was sealed as a whole one that is not over, before anything of it changes."""
        if self._sealing is not None:
            with self._writing():
                self._sealing.reopen()

    def seal(self) -> None:
        """Seal the run, where it is a signed one and every episode has its row."""
        if self._sealing is None:
            return
        names = {}
        for line in row_lines(self.path):
            names[EpisodeRow.from_json(json.loads(line)).name] = digest_bytes(line)
        with self._writing():
            self._sealing.seal_run(names)

    def manifest(self) -> JsonObject:
        """Return what was run.

        Raises:
            InputError: there is no readable run.json.
        """
        try:
            manifest = json.loads(read_plain(self.path / "run.json"))
        except (OSError, ValueError, RecursionError):
            raise InputError(
                f"{self.path} is not a run folder: it has no readable run.json"
            ) from None
        if not isinstance(manifest, dict):
            raise InputError(f"{self.path / 'run.json'} does not hold an object")
        return manifest

    @cached_property
    def _isolation(self) -> str | None:
        isolation = self.manifest().get("isolation")
        return None if isolation is None else str(isolation)

    def suite(self) -> Suite:
        """Return the tasks as they were run.

        Raises:
            InputError: they cannot be read.
        """
        try:
            lines = read_plain(self.path / "suite.jsonl").decode("ascii").splitlines()
        except (OSError, ValueError):
            raise InputError(f"{self.path / 'suite.jsonl'} cannot be read") from None
        return thaw_suite(str(self.manifest().get("suite", "")), lines)

    def rows(self) -> list[EpisodeRow]:
        """Return one row an episode, in the order in which episodes were first done.

        A later row replaces an earlier one of the same episode, which was a failure of ours. The last line
        may be torn, then it is left out.

        Raises:
            InputError: a row before the last cannot be read.
        """
        path = self.path / "episodes.jsonl"
        lines = row_lines(self.path)
        rows: dict[EpisodeName, EpisodeRow] = {}
        for number, line in enumerate(lines, 1):
            try:
                row = EpisodeRow.from_json(json.loads(line))
                rows[row.name] = row
            except UNREADABLE:
                if number == len(lines) and not line.endswith(b"\n"):
                    break
                raise InputError(f"{path}:{number} is not a row") from None
        return list(rows.values())

    def finished_rows(self) -> list[EpisodeRow]:
        """Return the rows whose traces are there as they were sealed."""
        return [row for row in self.rows() if not row.trace or self._has_whole_trace(row)]

    def _has_whole_trace(self, row: EpisodeRow) -> bool:
        try:
            return verify_chain(self.read_trace(row)) == row.trace_digest
        except (InputError, BrokenTrace):
            return False

    def drop_torn_row(self) -> None:
        """Cut off what a crash left of a row that was being written."""
        path = self.path / "episodes.jsonl"
        if path.exists():
            content = path.read_bytes()
            if content and not content.endswith(b"\n"):
                write_whole(path, content[: content.rfind(b"\n") + 1].decode())

    def append_row(self, row: EpisodeRow) -> None:
        """Write one row down for good; see :meth:`append_rows`."""
        self.append_rows([row])

    def append_rows(self, rows: Sequence[EpisodeRow]) -> None:
        """Write rows down for good, all of them at the cost of one.

        Raises:
            InfraError: they cannot be written; nothing of them is.
        """
        with self._lock, self._writing():
            for name in (row.name for row in rows if not row.trace):
                # What an attempt before left would be the trace of no episode.
                (self.path / name.trace_path).unlink(missing_ok=True)
            if self._sealing is None:
                lines = [(canonical_json(row.to_json()) + "\n").encode("ascii") for row in rows]
            else:
                lines = self._sealing.row_lines(rows)
            append_whole(self.path / ROWS, b"".join(lines))
            if self._sealing is not None:
                self._sealing.go_on_after(lines[-1])

    def write_trace(self, name: EpisodeName, records: Sequence[Record]) -> str:
        """Write a sealed trace and return where, relative to the folder.

        The first line also says how the agent was isolated, beside what is hashed: an engine may not show in
        a digest, and has to show in a trace. The file is not forced to the disk, which would cost more than
        the episode: after a power cut it may be torn, and :meth:`finished_rows` leaves it out.

        Raises:
            InfraError: it cannot be written; nothing of it is.
        """
        lines = [record_line(record) for record in records]
        if lines:
            lines[0] = record_line(records[0], self._isolation)
        where = name.trace_path
        path = self.path / where
        with self._writing():
            self._make_folder(path.parent)
            write_or_remove(path, "".join(lines))
        return where

    def read_trace(self, row: EpisodeRow) -> list[Record]:
        """Return the trace of an episode.

        Raises:
            InputError: it is missing or not a trace.
        """
        path = self.path / row.trace
        try:
            return [
                record_from_json(line) for line in read_plain(path).decode("ascii").splitlines()
            ]
        except UNREADABLE:
            raise InputError(f"{path} is not a readable trace") from None

    def write_output(self, name: EpisodeName, stdout: bytes, stderr: bytes) -> None:
        """Write down what a box printed, if anything; what an attempt before printed goes.

        Raises:
            InfraError: it cannot be written.
        """
        with self._writing():
            for stream, content in (("stdout", stdout), ("stderr", stderr)):
                path = f"{self.path}/{name.output_path}.{stream}"
                if content:
                    self._make_folder(Path(path).parent)
                    Path(path).write_bytes(content)
                elif os.path.lexists(path):
                    os.unlink(path)

    def outputs(self, name: EpisodeName) -> Iterator[Path]:
        """Yield the files that hold what the episode's box printed."""
        for stream in ("stdout", "stderr"):
            path = self.path / f"{name.output_path}.{stream}"
            if path.exists():
                yield path

    def _make_folder(self, path: Path) -> None:
        if path not in self._folders:
            path.mkdir(parents=True, exist_ok=True)
            self._folders.add(path)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say in our own words that there is no room, or no right to write."""
        try:
            yield
        except OSError as error:
            raise InfraError(f"{self.path} cannot be written: {error.strerror}") from error


def _is_unborn(path: Path) -> bool:
    """Tell whether nothing is in a folder but what is made before ``run.json``, which comes last."""
    if not path.is_dir():
        return False
    made_before = {"traces", "output", "suite.jsonl", "seal.json"}
    names = {entry.name.removesuffix(".partial") for entry in path.iterdir()}
    whole = (path / "run.json").exists()
    return not whole and names <= made_before | {"run.json"} and not any(path.glob("*/*"))
