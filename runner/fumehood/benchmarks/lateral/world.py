"""A host answers questions about a puzzle with yes, no or irrelevant.

A seat plays the host, or a rule does. Source of the game: ``src/server/tasks/ltp/task.py`` of
AgentBench's branch v0.2.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from fumehood.core.conversation import Handover
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject, tool

AGENT, HOST = "agent", "host"
RULE, SEAT = "rule", "seat"
ROUNDS = 25
"""Limit of the original's configuration."""
YES, NO, IRRELEVANT = "yes", "no", "irrelevant"
INVALID_PHRASES = (
    *(f"{new} {what}" for new in ("new", "other") for what in ("story", "game", "question")),
    "other round",
    "new round",
    "Great job",
    "further question",
)
"""A question with one of them asks for another game."""
WARNINGS_PER_INVALID, WARNINGS_MAX = 2, 5
RIDDLE_OVERLAP_MAX = 0.85
HIT_SHARE, YES_SHARE = 0.8, 0.5
"""Of the words of a key point. The rule's own bounds."""
OWN_SHARE = 0.5
"""More than this share of the words of a question must belong to the key point, so that a list of
guesses hits nothing."""
INVALID_HINT = "Guess the truth of this riddle. Ask a question that has the answer yes or no."
RIDDLE_HINT = "The riddle says so already. Ask another question."
BRIEFING = """\
Question: {question}
Confirmed facts: {known}
Confirmed facts since the last key point, with this question, may contain one of these key points:
{keys}
Call reply once, then submit your answer to the player: Yes, No or Irrelevant."""
_STOP_WORDS = re.compile(
    r"\b(?:an?|and|are|as|at|be|been|but|by|did|do|does|for|from|had|has|have|he|her|him|his|i|if|in"
    r"|is|its?|not|of|on|or|she|so|that|the|their|them|there|they|this|to|was|were|who|with|you)\b"
)
_DENIAL = re.compile(
    r"\b(?:cannot|false|incorrect|neither|never|no(?:body|n|ne|r|t|thing|where)?|untrue|without|wrong)\b"
    r"|n['\u2019]t\b"
)
_ALTERNATIVE = re.compile(r"\bor\b")
_TOOLS = (
    tool(
        "reply",
        "Judge the player's question: the answer (yes, no or irrelevant), the fact that it confirms"
        " in one sentence, and the number of the key point that the facts now contain, or 0.",
        answer="string",
        statement="string",
        key_point="integer",
    ),
)


