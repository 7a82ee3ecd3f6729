"""What an episode of a run is called, and where its files lie."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def file_name(name: str) -> str:
    """Return ``name`` if it can be a file's name anywhere, else a readable stand-in that is its own.

    The stand-in ends in a digest of the name, so two names never share a file.
    """
    if _SAFE.fullmatch(name) and not name.endswith("."):
        return name
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] or "x"
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}~{digest}"


@dataclass(frozen=True, slots=True)
class EpisodeName:
    """One attempt: agent × task × trial. The same in every run of the same plan, on any machine."""

    agent: str
    """The agent's label in this run."""
    task: str
    trial: int
    """From 0."""

    def __str__(self) -> str:
        """For people: where agents or tasks have slashes in their names, two episodes may read the same."""
        return f"{self.agent}/{self.task}/{self.trial}"

    @property
    def identifier(self) -> str:
        """A text that no other episode of the run has."""
        return f"{file_name(self.agent)}/{file_name(self.task)}/{self.trial}"

    @property
    def trace_path(self) -> str:
        """Of the trace, within the run folder."""
        return f"traces/{self._stem}.jsonl"

    @property
    def output_path(self) -> str:
        """Of what the box printed, within the run folder, without the name of the stream."""
        return f"output/{self._stem}"

    @property
    def cassette_path(self) -> str:
        """Of what its models were asked and answered, within the run folder, where that is kept there."""
        return f"cassette/episodes/{file_name(self.identifier)}.jsonl"

    @property
    def judge_path(self) -> str:
        """Of what the judge was asked about it and answered, within the run folder."""
        return f"judge/episodes/{file_name(self.identifier)}.jsonl"

    @property
    def _stem(self) -> str:
        return f"{file_name(self.agent)}/{file_name(self.task)}.{self.trial}"
