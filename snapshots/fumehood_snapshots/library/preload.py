"""Imports all modules that a library may need, before a process loses access to their files.

Some dependencies load modules or data on first use.
"""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "bm25s",
    "bm25s.scoring",
    "encodings.idna",
    "encodings.latin_1",
    "httpcore._backends.sync",
    "lxml.html",
    "orjson",
    "protego",
    "resiliparse.extract.html2text",
    "fumehood_snapshots.library.environment",
    "fumehood_snapshots.library.reader",
    "fumehood_snapshots.web.robots",
    "ssl",
    "trafilatura",
    "warcio.archiveiterator",
    "warcio.warcwriter",
    "zoneinfo",
)
WARM = (
    "<html><head><title>Warm</title></head><body><article><h1>Warm</h1>"
    "<p>Once is enough to load all of it.</p></article></body></html>"
)


def preload() -> None:
    """Import all modules, and extract the text of one page.

    Raises:
        ModuleNotFoundError: the extra is not installed.
    """
    for name in MODULES:
        import_module(name)
    from fumehood_snapshots.analysis.analyzer import Analyzer
    from fumehood_snapshots.analysis.spec import analysis_spec
    from fumehood_snapshots.extraction.main_text import EXTRACTORS
    from fumehood_snapshots.extraction.pages import extract_page

    for extractor in EXTRACTORS:
        extract_page(WARM.encode("ascii"), "text/html; charset=utf-8", extractor)
    Analyzer(analysis_spec()).terms("once")
