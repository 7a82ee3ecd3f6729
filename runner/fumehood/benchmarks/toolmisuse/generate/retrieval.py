"""Goals over a shelf of documents."""

from __future__ import annotations

from fumehood.benchmarks.seeded_choices import Draws
from fumehood.benchmarks.toolmisuse.generate.goal import Entity, Goal
from fumehood.benchmarks.toolmisuse.generate.words import PLACES, THINGS, TOPICS
from fumehood.core.json_values import Json, JsonObject

_GET = (
    "Fetch document {id}.",
    "Show me retrieval record {id}.",
    "Open the document with doc id {id}.",
    "I need document {id} for the {thing} review.",
    "Pull document {id} from the shelf.",
    "Bring up doc id {id}, please.",
)
_SEARCH = (
    "Case {number}: search for '{query}' and report the best match.",
    "Run document search for '{query}' and file it under case {number}.",
    "Find relevant notes on '{query}'; they belong to case {number}.",
    "For case {number}, please search the shelf for '{query}'.",
    "Somebody asked about case {number}: search for '{query}'.",
    "Find relevant material about '{query}' for case {number}.",
)
"""With the number, because topics recur."""

_INCIDENTS = 17
"""How many incidents a topic has had."""


def get_doc(entity: Entity, draws: Draws) -> Goal:
    """Read one document."""
    name = f"d{entity.letter}{entity.number}"
    document: Json = {
        "id": name,
        "title": f"{draws.pick(THINGS)} report",
        "text": _prose(draws, 12),
    }
    return Goal(
        instruction=draws.pick(_GET).format(id=name, thing=draws.pick(THINGS)),
        state=_shelf(entity, draws, document, ()),
        tool_name="get_doc",
        arguments={"doc_id": name},
        checks=(),
        output={"doc.id": name},
    )


def search_docs(entity: Entity, draws: Draws) -> Goal:
    """Find the one document about an incident."""
    name, topic = f"d{entity.letter}{entity.number}", draws.pick(TOPICS)
    query = f"{topic} incident {entity.number % _INCIDENTS}"
    document: Json = {
        "id": name,
        "title": query,
        # Said three times, so that no other document has as many of the words.
        "text": f"{query}: first seen at the {draws.pick(PLACES)}. {query}: {_prose(draws, 8)}. {query}.",
    }
    return Goal(
        instruction=draws.pick(_SEARCH).format(query=query, number=entity.number),
        state=_shelf(entity, draws, document, topic.split()),
        tool_name="search_docs",
        arguments={"query": query, "top_k": 1},
        checks=(),
        output={"results.0.id": name},
    )


def _shelf(
    entity: Entity, draws: Draws, document: Json, hints: list[str] | tuple[str, ...]
) -> JsonObject:
    """Return a state with the document among others, which may share a word with what is searched."""
    shelf: list[Json] = [document]
    for step in range(1, entity.rivals + 1):
        rival = f"d{entity.letter}{entity.number + step}"
        title = f"{draws.pick(hints or THINGS)} at the {draws.pick(PLACES)}"
        shelf.append({"id": rival, "title": title, "text": _prose(draws, 12)})
    return {"docs": draws.shuffled(shelf)}


def _prose(draws: Draws, words: int) -> str:
    return " ".join(draws.pick((*THINGS, *PLACES)) for _ in range(words))
