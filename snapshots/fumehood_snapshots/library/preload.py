"""Imports all modules that a library may need, before a process loses access to their files.

Some dependencies load modules or data on first use.
"""

from __future__ import annotations

import codecs
from importlib import import_module

ENCODINGS = (
    "ascii big5 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp866 cp949 euc_jp "
    "euc_kr gb18030 gbk iso2022_jp iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 "
    "iso8859-16 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 koi8-r "
    "koi8-u latin_1 mac-cyrillic mac-roman shift_jis utf-16 utf-16-be utf-16-le utf-8 utf-8-sig"
)
"""Encodings of the WHATWG Encoding Standard (section 4.2), by Python's names."""
MODULES = (
    "bm25s bm25s.scoring encodings.idna httpcore._backends.sync lxml.html orjson protego "
    "resiliparse.extract.html2text ssl trafilatura warcio.archiveiterator warcio.warcwriter "
    "zoneinfo fumehood_snapshots.library.environment fumehood_snapshots.library.reader "
    "fumehood_snapshots.web.robots"
)
WARM = (
    "<html><head><title>Warm</title></head><body><article><h1>Warm</h1>"
    "<p>Once is enough to load all of it.</p></article></body></html>"
)


def preload() -> None:
    """Import all modules and text codecs, and extract the text of one page.

    Raises:
        ModuleNotFoundError: the extra is not installed.
    """
    for name in MODULES.split():
        import_module(name)
    for name in ENCODINGS.split():
        codecs.lookup(name)
    from fumehood_snapshots.analysis.analyzer import Analyzer
    from fumehood_snapshots.analysis.spec import analysis_spec
    from fumehood_snapshots.extraction.main_text import EXTRACTORS
    from fumehood_snapshots.extraction.pages import extract_page

    for extractor in EXTRACTORS:
        extract_page(WARM.encode("ascii"), "text/html; charset=utf-8", extractor)
    Analyzer(analysis_spec()).terms("once")
