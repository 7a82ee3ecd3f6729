"""The validation set of failure labels is large, varied and labelled consistently."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from fumehood.report.statistics.failures import Label
from tests.unit.report.failure_labels.labelled import (
    kappa,
    labelled_by_rules,
    labelled_episodes,
)

PAGE = Path(__file__).parents[3] / "docs" / "failure_labels.md"
EPISODES = labelled_episodes()


def test_the_set_has_120_episodes_of_six_benchmarks_and_half_are_held_out() -> None:
    assert len(EPISODES) >= 120
    assert len({episode.benchmark for episode in EPISODES}) >= 6
    held_out = sum(episode.held_out for episode in EPISODES)
    assert 0.4 <= held_out / len(EPISODES) <= 0.6


def test_rules_can_decide_at_least_80_percent() -> None:
    decidable = sum(episode.decidable for episode in EPISODES)
    assert decidable / len(EPISODES) >= 0.8


def test_both_labels_agree_beyond_chance() -> None:
    pairs = [(episode.first, episode.second) for episode in EPISODES]
    assert round(kappa(pairs), 2) == 0.92


def test_the_kappa_of_labels_that_agree_as_often_as_by_chance_is_zero() -> None:
    assert kappa([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]) == 0
    assert kappa([("a", "a"), ("b", "b")]) == 1


def test_every_label_occurs_except_infrastructure() -> None:
    counts = Counter(episode.first for episode in EPISODES)
    assert set(counts) == {
        "unsafe",
        "counterpart",
        "timeout",
        "context_overflow",
        "parsing",
        "tool_invocation",
        "budget",
        "crash",
        "reasoning",
        "unattributed",
    }


def test_rules_label_95_percent_of_the_held_out_decidable_episodes_correctly() -> None:
    episodes = [episode for episode in EPISODES if episode.held_out and episode.decidable]
    correct = sum(labelled_by_rules(episode) == episode.first for episode in episodes)
    assert correct / len(episodes) >= 0.95


def test_the_page_has_the_confusion_table_of_the_held_out_episodes() -> None:
    assert _confusion_table() in PAGE.read_text(encoding="utf-8")


def _confusion_table() -> str:
    """Return the table: a row for each second label, a column for each label of the rules."""
    pairs = Counter(
        (episode.second, labelled_by_rules(episode)) for episode in EPISODES if episode.held_out
    )
    names = [label.value for label in Label if any(label.value in pair for pair in pairs)]
    lines = [
        "| label | " + " | ".join(f"`{name}`" for name in names) + " |",
        "| --- |" + " ---: |" * len(names),
    ]
    for name in names:
        cells = " | ".join(str(pairs[name, other] or "") for other in names)
        lines.append(f"| `{name}` | {cells} |")
    return "\n".join(lines)
