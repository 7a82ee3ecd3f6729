"""The validation set of failure labels is large, varied and labelled consistently."""

from __future__ import annotations

from collections import Counter

from tests.unit.report.failure_labels.labelled import kappa, labelled_episodes

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
