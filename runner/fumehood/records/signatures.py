"""What is said and signed about a run: of every row, and of all of it.

A row's seal covers the row, the files that belong to it, and the row before it. The run's seal covers what
was to be run, in order, and once all of it is done also every row. Knows nothing about keys on disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fumehood.core.json_values import Json, JsonObject
from fumehood.records.episode_name import EpisodeName
from fumehood.records.signing_key import SigningKey, is_signed_by

ROW_FORMAT = "fumehood.row/1"
RUN_FORMAT = "fumehood.seal/1"


@dataclass(frozen=True, slots=True)
class SealedFile:
    """A file of the run folder, as it was when it was sealed."""

    path: str
    """Relative to the folder."""
    sha256: str

    def to_json(self) -> JsonObject:
        """Return it as one JSON object."""
        return {"path": self.path, "sha256": self.sha256}


def seal_row(
    row: JsonObject,
    key: SigningKey,
    *,
    run: str,
    after: str,
    records: int,
    files: Sequence[SealedFile],
) -> JsonObject:
    """Return a row with its seal.

    Args:
        row: as it would stand without one.
        key: signs.
        run: which run it is of.
        after: SHA-256 of the line before it, in hex; zeros for the first.
        records: of the trace, its seal included; 0 where there is none.
        files: that belong to the row.
    """
    seal: JsonObject = {
        "after": after,
        "records": records,
        "files": [file.to_json() for file in files],
    }
    signature = key.sign(_row_statement({**row, "seal": seal}, run))
    return {**row, "seal": {**seal, "signature": signature}}


def row_is_signed(row: JsonObject, run: str, public: str) -> bool:
    """Tell whether the seal of a row was made of this very row by the key with this public half."""
    seal = row.get("seal")
    if not isinstance(seal, dict):
        return False
    unsigned = {name: value for name, value in seal.items() if name != "signature"}
    statement = _row_statement({**row, "seal": unsigned}, run)
    return is_signed_by(public, statement, seal.get("signature"))


def _row_statement(row: JsonObject, run: str) -> JsonObject:
    return {"format": ROW_FORMAT, "run": run, "row": row}


@dataclass(frozen=True, slots=True)
class SealedEpisode:
    """An episode that was to be run."""

    name: EpisodeName
    row: str
    """SHA-256 of its line in ``episodes.jsonl``; empty while the run is not over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeal:
    """What is sealed of a whole run."""

    run: str
    key: str
    """The public half of the key that signs, 64 hex digits."""
    files: tuple[SealedFile, ...]
    episodes: tuple[SealedEpisode, ...]
    """In the order of the plan."""

    @property
    def is_final(self) -> bool:
        """True when every episode has its row."""
        return all(one.row for one in self.episodes)

    def statement(self) -> JsonObject:
        """Return what is signed."""
        return {
            "format": RUN_FORMAT,
            "run": self.run,
            "key": self.key,
            "files": [file.to_json() for file in self.files],
            "episodes": [_episode_to_json(one) for one in self.episodes],
        }

    def signed(self, key: SigningKey) -> JsonObject:
        """Return the seal with its signature."""
        return {**self.statement(), "signature": key.sign(self.statement())}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RunSeal:
        """Return the seal in what :meth:`signed` returned; whether it was signed is another question.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        return cls(
            run=str(value["run"]),
            key=str(value["key"]),
            files=tuple(sealed_files(value["files"])),
            episodes=tuple(
                SealedEpisode(
                    EpisodeName(str(one["agent"]), str(one["task"]), int(one["trial"])),
                    str(one["row"]),
                )
                for one in value["episodes"]
            ),
        )


def sealed_files(value: Json) -> list[SealedFile]:
    """Return the files that a seal names.

    Raises:
        KeyError, TypeError: it names none in a way that can be read.
    """
    if not isinstance(value, list):
        raise TypeError("files are a list")
    return [
        SealedFile(str(one["path"]), str(one["sha256"])) for one in value if isinstance(one, dict)
    ]


def _episode_to_json(one: SealedEpisode) -> JsonObject:
    name = one.name
    return {"agent": name.agent, "task": name.task, "trial": name.trial, "row": one.row}
