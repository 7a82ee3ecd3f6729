"""A run on disk.

::

    run.json         what was run: frozen configuration, versions, digests; written once, first
    suite.jsonl      the tasks with their gold, as they were
    episodes.jsonl   one row an episode; a row is written before its episode counts as done
    traces/          one trace an episode, sealed; written before its row
    output/          what each box printed, capped
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock

from runner.core.chain import Record
from runner.core.errors import InputError
from runner.core.json_values import Json, JsonObject, canonical_json
from runner.core.task import Suite
from runner.records.episode_name import EpisodeName
from runner.records.frozen_suite import freeze_suite, thaw_suite
from runner.records.row import EpisodeRow

FORMAT = "glovebox.run/1"


class RunFolder:
    """Reads and writes one run. Writing is safe from several threads of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()

    @classmethod
    def create(cls, path: Path, manifest: JsonObject, suite: Suite) -> RunFolder:
        """Make a new run folder.

        Args:
            path: must not exist, or be empty.
            manifest: what is run.
            suite: its tasks.

        Raises:
            InputError: something is there already, or it cannot be written.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(
                f"{path} is not empty: choose another --out, or go on with: glovebox resume {path}"
            )
        folder = cls(path)
        try:
            (path / "traces").mkdir(parents=True)
            (path / "output").mkdir()
            (path / "suite.jsonl").write_text(freeze_suite(suite), encoding="ascii")
            # Last, because its presence says that the folder is whole.
            _write_whole(path / "run.json", json.dumps({"format": FORMAT, **manifest}, indent=2) + "\n")
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

    def manifest(self) -> JsonObject:
        """Return what was run.

        Raises:
            InputError: there is no readable run.json.
        """
        try:
            manifest = json.loads((self.path / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise InputError(f"{self.path} is not a run folder: it has no readable run.json") from None
        if not isinstance(manifest, dict):
            raise InputError(f"{self.path / 'run.json'} does not hold an object")
        return manifest

    @cached_property
    def _isolation(self) -> Json:
        return self.manifest().get("isolation")

    def suite(self) -> Suite:
        """Return the tasks as they were run.

        Raises:
            InputError: they cannot be read.
        """
        try:
            lines = (self.path / "suite.jsonl").read_text(encoding="ascii").splitlines()
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
        if not path.exists():
            return []
        lines = path.read_bytes().splitlines(keepends=True)
        rows: dict[EpisodeName, EpisodeRow] = {}
        for number, line in enumerate(lines, 1):
            try:
                row = EpisodeRow.from_json(json.loads(line))
                rows[row.name] = row
            except (KeyError, TypeError, ValueError):
                if number == len(lines) and not line.endswith(b"\n"):
                    break
                raise InputError(f"{path}:{number} is not a row") from None
        return list(rows.values())

    def drop_torn_row(self) -> None:
        """Cut off what a crash left of a row that was being written."""
        path = self.path / "episodes.jsonl"
        if path.exists():
            content = path.read_bytes()
            if content and not content.endswith(b"\n"):
                _write_whole(path, content[: content.rfind(b"\n") + 1].decode())

    def append_row(self, row: EpisodeRow) -> None:
        """Write a row down for good."""
        line = canonical_json(row.to_json()) + "\n"
        with self._lock, (self.path / "episodes.jsonl").open("ab") as rows:
            rows.write(line.encode("ascii"))
            rows.flush()
            os.fsync(rows.fileno())

    def write_trace(self, name: EpisodeName, records: Sequence[Record]) -> str:
        """Write a sealed trace and return where, relative to the folder.

        The first line also says how the agent was isolated, beside what is hashed: an engine may not show in
        a digest, and has to show in a trace.
        """
        lines = [_record_to_json(record) for record in records]
        if lines:
            lines[0]["isolation"] = self._isolation
        path = self.path / name.trace_path
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, "".join(f"{canonical_json(line)}\n" for line in lines))
        return name.trace_path

    def read_trace(self, row: EpisodeRow) -> list[Record]:
        """Return the trace of an episode.

        Raises:
            InputError: it is missing or not a trace.
        """
        path = self.path / row.trace
        try:
            return [_record_from_json(line) for line in path.read_text(encoding="ascii").splitlines()]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{path} is not a readable trace") from None

    def write_output(self, name: EpisodeName, stdout: bytes, stderr: bytes) -> None:
        """Write down what a box printed, if anything."""
        for stream, content in (("stdout", stdout), ("stderr", stderr)):
            if content:
                path = self.path / f"{name.output_path}.{stream}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    def outputs(self, name: EpisodeName) -> Iterator[Path]:
        """Yield the files that hold what the episode's box printed."""
        for stream in ("stdout", "stderr"):
            path = self.path / f"{name.output_path}.{stream}"
            if path.exists():
                yield path


def _write_whole(path: Path, content: str) -> None:
    """Write so that the file is there whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _record_to_json(record: Record) -> JsonObject:
    return {
        "event": json.loads(record.event_json),
        "hash": record.hash,
        "wall_ms": record.wall_ms,
        "duration_us": record.duration_us,
    }


def _record_from_json(line: str) -> Record:
    value = json.loads(line)
    return Record(canonical_json(value["event"]), value["hash"], value["wall_ms"], value["duration_us"])
