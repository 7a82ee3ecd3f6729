"""An agent for lookups: it searches, opens the best pages, and answers with the best passage.

It uses no model, and is a baseline for models.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log

from fumehood_agent.adapter import Action, Answer, GiveUp
from fumehood_agent.observation import Entry, Observation
from fumehood_agent.seat import JsonObject

PAGES_OPENED = 3
PASSAGE_WORDS = 45
"""Longest passage that is given as an answer."""
QUERY_CHARS_MAX = 2000

_QUESTION = re.compile(r"Question:\s*(.+)", re.DOTALL)
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n+")
_COMMON_WORDS = (
    "a an and are as at be by do does for from has have how in is it its of on or say says that "
    "the this to "
    "was what when where which who why with without"
)
_COMMON = frozenset(_COMMON_WORDS.split())


class Searcher:
    """Searches once, opens the best pages, answers once."""

    def reset(self) -> None:
        """Do nothing: each observation contains the whole state."""

    def act(self, observation: Observation) -> Action | Answer | GiveUp:
        """Search first, then open pages, then answer."""
        if not {tool["name"] for tool in observation["tool_schemas"]} >= {"open_page", "search"}:
            return GiveUp("there is nothing to search in")
        question = question_of(observation["instruction"])
        searches = [entry for entry in observation["transcript"] if entry["tool_name"] == "search"]
        if not any(entry["output"] for entry in searches):
            if len(searches) > 1:
                return GiveUp("the search does not answer")
            return {"tool_name": "search", "args": {"query": question[:QUERY_CHARS_MAX]}}
        return _next_page(observation, searches) or _answer(observation, question)


def question_of(instruction: str) -> str:
    """Return the question of an instruction: the text after "Question:", or all of it."""
    asked = _QUESTION.search(instruction)
    return (asked[1] if asked else instruction).strip()


def _next_page(observation: Observation, searches: list[Entry]) -> Action | None:
    results = [
        result for entry in searches for result in (entry["output"] or {}).get("results", [])
    ]
    tried = {entry["args"].get("page") for entry in observation["transcript"]}
    for result in results[:PAGES_OPENED]:
        if result["id"] not in tried:
            return {"tool_name": "open_page", "args": {"page": result["id"]}}
    return None


def _answer(observation: Observation, question: str) -> Answer | GiveUp:
    pages = [
        entry["output"]
        for entry in observation["transcript"]
        if entry["tool_name"] == "open_page" and entry["output"]
    ]
    wanted = _terms(question)
    best = max(
        (
            (_worth(passage, wanted, pages), -rank, passage, page["id"])
            for rank, page in enumerate(pages)
            for passage in passages(page["text"])
        ),
        default=None,
    )
    if best is None:
        return GiveUp("no page could be opened")
    return Answer(f"{best[2]} [{best[3]}]")


def passages(text: str) -> Iterator[str]:
    """Yield neighbouring sentences of a text, at most ``PASSAGE_WORDS`` words together."""
    sentences = [sentence.split() for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    for start in range(len(sentences)):
        words: list[str] = []
        for sentence in sentences[start : start + 3]:
            if words and len(words) + len(sentence) > PASSAGE_WORDS:
                break
            words += sentence
        yield " ".join(words[:PASSAGE_WORDS])


def _worth(passage: str, wanted: set[str], pages: list[JsonObject]) -> float:
    """Return the sum of the rarities of the wanted words in a passage."""
    held = wanted & _terms(passage)
    spread = Counter(term for page in pages for term in wanted & _terms(page["text"]))
    return sum(log(1 + len(pages) / spread[term]) for term in sorted(held) if spread[term])


def _terms(text: str) -> set[str]:
    return {word[:6] for word in _WORD.findall(text.casefold()) if word not in _COMMON}
