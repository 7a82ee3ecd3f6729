"""Reads the validation set of failure labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fumehood.core.evidence import read_evidence
from fumehood.core.outcome import Infra, outcome_from_json
from fumehood.core.score import UNGRADED, Score
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.report.results import Result, TaskFacts
from fumehood.report.statistics.failures import attribute

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


def labelled_by_rules(episode: LabelledEpisode) -> str:
    """Return the primary label that the rules assign to the stored facts."""
    facts = episode.facts
    outcome = outcome_from_json(facts["outcome"])
    score = UNGRADED if isinstance(outcome, Infra) else Score(False, facts["checks"])
    row = EpisodeRow(
        name=EpisodeName("agent", episode.number, 0),
        seed=0,
        outcome=outcome,
        score=score,
        trace="",
        trace_digest="",
        attempts=1,
        wall_ms=0,
        stdout_bytes=0,
        stderr_bytes=0,
        refusals=0,
    )
    task = TaskFacts(episode.number, "", (), None, "", "", tuple(facts["counterparts"]))
    why = attribute(Result(row, task), read_evidence(facts["events"]), lambda _: facts["solvable"])
    assert why is not None
    return why.primary.value


def kappa(pairs: Sequence[tuple[str, str]]) -> float:
    """Return Cohen's kappa of two labels per item. Source: Cohen (1960), 20 Educ. Psychol. Meas."""
    firsts, seconds = (Counter(pair[index] for pair in pairs) for index in (0, 1))
    agreed = sum(first == second for first, second in pairs) / len(pairs)
    by_chance = sum(firsts[label] * seconds[label] for label in firsts) / len(pairs) ** 2
    return (agreed - by_chance) / (1 - by_chance)


def _lines(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
