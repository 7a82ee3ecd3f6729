"""Options of a build, and presets of several options."""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.extraction.main_text import DEFAULT as DEFAULT_EXTRACTOR
from fumehood_snapshots.format.manifest import RankingSpec, SearchDefaults


class BuildOptions(BaseModel):
    """The options that determine the bytes of a snapshot, besides its inputs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "snapshot"
    extractor: str = DEFAULT_EXTRACTOR
    stop_word_list: str = "english"
    stemmer: str = "english"
    ranking: RankingSpec = RankingSpec()
    search: SearchDefaults = SearchDefaults()
    note: str = ""
    licences: tuple[str, ...] = ()


class Pace(BaseModel):
    """Options of the build process that do not change the result."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workers: int = Field(default=1, ge=1, le=256)
    chunk_items: int = Field(default=4096, ge=1)
    chunk_bytes: int = Field(default=32 * 1024 * 1024, ge=1)
    merge_postings: int = Field(default=2_000_000, ge=1)
    """Maximum number of postings sorted in memory."""


PROFILES: dict[str, dict[str, Any]] = {
    "standard": {},
    # UniACE (arXiv 2605.27898), section 7.1: NLTK's stop words, Porter's stemmer,
    # BM25Okapi with its library's defaults, five hits, snippets of 20,000 characters.
    "uniace": {
        "stop_word_list": "english-long",
        "stemmer": "porter",
        "ranking": RankingSpec(method="okapi", k1=1.5, b=0.75, epsilon=0.25),
        "search": SearchDefaults(k=5, snippet_chars=20_000),
    },
    # The same with separate term statistics per 20,000 documents, as in the original. Scores of
    # different shards are not comparable; use it for reproduction only.
    "uniace-sharded": {
        "stop_word_list": "english-long",
        "stemmer": "porter",
        "ranking": RankingSpec(
            method="okapi", k1=1.5, b=0.75, epsilon=0.25, shard_documents=20_000
        ),
        "search": SearchDefaults(k=5, snippet_chars=20_000),
    },
}


def profile(profile_name: str, /, **changes: Any) -> BuildOptions:
    """Return the options of a preset of :data:`PROFILES` with changes.

    Raises:
        SnapshotInputError: the name is unknown.
    """
    if profile_name not in PROFILES:
        raise SnapshotInputError(
            f"unknown profile {profile_name!r}; available: {', '.join(PROFILES)}"
        )
    return BuildOptions(**{**PROFILES[profile_name], **changes})


class Progress(Protocol):
    """Receives the progress of each stage."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report progress.

        Args:
            stage: name of the stage, such as ``"reading"``.
            done: finished bytes, chunks or terms.
            total: total in the same unit; None if unknown.
        """
        ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Ignore progress."""
