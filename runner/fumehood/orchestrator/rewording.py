"""Rewords instructions by rule, so that every variant demands the same.

The rules change greeting, politeness, contractions, synonyms of a fixed list, the layout of
sentences, the marks of lists, and the order of sentences that do not refer to each other. They
never change quoted texts, numbers, paths, identifiers, or values of the task. A change that would
alter one of these is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from random import Random

_PROTECTED = re.compile(
    r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w)"  # code and quotes
    r"|\{[^{}\n]*\}|\[[^\[\]\n]*\]|<[^<>\n]*>"
    r"|\S*[\d/\\@_]\S*|\b[A-Z]{2,}\b|\w+(?:[-.:]\w+)+",  # numbers, paths, identifiers
    re.DOTALL,
)
_BOTH_WAYS = (
    ("answer with", "reply with"),
    ("tell me", "let me know"),
    ("find out", "determine"),
    ("make sure that", "ensure that"),
    ("for example", "for instance"),
    ("if necessary", "if needed"),
    ("start with", "begin with"),
    ("do not change anything else", "change nothing else"),
    ("do not open any other", "open no other"),
    ("contains", "includes"),
    ("several", "multiple"),
)
_ONE_WAY = (
    ("until", "till"),
    ("requires", "needs"),
    ("currently", "at the moment"),
    ("immediately", "at once"),
    ("afterwards", "after that"),
    ("the entire", "the whole"),
)
"""Synonyms. The reverse of the last ones could have another meaning."""
_CONTRACTIONS = (
    ("do not", "don't"),
    ("does not", "doesn't"),
    ("cannot", "can't"),
    ("is not", "isn't"),
    ("are not", "aren't"),
    ("must not", "mustn't"),
    ("should not", "shouldn't"),
)
_GREETINGS = ("Hello,\n\n", "Hi.\n\n", "Good day.\n\n", "Here is your task.\n\n", "Task:\n")
_CLOSINGS = ("\n\nThank you.", "\n\nThanks in advance.", "\n\nMany thanks!", "\n\nBest regards")
_POLITE = ("Please ", "I need you to ", "I would like you to ", "Your job is to ")
_IMPERATIVE = re.compile(
    r"(Add|Approve|Assign|Buy|Cancel|Close|Create|Delete|Fill|Find|Get|Give|Install|Keep|Lend|Make"
    r"|Move|Pay|Put|Read|Register|Remove|Rename|Restart|Send|Write"
    r"|(?:Answer|Change|Check|Copy|Drain|Heat|List|Look|Open|Order|Pump|Record|Return|Search|Set"
    r"|Start|Stop|Switch|Transfer|Turn|Update|Use|Watch)"
    r"(?= (?:a|all|an|at|both|each|every|for|the)\b)) "
)
"""A request at the beginning. Before other words, the last verbs can be nouns: "Order o1 is late."
"""
_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z'\"])")
_BULLET = re.compile(r"^( *)[-*•] ", re.MULTILINE)
_INDEPENDENT = re.compile(r"(If|Do not|Don't|Never|Please do not) ")
_REFERS = re.compile(
    r"\b(above|after|afterwards|also|before|below|both|else|first|former|instead|it|its|latter|next"
    r"|other|otherwise|same|so|such|that|their|them|then|these|they|this|those)\b",
    re.IGNORECASE,
)
_TRIES = 20
"""Draws for a variant that differs from the earlier ones."""
_CHANGES = 3
"""Rules that change one variant, if so many apply."""


@lru_cache(maxsize=1024)
def variants(text: str, values: frozenset[str], key: str, count: int) -> tuple[str, ...]:
    """Return different wordings of an instruction, as far as the rules allow.

    Args:
        text: the instruction.
        values: texts that must not change, such as the values of the task's criteria.
        key: seed of the draws; equal arguments give equal texts.
        count: number of variants.
    """
    known = [text]
    for number in range(count):
        for salt in range(_TRIES):
            drawn = _reworded(text, values, Random(f"{key}/{number}/{salt}"))
            if drawn not in known:
                break
        known.append(drawn)
    return tuple(known[1:])


def values_in(text: str, *sources: object) -> frozenset[str]:
    """Return the texts, keys and numbers of JSON values that occur in a text as whole words."""
    leaves = {value for source in sources for value in _leaves(source) if value}
    return frozenset(value for value in leaves if value in text and _occurrences(value, text))


def _leaves(source: object) -> Iterator[str]:
    if isinstance(source, Mapping):
        for key, value in source.items():
            yield key
            yield from _leaves(value)
    elif isinstance(source, list | tuple):
        for item in source:
            yield from _leaves(item)
    elif isinstance(source, str | int | float) and not isinstance(source, bool):
        yield str(source)


def _reworded(text: str, values: Collection[str], random: Random) -> str:
    rules = [*random.sample(_WORDING, len(_WORDING)), *random.sample(_FRAME, len(_FRAME))]
    changes = 0
    current = text
    for rule in rules:
        changed = rule(current, random)
        if changed != current and _keeps(text, changed, values):
            current = changed
            changes += 1
            if changes == _CHANGES:
                break
    return current


def _keeps(text: str, changed: str, values: Collection[str]) -> bool:
    """Return whether a change leaves values and protected texts as they are."""
    return Counter(_PROTECTED.findall(text)) == Counter(_PROTECTED.findall(changed)) and all(
        _occurrences(value, text) == _occurrences(value, changed) for value in values
    )


def _occurrences(value: str, text: str) -> int:
    return len(re.findall(rf"(?<!\w){re.escape(value)}(?!\w)", text))


def _outside(text: str, change: Callable[[str], str]) -> str:
    """Return the text with a change of the parts that are not protected."""
    parts, at = [], 0
    for match in _PROTECTED.finditer(text):
        parts += [change(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*parts, change(text[at:])])


def _exchange(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Return the text with the first phrase of each pair replaced by the second."""
    for old, new in pairs:
        pattern = re.compile(rf"\b({old[0]}|{old[0].upper()}){re.escape(old[1:])}\b")
        text = _outside(text, partial(pattern.sub, partial(_cased, new)))
    return text


