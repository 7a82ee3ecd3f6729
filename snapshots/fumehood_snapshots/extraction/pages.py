"""Extracts title and text by media type: HTML, Markdown, plain text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.message import Message

from fumehood_snapshots.extraction.main_text import main_text_extractor

HTML_TYPES = ("text/html", "application/xhtml+xml")
MARKDOWN_TYPES = ("text/markdown", "text/x-markdown")
TEXT_TYPES = ("text/plain", "application/json", "text/csv", "application/xml", "text/xml")
TITLE_CHARS_MAX = 300

NESTING_DEPTH_MAX = 2000
"""Four times the limit of browsers; none of 990 pages of the open web comes near."""

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)([^<>]*)")
_NEEDS_NO_END = frozenset({
    "area", "base", "body", "br", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html",
    "img", "input", "li", "link", "meta", "optgroup", "option", "p", "param", "path", "rp", "rt",
    "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr",
})  # fmt: skip
_HEADING = re.compile(r"^#\s+(.+?)\s*#*\s*$", re.MULTILINE)


def media_type_and_charset(content_type: str) -> tuple[str, str | None]:
    """Split a ``Content-Type`` into its lower-case media type and its charset, if it names one."""
    message = Message()
    message["content-type"] = content_type or "application/octet-stream"
    return message.get_content_type(), message.get_content_charset()


def extract_page(body: bytes, content_type: str, extractor: str) -> Extracted:
    """Return title and text of a page.

    Args:
        body: the page without content encodings.
        content_type: in the form of the HTTP header.
        extractor: name of the extractor for HTML.

    Raises:
        UnreadablePageError: it has another type, or contains no text.
    """
    try:
        extracted = _extracted(body, content_type, extractor)
    except UnreadablePageError:
        raise
    except Exception as error:  # A page must not end a build or an episode by crashing a parser.
        raise UnreadablePageError(f"{extractor} cannot read it: {type(error).__name__}") from error
    if not extracted.text.strip():
        raise UnreadablePageError("contains no text")
    return Extracted(clean(extracted.title).strip()[:TITLE_CHARS_MAX], clean(extracted.text))


def decode_page(body: bytes, content_type: str) -> str:
    """Return a page as text, in the encoding that its type or its HTML names.

    Args:
        body: the page without content encodings.
        content_type: in the form of the HTTP header.
    """
    media_type, charset = media_type_and_charset(content_type)
    return _decoded_html(body, charset) if media_type in HTML_TYPES else _decoded(body, charset)


def _extracted(body: bytes, content_type: str, extractor: str) -> Extracted:
    media_type, charset = media_type_and_charset(content_type)
    if media_type in HTML_TYPES:
        return _from_html(body, charset, extractor)
    if media_type in MARKDOWN_TYPES:
        return _from_markdown(_decoded(body, charset))
    if media_type in TEXT_TYPES:
        return _from_text(_decoded(body, charset))
    raise UnreadablePageError(f"{media_type} is not text; convert it to text first")


def clean(text: str) -> str:
    """Return ``text`` with lone surrogates replaced and line ends converted to newlines."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    if "\r" in text or "\f" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    return text


def _decoded_html(body: bytes, charset: str | None) -> str:
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    encoding = safe_encoding(charset) or detect_encoding(body, from_html_meta=True) or "utf-8"
    html: str = bytes_to_str(body, encoding, errors="replace")
    return html


def _from_html(body: bytes, charset: str | None, extractor: str) -> Extracted:
    from resiliparse.parse.html import HTMLTree

    html = _decoded_html(body, charset)
    if nesting_depth(html) > NESTING_DEPTH_MAX:
        raise UnreadablePageError(
            f"its elements are nested more than {NESTING_DEPTH_MAX} levels deep"
        )
    return Extracted(HTMLTree.parse(html).title or "", main_text_extractor(extractor)(html))


def safe_encoding(charset: str | None) -> str | None:
    """Return the HTML5 text encoding for a charset; None for other codecs."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    return map_encoding_to_html5(charset, fallback_utf8=False) if charset else None


def nesting_depth(html: str) -> int:
    """Return the approximate nesting depth, at least that of elements which must be closed.

    Parsers take at least quadratic time on pages that only open elements.
    """
    depth = deepest = 0
    for closing, name, rest in _TAG.findall(html):
        if rest.endswith("/") or name.lower() in _NEEDS_NO_END:
            continue
        depth = max(0, depth - 1) if closing else depth + 1
        deepest = max(deepest, depth)
    return deepest


def _from_markdown(text: str) -> Extracted:
    heading = _HEADING.search(text)
    return Extracted(heading.group(1) if heading else _first_line(text), text)


def _from_text(text: str) -> Extracted:
    return Extracted(_first_line(text), text)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _decoded(body: bytes, charset: str | None) -> str:
    return body.decode(safe_encoding(charset) or "utf-8-sig", "replace").removeprefix("\ufeff")


@dataclass(frozen=True, slots=True)
class Extracted:
    """Title and text of a page."""

    title: str
    text: str


class UnreadablePageError(Exception):
    """A page yields no document. Builds list it; live fetches report it."""
