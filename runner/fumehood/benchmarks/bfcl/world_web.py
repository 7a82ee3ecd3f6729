"""BFCL's unmodified tools for searches and pages, over the data source of the run.

Initial state: ``show_snippet``, and optionally ``snapshot`` as in the world ``search``. BFCL asks a
paid search service and fetches pages; here the library of the data source answers instead.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from fumehood.benchmarks.bfcl.imports import import_with
from fumehood.benchmarks.bfcl.package import WEB, class_documents
from fumehood.benchmarks.bfcl.world import SOURCES, Bfcl
from fumehood.core.episode_spec import DataSource
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import ToolCall, ToolResult
from fumehood.worlds import search
from fumehood.worlds.schema import reject
from fumehood.worlds.search import check_state, open_reader
from fumehood_snapshots.library.tools import K_MAX

if TYPE_CHECKING:
    from fumehood_snapshots.library.reader import LibraryReader

NAME = "WebSearchAPI"
RESULTS = 10
"""Default of ``max_results``. Source: the package's document of ``search_engine_query``."""
CONTENT_BYTES_MAX = 200_000
"""Size limit of the content of one page. BFCL has none."""
open_outside = search.open_outside
_ENVELOPE_BYTES = 100
"""Of a result beside the content."""


def preload() -> None:
    """Import the simulator, its document and the libraries, before the process is confined."""
    search.preload()
    _simulator()
    class_documents(NAME)


class BfclWeb(Bfcl):
    """The two tools. Their state does not change."""

    toolset_id = "bfcl_v4_web_search"

    def __init__(self, state: JsonObject) -> None:
        """Create the simulator.

        Raises:
            SpecError: The state is invalid.
            InputError: BFCL is not installed.
        """
        check_state(state)
        super().__init__(state)
        self._initial_state = state
        self._reader: LibraryReader | None = None

    @staticmethod
    def _create_objects(state: JsonObject) -> dict[str, Any]:
        if not isinstance(state.get("show_snippet"), bool):
            raise SpecError("initial_state.show_snippet", "must be true or false")
        simulator = _simulator()
        simulator._load_scenario(state)
        return {NAME: simulator}

    def attach_data_source(self, data_source: DataSource, session: str) -> None:
        """Open the data source.

        Raises:
            SpecError: The data source cannot be opened, or is not the snapshot that the state
                names.
            InputError: The optional libraries are not installed.
        """
        self._reader = open_reader(data_source, session, self._initial_state)

    def call(self, call: ToolCall) -> ToolResult:
        """Call the method; a search or page that the library refuses is a failure.

        Raises:
            SpecError: The data source is damaged.
        """
        if self._reader is None:
            return reject("not_found", "No documents are available.")
        from fumehood_snapshots.errors import Refusal, SnapshotError

        visit = _Visit(self._reader, call)
        token = _visit.set(visit)
        try:
            result = super().call(call)
        finally:
            _visit.reset(token)
        match visit.error:
            case Refusal() as refusal:
                return reject(refusal.code.value, str(refusal))
            case SnapshotError() as error:
                raise SpecError("data_source", str(error))
        return result


class _Visit:
    """The library during one call. The simulator hides exceptions, so the last one is kept."""

    def __init__(self, reader: LibraryReader, call: ToolCall) -> None:
        self.error: Exception | None = None
        self._reader = reader
        self._bytes_max = call.answer_bytes_max
        wanted = call.arguments.get("max_results", RESULTS)
        # The simulator selects the first results itself, for other values as Python's slices do.
        self._results = wanted if isinstance(wanted, int) and 1 <= wanted <= K_MAX else K_MAX

    def search(self, query: Any) -> JsonObject:
        try:
            found = self._reader.search(query, self._results, bytes_max=self._bytes_max)
        except Exception as error:
            self.error = error
            return {}
        names = {"title": "title", "link": "url", "snippet": "snippet"}
        rows: list[Json] = [
            {name: row[key] for name, key in names.items()} for row in found["results"]
        ]
        return {"organic_results": rows}

    def open(self, url: str) -> _PageText:
        try:
            page = self._reader.open_whole(url)
            source = page.text if page.source is None else page.source()
        except Exception as error:
            self.error = error
            raise
        limit = min(CONTENT_BYTES_MAX, self._bytes_max or CONTENT_BYTES_MAX) - _ENVELOPE_BYTES
        return _PageText(_beginning(source, limit), _beginning(page.text, limit))


class _PageText(str):
    """A page as it was served, with its extracted text."""

    extracted: str

    def __new__(cls, source: str, extracted: str) -> _PageText:
        text = super().__new__(cls, source)
        text.extracted = extracted
        return text


def _beginning(text: str, bytes_max: int) -> str:
    """Return as many of the first characters as JSON text of this size contains."""
    while (size := len(json.dumps(text, ensure_ascii=False).encode("utf-8"))) > bytes_max:
        text = text[: min(len(text) - 1, len(text) * max(bytes_max, 0) // size)]
    return text


_visit: ContextVar[_Visit] = ContextVar("visit")


class _Search:
    """Replaces the client of the search service."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self._query = parameters["q"]

    def get_dict(self) -> JsonObject:
        return _visit.get().search(self._query)


class _Extractor:
    """Replaces the two converters of HTML."""

    def __init__(self, page: _PageText | None = None, parser: str = "") -> None:
        self._page = page

    def handle(self, page: _PageText) -> str:
        return page.extracted

    def __call__(self, names: list[str]) -> list[Any]:
        return []

    def get_text(self, **_: Any) -> str:
        assert self._page is not None
        return self._page.extracted


def _get(url: str, **_: Any) -> SimpleNamespace:
    return SimpleNamespace(text=_visit.get().open(url), raise_for_status=lambda: None)


def _simulator() -> Any:
    replaced: dict[str, dict[str, Any]] = {
        "bs4": {"BeautifulSoup": _Extractor},
        "html2text": {"HTML2Text": _Extractor},
        "requests": {"get": _get},
        "serpapi": {"GoogleSearch": _Search},
    }
    return getattr(import_with(f"{SOURCES}.{WEB[NAME]}", replaced), NAME)()
