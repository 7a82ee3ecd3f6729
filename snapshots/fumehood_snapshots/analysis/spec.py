"""The complete analysis settings, by value, as the manifest stores them.

A search must split a query exactly as the build split the documents. The manifest therefore holds
the word pattern, the stop words and the stemmer's name. A stemmer is code and cannot be stored, so
the manifest also holds its results for some words; :func:`check_stemmer` refuses a library that
gives other results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fumehood_snapshots.errors import SnapshotInputError, SnapshotVersionError

WORD = r"[^\W_]+"
"""A run of letters and digits. An underscore separates words: ``read text`` finds ``read_text``."""

PROBE_WORDS = (
    "abilities", "adjustment", "arguing", "crying", "dying", "effective", "exceedingly", "fairly",
    "generously", "hopping", "inning", "knightly", "news", "operational", "proceed", "relational",
    "running", "skies", "triplicate", "university", "vietnamization", "yearly",
)  # fmt: skip
"""Words for which Porter's stemmer, its successor and their revisions give different stems."""


class AnalysisSpec(BaseModel):
    """How text is split into terms; equal specs split every text equally."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    normal_form: str = "NFKC"
    lowercase: bool = True
    word_pattern: str = WORD
    term_chars_max: int = Field(default=64, ge=1, le=1024)
    """Longer words, such as base64 blobs, are not indexed."""
    stop_words: tuple[str, ...] = ()
    stemmer: str = "none"
    """A Snowball algorithm, or ``none``."""
    stems: dict[str, str] = Field(default_factory=dict)
    """The stems of :data:`PROBE_WORDS`."""

    @field_validator("word_pattern")
    @classmethod
    def _is_the_one_known_pattern(cls, pattern: str) -> str:
        # A foreign pattern could take exponential time on a page.
        if pattern != WORD:
            raise ValueError(f"must be {WORD}")
        return pattern


def analysis_spec(*, stop_word_list: str = "english", stemmer: str = "english") -> AnalysisSpec:
    """Return the spec for a build on this machine.

    The stemmer is a Snowball algorithm, such as ``english`` (Porter's second), or ``none``.

    Raises:
        SnapshotInputError: one of the names is unknown.
    """
    stem = stem_function(stemmer)
    return AnalysisSpec(
        stop_words=stop_words(stop_word_list),
        stemmer=stemmer,
        stems={} if stemmer == "none" else {word: stem(word) for word in PROBE_WORDS},
    )


def stem_function(name: str) -> Callable[[str], str]:
    """Return a function that stems one word.

    Raises:
        SnapshotInputError: no algorithm has that name.
    """
    if name == "none":
        return str
    import Stemmer

    if name not in Stemmer.algorithms():
        raise SnapshotInputError(
            f"unknown stemmer {name!r}; available: none, {', '.join(Stemmer.algorithms())}"
        )
    # The analyzer caches words; a second cache in the library would only use memory.
    stem: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord
    return stem


def check_stemmer(name: str, stems: Mapping[str, str]) -> None:
    """Refuse a stemming library that differs from the one that built a snapshot.

    Raises:
        SnapshotVersionError: it differs; the message names the first word.
    """
    stem = stem_function(name)
    for word, expected in stems.items():
        if stem(word) != expected:
            raise SnapshotVersionError(
                f"the stemmer {name!r} gives {stem(word)!r} for {word!r}, "
                f"but this snapshot was built with {expected!r}; "
                "install the PyStemmer release named in its manifest"
            )


_WORD = re.compile(WORD)
find_words = _WORD.findall
find_word_spans = _WORD.finditer

NAMES = ("english", "english-long", "none")


def stop_words(name: str) -> tuple[str, ...]:
    """Return a list of stop words, sorted.

    ``english`` is Lucene's list of 33 words, ``english-long`` NLTK's of 179, ``none`` is empty.

    Raises:
        SnapshotInputError: the name is unknown.
    """
    from bm25s import stopwords

    lists: dict[str, tuple[str, ...]] = {
        "english": stopwords.STOPWORDS_EN,
        "english-long": stopwords.STOPWORDS_EN_PLUS,
        "none": (),
    }
    if name not in lists:
        raise SnapshotInputError(
            f"unknown list of stop words {name!r}; available: {', '.join(NAMES)}"
        )
    return tuple(sorted(lists[name]))
