"""Pages give title and text, or a reason."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fumehood_snapshots.extraction.main_text import EXTRACTORS, extractor_release
from fumehood_snapshots.extraction.pages import UnreadablePageError, extract_page, nesting_depth

ARTICLE = """<html><head><title>Owls &amp; mice</title><style>p {}</style></head><body>
<nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<article><h1>Owls</h1><p>An owl is a bird of the night, and it hunts mice in the dark.</p>
<p>It sees well in the dark. <script>track()</script>It hears even better than it sees,
they say.</p>
</article>
<footer>Copyright, cookies and other notices</footer></body></html>"""


@pytest.mark.parametrize("extractor", sorted(EXTRACTORS.keys() - {"whole-page"}))
def test_the_main_text_is_kept_and_the_rest_dropped(extractor: str) -> None:
    found = extract_page(ARTICLE.encode(), "text/html", extractor)
    assert found.title == "Owls & mice"
    assert "hunts mice in the dark" in found.text
    assert "hears even better" in found.text
    for dropped in ("track()", "About us", "cookies", "<p>"):
        assert dropped not in found.text


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html; charset=iso-8859-1", ARTICLE.replace("owl", "öwl").encode("latin-1")),
        (
            "text/html",
            ARTICLE.replace("owl", "öwl")
            .replace("<head>", "<head><meta charset=cp1252>")
            .encode("cp1252"),
        ),
        ("text/html; charset=klingon", ARTICLE.replace("owl", "öwl").encode()),
        ("TEXT/HTML", ARTICLE.replace("owl", "öwl").encode("utf-8-sig")),
    ],
    ids=["said by the server", "said by the page", "said wrongly", "not said"],
)
def test_a_page_is_read_in_its_encoding(content_type: str, body: bytes) -> None:
    assert "An öwl is" in extract_page(body, content_type, "resiliparse").text


READ_WITHOUT_FILES = """
import json, resource, sys
from fumehood_snapshots.extraction.pages import UnreadablePageError, extract_page
from fumehood_snapshots.library.preload import preload

pages = [(bytes.fromhex(body), content_type) for body, content_type in json.load(sys.stdin)]
preload()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
read = []
for body, content_type in pages:
    for extractor in ("resiliparse", "trafilatura"):
        try:
            read.append(extract_page(body, content_type, extractor).text)
        except UnreadablePageError as error:
            read.append(f"unreadable: {error}")
print(json.dumps(read))
"""


WORDS = {
    "windows-1252": "Bäume",
    "iso-8859-2": "dąb",
    "windows-1251": "дуб",
    "koi8-r": "дуб",
    "iso-8859-7": "δρυς",
    "shift_jis": "樹木",
    "euc-jp": "樹木",
    "iso-2022-jp": "樹木",
    "gb18030": "树木",
    "big5": "樹木",
    "euc-kr": "나무",
    "utf-16le": "дуб",
}
"""Encoding → a word in it."""


@pytest.mark.slow
def test_a_process_that_can_open_no_file_reads_pages_in_all_encodings() -> None:
    pages, expected = [], []
    for charset, word in WORDS.items():
        html = ARTICLE.replace("An owl is", f"{word} An owl is")
        with_meta = html.replace("<head>", f'<head><meta charset="{charset}">')
        broken = html.encode(charset)[:-1] + b"\xff\xfe\x80"
        pages += [
            (html.encode(charset), f"text/html; charset={charset}"),
            (html.encode(charset), f"text/plain; charset={charset}"),
            (broken, f"text/html; charset={charset}"),
            (broken, "text/html; charset=no-such-encoding"),
        ]
        expected += [f"{word} An owl is"] * 4 + [""] * 4
        if charset != "utf-16le":  # The HTML standard reads such a declaration as UTF-8.
            pages.append((with_meta.encode(charset), "text/html"))
            expected += [f"{word} An owl is"] * 2
    finished = subprocess.run(
        [sys.executable, "-c", READ_WITHOUT_FILES],
        input=json.dumps([(body.hex(), content_type) for body, content_type in pages]),
        capture_output=True,
        text=True,
        check=True,
    )
    read = json.loads(finished.stdout)
    assert [
        text for text, part in zip(read, expected, strict=True) if not text or part not in text
    ] == []


@pytest.mark.parametrize("charset", ["zip", "unicode_escape", "punycode", "utf-7", "hex"])
def test_a_server_cannot_select_a_codec_that_is_not_a_text_encoding(charset: str) -> None:
    assert (
        extract_page(rb"plain \x41", f"text/plain; charset={charset}", "resiliparse").text
        == r"plain \x41"
    )


@pytest.mark.parametrize(
    ("content_type", "body", "title"),
    [
        ("text/markdown", b"intro\n\n# The title #\n\ntext", "The title"),
        ("text/markdown", b"no heading\ntext", "no heading"),
        ("text/plain", b"\n  First line\nsecond\fpage two", "First line"),
        ("text/plain", "\ufeffwith a mark".encode(), "with a mark"),
    ],
)
def test_plain_text_is_kept_unchanged(content_type: str, body: bytes, title: str) -> None:
    found = extract_page(body, content_type, "trafilatura")
    assert found.title == title
    assert found.text == body.decode("utf-8-sig").replace("\f", "\n")


@pytest.mark.parametrize(
    ("content_type", "body", "reason"),
    [
        ("image/png", b"\x89PNG", "image/png is not text"),
        ("", b"anything", "application/octet-stream is not text"),
        ("application/pdf", b"%PDF-1.7", "application/pdf is not text"),
        ("text/html", b"<html></html>", "contains no text"),
        ("text/plain", b" \n", "contains no text"),
        ("text/html", b"<div>" * 5000 + b"deep", "nested more than"),
    ],
)
def test_a_page_without_a_document_has_a_reason(
    content_type: str, body: bytes, reason: str
) -> None:
    for extractor in EXTRACTORS:
        with pytest.raises(UnreadablePageError, match=reason):
            extract_page(body, content_type, extractor)


def test_nesting_depth_counts_elements_with_end_tags() -> None:
    assert nesting_depth("<div><p>one<p>two<br><img src=x><span>x</span></div>") == 2
    assert nesting_depth("</div></div><div><svg><circle/><circle/></svg></div>") == 2


def test_an_extractor_is_recorded_with_its_release() -> None:
    assert extractor_release("trafilatura").startswith("trafilatura (trafilatura 2.")


def test_the_whole_page_extractor_keeps_all_visible_text() -> None:
    text = extract_page(ARTICLE.encode(), "text/html", "whole-page").text
    assert "About us" in text
    assert "track()" not in text
