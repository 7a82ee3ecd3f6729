"""Reads the validation set of failure labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class LabelledEpisode:
    """One episode with both labels."""

    number: str
    benchmark: str
    behaviour: str
    first: str
    second: str
    decidable: bool
    """Whether rules can decide it: marked in advance, and both labels agree."""
    held_out: bool
    facts: dict[str, Any]


def labelled_episodes() -> list[LabelledEpisode]:
    """Return all episodes."""
    facts, firsts, seconds = (
        {line["id"]: line for line in _lines(name)} for name in ("episodes", "labels_a", "labels_b")
    )
    return [
        LabelledEpisode(
            number,
            first["benchmark"],
            first["behaviour"],
            first["label"],
            seconds[number]["label"],
            first["decidable"] and first["label"] == seconds[number]["label"],
            first["held_out"],
            facts[number],
        )
        for number, first in firsts.items()
    ]


def kappa(pairs: Sequence[tuple[str, str]]) -> float:
    """Return Cohen's kappa of two labels per item. Source: Cohen (1960), 20 Educ. Psychol. Meas."""
    firsts, seconds = (Counter(pair[index] for pair in pairs) for index in (0, 1))
    agreed = sum(first == second for first, second in pairs) / len(pairs)
    by_chance = sum(firsts[label] * seconds[label] for label in firsts) / len(pairs) ** 2
    return (agreed - by_chance) / (1 - by_chance)


def _lines(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
