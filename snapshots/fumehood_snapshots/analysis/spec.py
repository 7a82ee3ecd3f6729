"""Everything that decides how text becomes terms, by value, as the manifest stores it.

A search must cut a query exactly as the build cut the documents. So the manifest holds the pattern, the
stop words and the stemmer's name, and, because a stemmer is code and cannot be stored, what it made of a few
words: :func:`check_stemmer` refuses a library that would stem otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fumehood_snapshots.analysis.stop_words import stop_words
from fumehood_snapshots.errors import SnapshotInputError, SnapshotVersionError

WORD = r"[^\W_]+"
"""A run of letters and digits; an underscore separates, so that ``read_text`` is found by ``read text``."""

PROBE_WORDS = (
    "abilities", "adjustment", "arguing", "crying", "dying", "effective", "exceedingly", "fairly",
    "generously", "hopping", "inning", "knightly", "news", "operational", "proceed", "relational", "running",
    "skies", "triplicate", "university", "vietnamization", "yearly",
)  # fmt: skip
"""Words on which Porter's stemmer, its successor and known revisions of both differ."""


class AnalysisSpec(BaseModel):
    """How text is cut into terms; two equal ones cut every text alike."""

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
    """What the stemmer made of :data:`PROBE_WORDS`."""

    @field_validator("word_pattern")
    @classmethod
    def _is_the_one_known_pattern(cls, pattern: str) -> str:
        # A pattern of somebody else's making could take exponential time on a page.
        if pattern != WORD:
            raise ValueError(f"only {WORD} is known")
        return pattern


def analysis_spec(*, stop_word_list: str = "english", stemmer: str = "english") -> AnalysisSpec:
    """Return the spec for a build on this machine.

    Args:
        stop_word_list: see :func:`~fumehood_snapshots.analysis.stop_words.stop_words`.
        stemmer: a Snowball algorithm such as ``english`` (Porter's second) or ``porter``, or ``none``.

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
    """Return what stems one word.

    Raises:
        SnapshotInputError: no algorithm has that name.
    """
    if name == "none":
        return str
    import Stemmer

    if name not in Stemmer.algorithms():
        raise SnapshotInputError(
            f"no stemmer is called {name!r}; there are: none, {', '.join(Stemmer.algorithms())}"
        )
    # Words are remembered one level up; a second cache inside the library would only cost memory.
    stem: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord
    return stem


def check_stemmer(name: str, stems: Mapping[str, str]) -> None:
    """Refuse a stemming library that disagrees with the one a snapshot was built with.

    Raises:
        SnapshotVersionError: it does; the message names the first word.
    """
    stem = stem_function(name)
    for word, expected in stems.items():
        if stem(word) != expected:
            raise SnapshotVersionError(
                f"the stemmer {name!r} makes {stem(word)!r} of {word!r}, this snapshot was built with one "
                f"that made {expected!r}; install the PyStemmer release named in its manifest"
            )


_WORD = re.compile(WORD)
find_words = _WORD.findall
find_word_spans = _WORD.finditer
