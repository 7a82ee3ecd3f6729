"""Recorded model exchanges of a run, for replaying the run without models.

::

    episodes/AGENT-TASK-TRIAL.jsonl   one exchange per line, with digests instead of bodies
    bodies/SHA256                     requests and responses; equal bodies are stored once

A cassette belongs to the plan of its run: exchanges are found by the name of their episode.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from threading import get_ident

from fumehood.core.errors import InputError
from fumehood.core.trace import ModelExchange
from fumehood.records.files import make_private_folder, read_plain, write_plain, write_whole
from fumehood.records.row import file_name

_BODIES = ("request", "response")
CASSETTE_FOLDERS = ("cassette", "judge")
"""Folders of a run that hold exchanges: of its agents, and of its judge."""


class Cassette:
    """A folder of exchanges. Safe to use from several threads for different episodes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, episode_id: str, exchanges: Sequence[ModelExchange]) -> None:
        """Keep an episode's exchanges; replaces those of an earlier attempt."""
        for folder in (self._path, self._path / "episodes", self._path / "bodies"):
            make_private_folder(folder)
        lines = [json.dumps(self._to_json(exchange)) + "\n" for exchange in exchanges]
        write_whole(self._file(episode_id), "".join(lines))

    def read(self, episode_id: str) -> tuple[ModelExchange, ...]:
        """Return an episode's exchanges; none if it was not recorded.

        Raises:
            InputError: a body is missing or was changed.
        """
        try:
            text = read_plain(self._file(episode_id)).decode("ascii")
        except FileNotFoundError:
            return ()
        return tuple(self._from_json(json.loads(line)) for line in text.splitlines())

    def drop(self, episode_id: str) -> None:
        """Forget the exchanges of an earlier attempt."""
        self._file(episode_id).unlink(missing_ok=True)

    def size_bytes(self) -> int:
        """Return the size of all bodies."""
        bodies = self._path / "bodies"
        return sum(path.lstat().st_size for path in bodies.iterdir()) if bodies.is_dir() else 0

    def referenced(self) -> set[str]:
        """Return the names of the bodies that an exchange refers to.

        Raises:
            OSError, KeyError, TypeError, ValueError: a file is no list of exchanges.
        """
        names: set[str] = set()
        for path in sorted((self._path / "episodes").glob("*.jsonl")):
            for line in read_plain(path).decode("ascii").splitlines():
                exchange = json.loads(line)
                names.update(str(exchange[name]) for name in _BODIES)
        return names

    def drop_unreferenced(self) -> None:
        """Remove the bodies that only replaced attempts used, and unfinished ones."""
        bodies = self._path / "bodies"
        if bodies.is_dir():
            referenced = self.referenced()
            for path in bodies.iterdir():
                if path.name not in referenced:
                    path.unlink()

    def _file(self, episode_id: str) -> Path:
        return self._path / "episodes" / f"{file_name(episode_id)}.jsonl"

    def _to_json(self, exchange: ModelExchange) -> dict[str, object]:
        fields = asdict(exchange)
        return fields | {name: self._keep(fields[name]) for name in _BODIES}

    def _from_json(self, fields: dict[str, object]) -> ModelExchange:
        bodies = {name: self._read_body(str(fields[name])) for name in _BODIES}
        return ModelExchange(**{**fields, **bodies})  # type: ignore[arg-type]

    def _keep(self, body: bytes) -> str:
        digest = sha256(body).hexdigest()
        path = self._path / "bodies" / digest
        if not path.exists():
            # Two episodes may keep the same body at once.
            partial = path.with_name(f"{digest}.{get_ident()}.partial")
            write_plain(partial, body)
            partial.replace(path)
        return digest

    def _read_body(self, digest: str) -> bytes:
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
