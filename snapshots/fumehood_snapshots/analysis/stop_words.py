"""Lists of stop words by name; a snapshot stores the words themselves, names only matter to a build."""

from __future__ import annotations

from fumehood_snapshots.errors import SnapshotInputError

NAMES = ("english", "english-long", "none")


def stop_words(name: str) -> tuple[str, ...]:
    """Return a list of stop words, sorted.

    Args:
        name: ``english`` is Lucene's list of 33; ``english-long`` the list of 179 that NLTK's users know;
            ``none`` is empty.

    Raises:
        SnapshotInputError: there is no list of that name.
    """
    from bm25s import stopwords

    lists: dict[str, tuple[str, ...]] = {
        "english": stopwords.STOPWORDS_EN,
        "english-long": stopwords.STOPWORDS_EN_PLUS,
        "none": (),
    }
    if name not in lists:
        raise SnapshotInputError(
            f"no list of stop words is called {name!r}; there are: {', '.join(NAMES)}"
        )
    return tuple(sorted(lists[name]))
