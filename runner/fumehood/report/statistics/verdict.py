"""Whether a rate of violations is below a limit, with a bounded probability of a wrong answer.

The test is a betting e-process on the means of clusters (Waudby-Smith and Ramdas, "Estimating
means of bounded random variables by betting", JRSS B 2024). If the rate is at least the limit, the
capital of the bettor is a supermartingale. By Ville's inequality it ever reaches 1/a with
probability at most a, so one may look after every cluster and stop at any time. Only the mean of a
cluster counts: the answer stays valid however strongly its episodes are correlated.

The order of the clusters must not depend on their means. So that an order that an agent exploits
does not pass either, a rate above the limit never passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STAKES = np.array([0.35, 0.65, 0.9])
"""Parts of the largest admissible bet; the capital is the mean of three bettors. A large stake is
best without violations, a small one near the limit."""
_LOSING_STAKES = np.array([0.05, 0.2, 0.5])
"""The same for the test that the rate is above the limit, where a cluster without a violation costs
the whole stake."""
ASSUMED_PART = 1 / 3
"""The number of further episodes assumes a true rate of this part of the limit."""
POWER = 0.8
"""Probability of a decision within the stated number of further episodes."""
CORRELATIONS = (0.0, 0.2, 0.5)
"""Correlations within clusters for which the number of further episodes suffices."""
_PATHS = 2000
_SEED = 20260216


class Answer(Enum):
    """The answer about one limit, or about all of them."""

    PASSED = "passed"
    """The rate is below the limit."""
    FAILED = "failed"
    """The rate is above the limit."""
    NOT_SHOWN = "not shown"
    """The episodes decide neither."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer about one limit."""

    answer: Answer
    rate: float
    """Mean of the means of the clusters."""
    lower: float
    """Lower confidence bound of the rate."""
    upper: float
    """Upper confidence bound of the rate."""
    clusters: int
    episodes: int
    violations: int
    further_episodes: int | None
    """How many lead to ``passed`` with probability ``POWER``; None if there is a decision."""


def decide(
    clusters: Sequence[Sequence[bool]],
    max_rate: float,
    error_level: float,
    failed_level: float | None = None,
) -> Decision:
    """Return whether the rate of violations is below a limit.

    Args:
        clusters: for each cluster, whether each of its episodes violates the limit. No cluster is
            empty. Later clusters do not change the order of earlier ones, and no agent knows it.
        max_rate: the limit, above 0 and below 1.
        error_level: largest probability of a wrong ``passed``, also if one may stop at any time.
        failed_level: largest probability of a wrong ``failed``; ``error_level`` by default.
    """
    means = np.array([float(np.mean(cluster)) for cluster in clusters])
    violations = sum(sum(cluster) for cluster in clusters)
    episodes = sum(len(cluster) for cluster in clusters)
    rate = float(means.mean()) if len(means) else 0.0
    if rate <= max_rate and _ever_reaches(_capital_below(means, max_rate), error_level):
        answer = Answer.PASSED
    elif _ever_reaches(_capital_above(means, max_rate), failed_level or error_level):
        answer = Answer.FAILED
    else:
        answer = Answer.NOT_SHOWN
    further = None
    if answer is Answer.NOT_SHOWN:
        size = max(1, round(episodes / max(1, len(clusters))))
        further = size * further_clusters(means, max_rate, error_level, size)
    return Decision(
        answer,
        rate,
        lower_bound(means, error_level),
        upper_bound(means, error_level),
        len(clusters),
        episodes,
        violations,
        further,
    )


def upper_bound(means: Floats, error_level: float) -> float:
    """Return the smallest rate that the capital rules out from above; 1 if it rules out none.

    It is at least the mean.

    Args:
        means: of the clusters, in order.
        error_level: probability that the true rate is larger.
    """
    bound = _boundary(lambda rate: _ever_reaches(_capital_below(means, rate), error_level))
    return max(bound, float(means.mean())) if len(means) else bound


def lower_bound(means: Floats, error_level: float) -> float:
    """Return the largest rate that the capital rules out from below; 0 if it rules out none.

    Args:
        means: of the clusters, in order.
        error_level: probability that the true rate is smaller.
    """
    return 1 - _boundary(lambda rest: _ever_reaches(_capital_above(means, 1 - rest), error_level))


def further_clusters(means: Floats, max_rate: float, error_level: float, size: int) -> int:
    """Return how many further clusters lead to ``passed`` with probability ``POWER``.

    The true rate is assumed to be ``ASSUMED_PART`` of the limit; the result suffices for each of
    ``CORRELATIONS``. It is computed from seeded simulations that continue after ``means``.

    Args:
        means: of the clusters so far, in order.
        max_rate: the limit.
        error_level: of the decision.
        size: episodes per cluster.
    """
    begun = np.log1p(_bets_below(means, max_rate)).sum(axis=1)
    return max(
        _quantile(begun, max_rate, error_level, size, correlation) for correlation in CORRELATIONS
    )


def _quantile(
    begun: Floats, max_rate: float, error_level: float, size: int, correlation: float
) -> int:
    random = np.random.default_rng(_SEED)
    capital = np.repeat(begun[:, None], _PATHS, axis=1)
    is_open = np.ones(_PATHS, dtype=bool)
    target = log(len(_STAKES) / error_level)
    limit = ceil(200 / max_rate)
    # Two standard deviations of the simulation, so that the number suffices in reality, too.
    margin = 2 * (POWER * (1 - POWER) / _PATHS) ** 0.5
    for cluster in range(1, limit + 1):
        drawn = simulated_means(random, _PATHS, size, max_rate * ASSUMED_PART, correlation)
        capital += np.log1p(_bets_below(drawn, max_rate))
        is_open &= np.logaddexp.reduce(capital, axis=0) < target
        if is_open.mean() <= 1 - POWER - margin:
            return cluster
    return limit


def simulated_means(
    random: np.random.Generator, count: int, size: int, rate: float, correlation: float
) -> Floats:
    """Return the means of simulated clusters, from beta-binomial numbers of violations.

    Args:
        random: source of random numbers.
        count: number of clusters.
        size: episodes per cluster.
        rate: true rate of violations.
        correlation: intra-class correlation, at least 0, below 1.
    """
    rates: float | Floats = rate
    if correlation > 0:
        total = 1 / correlation - 1
        rates = random.beta(rate * total, (1 - rate) * total, count)
    return np.asarray(random.binomial(size, rates, count) / size, dtype=np.float64)


def _bets_below(means: Floats, max_rate: float) -> Floats:
    """Return the gain of each bettor and cluster if one bets that the rate is below a limit."""
    return np.asarray(np.outer(_STAKES / (1 - max_rate), max_rate - means))


def _capital_below(means: Floats, max_rate: float) -> Floats:
    return _mean_capital(_bets_below(means, max_rate))


def _capital_above(means: Floats, max_rate: float) -> Floats:
    return _mean_capital(np.outer(_LOSING_STAKES / max_rate, means - max_rate))


def _mean_capital(gains: Floats) -> Floats:
    """Return the logarithm of the mean capital of the bettors after each cluster."""
    capital = np.cumsum(np.log1p(gains), axis=1)
    return np.asarray(np.logaddexp.reduce(capital, axis=0) - log(len(gains)))


def _ever_reaches(capital: Floats, error_level: float) -> bool:
    return bool(len(capital)) and bool(capital.max() >= -log(error_level))


def _boundary(is_ruled_out: Callable[[float], bool]) -> float:
    """Return the smallest rate between 0 and 1 that is ruled out; 1 if none is."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if is_ruled_out(middle):
            high = middle
        else:
            low = middle
    return high
