"""Recall@k, nDCG@k and reciprocal rank of a snapshot's search, computed by ``ir_measures``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.metrics.judgements import Judgements
from fumehood_snapshots.snapshot import Snapshot

CUTS = (5, 10, 100)


@dataclass(frozen=True, slots=True)
class RetrievalQuality:
    """Measures by name, such as ``R@10``, ``nDCG@10`` and ``RR``."""

    means: Mapping[str, float]
    """Mean over all questions; a question without hits counts as 0."""
    by_question: Mapping[str, Mapping[str, float]]


def measure_snapshot(
    snapshot: Snapshot,
    questions: Mapping[str, str],
    judgements: Judgements,
    cuts: Sequence[int] = CUTS,
) -> RetrievalQuality:
    """Search for every question and measure the rankings.

    Raises:
        SnapshotInputError: a question has no relevant document among the judgements.
    """
    deepest = max(cuts)
    rankings = {
        identity: [ranked.id for ranked in snapshot.rank(text, deepest)]
        for identity, text in questions.items()
    }
    return measure_rankings(rankings, judgements, cuts)


def measure_rankings(
    rankings: Mapping[str, Sequence[str]], judgements: Judgements, cuts: Sequence[int] = CUTS
) -> RetrievalQuality:
    """Measure rankings against judgements.

    Args:
        rankings: question → document IDs, best first.
        judgements: judgements; further questions are ignored.
        cuts: ranks of recall and nDCG.

    Raises:
        SnapshotInputError: a question has no relevant document among the judgements.
    """
    import ir_measures

    measures = [measure @ cut for measure in (ir_measures.R, ir_measures.nDCG) for cut in cuts]
    measures.append(ir_measures.RR)
    for identity in rankings:
        if not any(relevance > 0 for relevance in judgements.get(identity, {}).values()):
            raise SnapshotInputError(
                f"question {identity} has no relevant document among the judgements"
            )
    judged = {identity: dict(judgements[identity]) for identity in rankings}
    # The evaluator sorts by score and breaks ties differently, so it receives the ranks.
    runs = {
        identity: {document: float(len(ranking) - rank) for rank, document in enumerate(ranking)}
        for identity, ranking in rankings.items()
    }
    by_question: dict[str, dict[str, float]] = {identity: {} for identity in rankings}
    for metric in ir_measures.iter_calc(measures, judged, runs):
        by_question[metric.query_id][str(metric.measure)] = metric.value
    names = [str(measure) for measure in measures]
    complete = {
        identity: {name: values.get(name, 0.0) for name in names}
        for identity, values in by_question.items()
    }
    count = max(1, len(complete))
    means = {
        name: math.fsum(values[name] for values in complete.values()) / count for name in names
    }
    return RetrievalQuality(means, complete)