class LateralThinking:
    """A game; it is its own turn policy.

    State: ``riddle``, ``truth``, ``riddle_keys``, ``keys``, ``host`` (``rule`` or ``seat``) and
    ``rounds``. Later also ``game``.
    """

    toolset_id = "lateral_thinking_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: key points are not texts, or the host is unknown.
        """
        for name in ("riddle_keys", "keys"):
            texts = state.get(name, [])
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise SpecError(f"initial_state.{name}", "must be a list of texts")
        if state.get("host", RULE) not in (RULE, SEAT):
            raise SpecError("initial_state.host", f"must be {RULE} or {SEAT}")
        self.state: dict[str, Any] = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tool of the host."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Record how the host judges the question."""
        game = self.state.get("game", {})
        # JSON Schema accepts 1.0 as an integer.
        answer, key_point = call.arguments["answer"], int(call.arguments["key_point"])  # type: ignore[arg-type]
        if not game.get("question"):
            return reject("no_question", "There is no question.")
        if answer not in (YES, NO, IRRELEVANT):
            return reject("invalid_answer", "The answer must be yes, no or irrelevant.")
        numbers = self._eligible(game) if answer != IRRELEVANT else {}
        if key_point != 0 and key_point not in numbers:
            return reject("invalid_key_point", "This number is not in the list.")
        game["verdict"] = {**call.arguments, "key_point": key_point}
        self.revision += 1
        return Value({"recorded": answer})

    def first_turn(self) -> Handover:
        """Return the player's first turn."""
        self.state["game"] = {
            **dict.fromkeys(("round", "yes", "relevant", "warnings"), 0),
            **{"finish_round": None, "question": None, "verdict": None},
            **{"facts": [], "recent": [], "hits": [], "left": list(self.state.get("keys", []))},
        }
        self.revision += 1
        return Handover(AGENT, "")

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Return the turn of the host or the player; None when the game is over."""
        game = self.state["game"]
        self.revision += 1
        if seat == HOST:
            return self._replied(game, game["verdict"] or _read_answer(text, game), text)
        if not text:
            return None
        game["round"] += 1
        # All line separators, because a question with one could add a line to the briefing.
        question = next(iter(text.splitlines()), "").strip()
        hint = self._hint(game, question)
        if hint:
            return None if game["warnings"] >= WARNINGS_MAX else self._back(game, hint)
        game.update(question=question, verdict=None)
        if self.state.get("host", RULE) == SEAT:
            keys = "\n".join(f"{number}. {key}" for number, key in self._eligible(game).items())
            known = " ".join(game["facts"]) or "none"
            return Handover(HOST, BRIEFING.format(question=question, known=known, keys=keys or "-"))
        verdict = self._judge(game)
        return self._replied(game, verdict, verdict["answer"].capitalize() + ".")

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the game, which needs all seats."""
        return None

    def _hint(self, game: dict[str, Any], question: str) -> str | None:
        if any(phrase in question for phrase in INVALID_PHRASES):
            game["warnings"] += WARNINGS_PER_INVALID
            return INVALID_HINT
        return RIDDLE_HINT if repeats(self.state.get("riddle_keys", []), question) else None

    def _eligible(self, game: dict[str, Any]) -> dict[int, str]:
        """Return the open key points that are not longer than the question, by number."""
        length = len(game["question"].replace("?", ""))
        return {at: key for at, key in enumerate(game["left"], start=1) if len(key) <= length}

    def _judge(self, game: dict[str, Any]) -> dict[str, Any]:
        """Return the verdict of the rule of key points."""
        verdict = {"answer": IRRELEVANT, "statement": game["question"], "key_point": 0}
        keys = [key for key in self.state.get("keys", []) if _states(game["question"], key)]
        question = words(game["question"])
        if any(len(question & words(key)) >= YES_SHARE * len(words(key)) for key in keys):
            verdict["answer"] = YES
            stated = question | words(*game["recent"])
            for number, text in self._eligible(game).items():
                key = words(text)
                if text in keys and len(stated & key) >= HIT_SHARE * len(key):
                    return {**verdict, "key_point": number}
        return verdict

    def _replied(self, game: dict[str, Any], verdict: dict[str, Any], text: str) -> Handover | None:
        game["yes"] += verdict["answer"] == YES
        if verdict["answer"] != IRRELEVANT:
            game["relevant"] += 1
            game["facts"].append(verdict["statement"])
            game["recent"].append(verdict["statement"])
            if verdict["key_point"]:
                key = game["left"].pop(verdict["key_point"] - 1)
                game["hits"].append({"key": key, "facts": game["recent"]})
                game["recent"] = []
            # The original counts a game as finished when half of the key points are hit.
            count = self.state.get("key_count", len(self.state.get("keys", [])))
            if game["finish_round"] is None and 2 * len(game["hits"]) >= count:
                game["finish_round"] = game["round"]
        game.update(question=None, verdict=None)
        return self._back(game, text or verdict["answer"])

    def _back(self, game: dict[str, Any], text: str) -> Handover | None:
        is_over = game["round"] >= self.state.get("rounds", ROUNDS)
        return None if is_over else Handover(AGENT, text)


def _read_answer(text: str, game: dict[str, Any]) -> dict[str, Json]:
    """Return the verdict of a host that called no tool: its answer as the original reads it."""
    word = text.strip()[:3]
    answer = YES if word in ("Yes", "yes") else NO if word[:2] in ("No", "no") else IRRELEVANT
    statement = game["question"] if answer == YES else f"It is not so: {game['question']}"
    return {"answer": answer, "statement": statement, "key_point": 0}


def words(*texts: str) -> set[str]:
    """Return the content words of English texts."""
    return set(re.findall(r"[a-z0-9]+", _STOP_WORDS.sub(" ", " ".join(texts).lower())))


def _states(question: str, key: str) -> bool:
    """Return whether most words of a question belong to a key point, and it denies and names
    alternatives exactly as the key point does."""
    asked = words(question)
    return len(asked & words(key)) > OWN_SHARE * len(asked) and _form(question) == _form(key)


def _form(text: str) -> tuple[bool, bool]:
    """Return whether a text denies what it says, and whether it names alternatives."""
    lower = text.lower()
    is_odd = len(_DENIAL.findall(lower)) % 2 == 1
    return is_odd, _ALTERNATIVE.search(lower) is not None


def repeats(riddle_keys: list[str], question: str) -> bool:
    """Return whether the original takes a question for a key point of the riddle."""
    return any(overlap(key, question.replace("?", ".")) > RIDDLE_OVERLAP_MAX for key in riddle_keys)


def overlap(reference: str, text: str) -> float:
    """Return BLEU-1 of characters: the original passes texts, not words, to ``sentence_bleu``."""
    common = (Counter(text) & Counter(reference)).total()
    if not common:
        return 0.0
    brevity = 1.0 if len(text) > len(reference) else math.exp(1 - len(reference) / len(text))
    return brevity * math.exp(math.log(common / len(text)))