def _cased(text: str, match: re.Match[str]) -> str:
    return text[0].upper() + text[1:] if match[0][0].isupper() else text


def _drawn(pairs: Iterable[tuple[str, str]], random: Random) -> list[tuple[str, str]]:
    """Return each pair in a drawn direction."""
    return [(old, new) if random.random() < 0.5 else (new, old) for old, new in pairs]


def _use_synonyms(text: str, random: Random) -> str:
    return _exchange(text, [*_drawn(_BOTH_WAYS, random), *_ONE_WAY])


def _contract(text: str, random: Random) -> str:
    return _exchange(text, _drawn(_CONTRACTIONS, random))


def _greet(text: str, random: Random) -> str:
    return random.choice(_GREETINGS) + text


def _close(text: str, random: Random) -> str:
    return text + random.choice(_CLOSINGS)


def _ask_politely(text: str, random: Random) -> str:
    if _IMPERATIVE.match(text) is None:
        return text
    return f"{random.choice(_POLITE)}{text[0].lower()}{text[1:]}"


def _lay_out(text: str, random: Random) -> str:
    """Put each sentence of one paragraph on its own line."""
    sentences = _sentences(text)
    if "\n" in text or len(sentences) < 2:
        return text
    start, end = random.choice((("", "\n"), ("", "\n\n"), ("- ", "\n"), ("* ", "\n")))
    return end.join(f"{start}{sentence}" for sentence in sentences)


def _mark(text: str, random: Random) -> str:
    mark = random.choice("-*•")
    return _BULLET.sub(lambda match: f"{match[1]}{mark} ", text)


def _reorder(text: str, random: Random) -> str:
    """Exchange two neighbouring conditions or prohibitions that do not refer to other sentences."""
    if "\n" in text:
        return text
    sentences = _sentences(text)
    free = [
        bool(_INDEPENDENT.match(sentence)) and _REFERS.search(sentence) is None
        for sentence in sentences
    ]
    places = [at for at in range(len(free) - 1) if free[at] and free[at + 1]]
    if not places:
        return text
    at = random.choice(places)
    sentences[at : at + 2] = sentences[at + 1], sentences[at]
    return " ".join(sentences)


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text; protected texts are not divided."""
    inside = [match.span() for match in _PROTECTED.finditer(text)]
    sentences, at = [], 0
    for match in _SENTENCE_END.finditer(text):
        if not any(start < match.start() < end for start, end in inside):
            sentences.append(text[at : match.start()])
            at = match.end()
    return [*sentences, text[at:]]


_WORDING = (_ask_politely, _lay_out, _mark, _reorder, _use_synonyms, _contract)
_FRAME = (_greet, _close)
"""Tried last, because they apply to every text."""
