"""What a build is told, and the profiles that say several things at once."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.extraction.main_text import DEFAULT as DEFAULT_EXTRACTOR
from fumehood_snapshots.format.manifest import RankingSpec, SearchDefaults


class BuildOptions(BaseModel):
    """Everything that decides the bytes of a snapshot, apart from its inputs."""

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
    """How a build works; nothing here changes a byte of what it makes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workers: int = Field(default=1, ge=1, le=256)
    chunk_items: int = Field(default=4096, ge=1)
    chunk_bytes: int = Field(default=32 * 1024 * 1024, ge=1)
    merge_postings: int = Field(default=2_000_000, ge=1)
    """So many postings are sorted in memory at a time."""


PROFILES: dict[str, dict[str, Any]] = {
    "standard": {},
    # Section 7.1 of the description of UniACE (arXiv 2605.27898): NLTK's stop words, Porter's stemmer,
    # BM25Okapi with its library's defaults, five hits, snippets of 20,000 characters.
    "uniace": {
        "stop_word_list": "english-long",
        "stemmer": "porter",
        "ranking": RankingSpec(method="okapi", k1=1.5, b=0.75, epsilon=0.25),
        "search": SearchDefaults(k=5, snippet_chars=20_000),
    },
    # The same with term statistics of each 20,000 documents apart, as there. Scores of different shards are
    # then not comparable; it is here to reproduce, not to recommend.
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
    """Return the options of a profile with some of them changed.

    Args:
        profile_name: one of :data:`PROFILES`.
        changes: fields of :class:`BuildOptions`.

    Raises:
        SnapshotInputError: there is no such profile.
    """
    if profile_name not in PROFILES:
        raise SnapshotInputError(
            f"no profile is called {profile_name!r}; there are: {', '.join(PROFILES)}"
        )
    return BuildOptions(**{**PROFILES[profile_name], **changes})
