"""Extractors of a page's main text, by name.

``trafilatura`` is best on pages of the open web, ``resiliparse`` on reference documentation, where
it keeps code blocks and is ten times faster (``docs/decisions/0022_text_extraction.md``).
``whole-page`` takes all visible text, for pages that contain nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from fumehood_snapshots.errors import SnapshotInputError

DEFAULT = "trafilatura"


def main_text_extractor(name: str) -> Callable[[str], str]:
    """Return a function that converts HTML to its main text.

    Raises:
        SnapshotInputError: the name is unknown.
    """
    return _known(name)[0]


def extractor_release(name: str) -> str:
    """Return the name of an extractor and the release of its library, as a manifest records it.

    Raises:
        SnapshotInputError: the name is unknown.
    """
    from importlib.metadata import version

    library = _known(name)[1]
    return f"{name} ({library} {version(library)})"


def _known(name: str) -> tuple[Callable[[str], str], str]:
    if name not in EXTRACTORS:
        raise SnapshotInputError(f"unknown extractor {name!r}; available: {', '.join(EXTRACTORS)}")
    return EXTRACTORS[name]


def _trafilatura(html: str) -> str:
    import trafilatura

    return (
        trafilatura.extract(html, include_comments=False, include_tables=True, deduplicate=False)
        or ""
    )


def _resiliparse(html: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    text: str = extract_plain_text(html, main_content=True, alt_texts=False)
    return text


def _whole_page(html: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    text: str = extract_plain_text(html, main_content=False, alt_texts=False)
    return text


EXTRACTORS: dict[str, tuple[Callable[[str], str], str]] = {
    "resiliparse": (_resiliparse, "resiliparse"),
    "trafilatura": (_trafilatura, "trafilatura"),
    "whole-page": (_whole_page, "resiliparse"),
}
"""Name → function and library."""
