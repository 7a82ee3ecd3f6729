"""Documents generated from a seed, with a Zipf distribution of words and log-normal lengths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SEED = 20_260_131
VOCABULARY = 60_000
MEDIAN_WORDS = 180
SYLLABLES = "ka lo mi ren tu sa vor ple qui den ash or bin tal fe gro".split()  # noqa: SIM905
ENDINGS = ("", "s", "ing", "ed", "")


def vocabulary() -> list[str]:
    """Return words of two to four syllables, some with endings that a stemmer takes off."""
    words = []
    for number in range(VOCABULARY):
        word, rest = "", number + len(SYLLABLES)
        while rest:
            rest, syllable = divmod(rest, len(SYLLABLES))
            word += SYLLABLES[syllable]
        words.append(word + ENDINGS[number % len(ENDINGS)])
    return words


def texts(count: int) -> Iterator[str]:
    """Yield so many documents, the same each time."""
    chance = np.random.default_rng(SEED)
    words = np.array(vocabulary(), dtype=object)
    weights = 1 / np.arange(3, VOCABULARY + 3)
    cumulated = np.cumsum(weights / weights.sum())
    for _ in range(count):
        length = 5 + int(chance.lognormal(np.log(MEDIAN_WORDS), 0.5))
        picked = np.searchsorted(cumulated, chance.random(length))
        yield " ".join(words[np.minimum(picked, VOCABULARY - 1)])


def write_corpus(folder: Path, count: int) -> Path:
    """Write the documents as JSON lines, unless they are there already."""
    path = folder / f"corpus-{count}.jsonl"
    if not path.exists():
        partial = path.with_suffix(".part")
        with partial.open("w", encoding="utf-8") as stream:
            for number, text in enumerate(texts(count)):
                stream.write(json.dumps({"id": f"d{number:08d}", "text": text}) + "\n")
        partial.rename(path)
    return path


def read_texts(path: Path) -> list[str]:
    """Return all texts of a corpus."""
    with path.open(encoding="utf-8") as stream:
        return [json.loads(line)["text"] for line in stream]


def queries(path: Path, count: int) -> list[str]:
    """Return queries of five words each, every one taken from one of the first documents."""
    chance = np.random.default_rng(SEED + 1)
    queries = []
    with path.open(encoding="utf-8") as stream:
        for _, line in zip(range(count), stream, strict=False):
            words = json.loads(line)["text"].split()
            queries.append(" ".join(chance.choice(words, size=5)))
    return queries
