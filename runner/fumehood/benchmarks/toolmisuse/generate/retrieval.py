"""Goals in the retrieval world: documents."""

from __future__ import annotations

from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.benchmarks.toolmisuse.generate.goal import PLACES, THINGS, TOPICS, Entity, Goal
from fumehood.core.json_values import Json, JsonObject

_GET = (
    "Fetch document {id}.",
    "Show me retrieval record {id}.",
    "Open the document with doc id {id}.",
    "I need document {id} for the {thing} review.",
    "Get document {id} from the collection.",
    "Please show the document with doc id {id}.",
)
_SEARCH = (
    "Case {number}: search for '{query}' and report the best match.",
    "Run document search for '{query}' and record it for case {number}.",
    "Find relevant notes on '{query}'; they belong to case {number}.",
    "For case {number}, please search the documents for '{query}'.",
    "Question on case {number}: search for '{query}'.",
    "Find relevant material about '{query}' for case {number}.",
)
"""Each text contains the number, because topics repeat."""

_INCIDENTS = 17
"""Number of incidents of a topic."""


def get_doc(entity: Entity, choices: SeededChoices) -> Goal:
    """Read one document."""
    name = f"d{entity.letter}{entity.number}"
    document: Json = {
        "id": name,
        "title": f"{choices.pick(THINGS)} report",
        "text": _prose(choices, 12),
    }
    return Goal(
        instruction=choices.pick(_GET).format(id=name, thing=choices.pick(THINGS)),
        state=_documents(entity, choices, document, ()),
        tool_name="get_doc",
        arguments={"doc_id": name},
        checks=(),
        output={"doc.id": name},
    )


def search_docs(entity: Entity, choices: SeededChoices) -> Goal:
    """Find the one document about an incident."""
    name, topic = f"d{entity.letter}{entity.number}", choices.pick(TOPICS)
    query = f"{topic} incident {entity.number % _INCIDENTS}"
    document: Json = {
        "id": name,
        "title": query,
        # The query occurs three times, so that this document ranks first.
        "text": (
            f"{query}: first seen at the {choices.pick(PLACES)}. "
            f"{query}: {_prose(choices, 8)}. {query}."
        ),
    }
    return Goal(
        instruction=choices.pick(_SEARCH).format(query=query, number=entity.number),
        state=_documents(entity, choices, document, topic.split()),
        tool_name="search_docs",
        arguments={"query": query, "top_k": 1},
        checks=(),
        output={"results.0.id": name},
    )


def _documents(
    entity: Entity, choices: SeededChoices, document: Json, hints: list[str] | tuple[str, ...]
) -> JsonObject:
    """Return a state with the document and others, which may share a word with the query."""
    documents: list[Json] = [document]
    for step in range(1, entity.rivals + 1):
        rival = f"d{entity.letter}{entity.number + step}"
        title = f"{choices.pick(hints or THINGS)} at the {choices.pick(PLACES)}"
        documents.append({"id": rival, "title": title, "text": _prose(choices, 12)})
    return {"docs": choices.shuffled(documents)}


def _prose(choices: SeededChoices, words: int) -> str:
    return " ".join(choices.pick((*THINGS, *PLACES)) for _ in range(words))
