"""The installed documentation as a source: one document per section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fumehood_snapshots.captures.capture import Capture
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.format.manifest import InputEntry
from fumehood_snapshots.sources.folder import Folder
from fumehood_snapshots.sources.pages import PageItem
from fumehood_snapshots.sources.source import Item

PACKAGE = "python3.11-doc"
INSTALLED = Path("/usr/share/doc/python3.11/html")
PUBLISHED = "https://docs.python.org/3.11/"
LICENCE = (
    "Python documentation, Python Software Foundation License 2.0 (examples: Zero-Clause BSD); "
    "see /usr/share/doc/python3.11/copyright"
)
FOLDERS = "c-api extending faq howto library reference tutorial using whatsnew"
SECTION_CHARS_MIN = 80
"""Sections with less text are skipped."""
PERMALINK_SIGN = "¶"

_PERMALINK = re.compile(r'<a class="headerlink"[^>]*>[^<]*</a>')
_TAG = re.compile(r"<[^>]*>")


class PythonDocs:
    """The HTML of one installation; each section of the first two levels becomes a document."""

    def __init__(self, root: Path = INSTALLED) -> None:
        """Store the folder.

        Raises:
            SnapshotInputError: the package is not installed.
        """
        if not (root / "library" / "json.html").is_file():
            raise SnapshotInputError(
                f"{root} contains no Python documentation; run: apt-get install {PACKAGE}"
            )
        self._root = root

    def entry(self) -> InputEntry:
        """Return the manifest entry: one hash over the pages."""
        return Folder(self._root).entry().model_copy(update={"kind": "python-doc", "name": PACKAGE})

    def items(self) -> Iterator[Item]:
        """Yield the sections page by page."""
        for folder in FOLDERS.split():
            for path in sorted((self._root / folder).rglob("*.html")):
                yield from page_sections(path.read_bytes(), path.relative_to(self._root).as_posix())


def page_sections(body: bytes, relative: str) -> Iterator[PageItem]:
    """Yield the sections of one page: second-level sections, then the rest of the first level.

    ``body`` is HTML as Sphinx writes it.
    """
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse_from_bytes(body)
    whole = tree.body.query_selector(".body section[id]") if tree.body is not None else None
    if whole is None:
        return
    page = relative.removesuffix(".html")
    page_title = _heading(whole)
    # Cut from the text, because changing the parsed tree takes ten times as long.
    left = _without_permalinks(whole.html)
    for section in whole.query_selector_all("section[id]"):
        if section.parent != whole:
            continue
        html = _without_permalinks(section.html)
        left = left.replace(html, "", 1)
        title = f"{page_title}: {_heading(section)}"
        yield from _section(html, f"{page}#{section.id}", f"{relative}#{section.id}", title)
    yield from _section(left, page, relative, page_title)


def _section(html: str, identity: str, relative: str, title: str) -> Iterator[PageItem]:
    if len(_TAG.sub("", html).strip()) < SECTION_CHARS_MIN:
        return
    url = PUBLISHED + relative
    yield PageItem(
        where=relative,
        id=identity,
        url=url,
        title=title,
        capture=Capture(
            uri=url,
            fetched_at="",
            body=f"<html><body><main>{html}</main></body></html>".encode(),
            content_type="text/html; charset=utf-8",
        ),
        fields={"part": identity.partition("/")[0]},
    )


def _without_permalinks(html: str) -> str:
    return _PERMALINK.sub("", html)


def _heading(section: Any) -> str:
    heading = section.query_selector("h1, h2, h3")
    return (
        " ".join(heading.text.removesuffix(PERMALINK_SIGN).split()) if heading is not None else ""
    )
