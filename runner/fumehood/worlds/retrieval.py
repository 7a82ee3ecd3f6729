"""A list of documents with search and fetch (docs/reference/toolmisuse.md, Worlds)."""

from __future__ import annotations

from collections.abc import Mapping

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject, tool

_TOOLS = (
    tool(
        "search_docs",
        "Find documents that contain the words of the query.",
        query="string",
        top_k="integer",
    ),
    tool("get_doc", "Read one document.", doc_id="string"),
)


class Retrieval:
    """State: ``docs``, a list of objects with ``id``, ``title`` and ``text``; empty if absent."""

    toolset_id = "retrieval_v1"

    def __init__(self, state: JsonObject) -> None:
        """Use ``state`` as the state of the world.

        Raises:
            SpecError: ``docs`` is there and is not a list of objects.
        """
        docs = state.get("docs", [])
        if not isinstance(docs, list):
            raise SpecError("initial_state.docs", "must be a list of documents")
        for position, doc in enumerate(docs):
            if not isinstance(doc, dict):
                raise SpecError(f"initial_state.docs[{position}]", "must be an object")
        self.state = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the two tools."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call with valid arguments."""
        if call.tool_name == "search_docs":
            return self._search(call.arguments)
        return self._get(call.arguments["doc_id"])

    def _docs(self) -> list[JsonObject]:
        if "docs" not in self.state:
            self.state["docs"] = []
            self.revision += 1
        docs = self.state["docs"]
        assert isinstance(docs, list)
        return [doc for doc in docs if isinstance(doc, dict)]

    def _search(self, arguments: Mapping[str, Json]) -> ToolResult:
        # JSON Schema accepts 3.0 as an integer; the reference accepts true.
        count = max(1, int(arguments["top_k"]))  # type: ignore[arg-type]
        terms = str(arguments["query"]).strip().lower().split()
        scored = [(_score(doc, terms), doc) for doc in self._docs()]
        try:
            scored.sort(key=lambda pair: (-pair[0], pair[1].get("id", "")))
        except TypeError:
            raise SpecError(
                "initial_state.docs", "ids of equally good documents cannot be ordered"
            ) from None
        # The reference takes the best top_k first and then removes documents with score 0.
        results: list[Json] = [
            {"id": copy_json(doc.get("id")), "title": copy_json(doc.get("title")), "score": score}
            for score, doc in scored[:count]
            if score > 0
        ]
        return Value({"results": results})

    def _get(self, doc_id: Json) -> ToolResult:
        for doc in self._docs():
            if doc.get("id") == doc_id:
                return Value({"doc": copy_json(doc)})
        return reject("not_found", "Document not found.")


def _score(doc: JsonObject, terms: list[str]) -> int:
    # An absent part is empty; null is searched as the word "none", as in the reference.
    text = f"{doc.get('title', '')} {doc.get('text', '')}".lower()
    return sum(text.count(term) for term in terms)
