"""Fumehood's verdicts on perturbed trajectories equal the stored verdicts of the originals.

`make differential` stores the verdicts, with the originals installed. Here only Fumehood scores.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from fumehood.core.errors import InputError
from tests.differential.comparisons import Comparison, Item, Source
from tests.differential.perturbations import PERTURBATIONS
from tests.differential.table import COMPARISONS
from tests.differential.verdicts import Part, Tally, compare, has_verdicts, read_parts, read_summary
from tests.parts.benchmark_data import data_folder
from tests.parts.mariadb import has_mariadb

SAMPLE = 8
"""Trajectories of each source that the fast test compares; `make differential` compares all."""
CHEAP = frozenset({"browsecomp", "marble", "toolmisuse"})
"""Comparisons of which the fast test compares ``CHEAP_SAMPLE`` and the slow test all."""
CHEAP_SAMPLE = 100
LARGER_SAMPLE = 100
WITHOUT: dict[str, str] = {}
"""Comparisons without stored verdicts → the reason. `make differential` runs them."""
STORED = [comparison for comparison in COMPARISONS if comparison.name not in WITHOUT]
DISAGREEMENTS_MAX = 0.01
PASSED_MIN = 0.2
TRAJECTORIES_MIN = 1_000


def _sources() -> Iterator[tuple[Comparison, Source]]:
    for comparison in STORED:
        for source in comparison.sources:
            yield comparison, source


SOURCES = [pytest.param(*pair, id=pair[1].name) for pair in _sources()]
every_source = pytest.mark.parametrize(("comparison", "source"), SOURCES)
# Tasks with an attack take six seconds for eight trajectories.
every_quick_source = pytest.mark.parametrize(
    ("comparison", "source"), [one for one in SOURCES if ":attack=" not in str(one.id)]
)
every_comparison = pytest.mark.parametrize(
    "comparison", [pytest.param(each, id=each.name) for each in STORED]
)


def _stored(comparison: Comparison, source: Source) -> Part:
    stored = [part for part in read_parts(comparison) if part.source == source.name]
    assert stored, f"no verdicts of {source.name}: run make differential with --record"
    return stored[0]


def _items(source: Source, count: int, seed: int) -> Sequence[Item]:
    """Return the trajectories; skip if data are missing, or fail in CI if they should exist."""
    if source.name.startswith("dbbench:mariadb") and not has_mariadb():
        pytest.skip("MariaDB is not installed")
    try:
        return source.items(count, seed)
    except InputError as error:
        if os.environ.get("CI") and data_folder().exists() and not source.elsewhere:
            pytest.fail(f"{data_folder()} lacks data: {error}")
        pytest.skip(str(error))


def _check(comparison: Comparison, source: Source, sample: int) -> None:
    part = _stored(comparison, source)
    items = _items(source, min(sample, len(part.keys)), part.seed)
    assert [item.key for item in items] == part.keys[:sample], (
        "the trajectories changed, because the perturbations or the benchmark's data did: "
        "run make differential with --record"
    )
    verdicts = [*source.score(items, service=False)]
    tally = Tally(comparison)
    differing = [*compare(tally, source.name, items, verdicts, part.verdicts[:sample])]
    assert not tally.unexplained, differing


@every_quick_source
def test_a_sample_of_trajectories_gets_the_verdict_of_the_original(
    comparison: Comparison, source: Source
) -> None:
    _check(comparison, source, CHEAP_SAMPLE if comparison.name in CHEAP else SAMPLE)


@pytest.mark.release
@every_source
def test_a_larger_sample_of_trajectories_gets_the_verdict_of_the_original(
    comparison: Comparison, source: Source
) -> None:
    _check(comparison, source, source.count if comparison.name in CHEAP else LARGER_SAMPLE)


@every_comparison
def test_stored_comparisons_are_large_and_reach_the_required_agreement(
    comparison: Comparison,
) -> None:
    summary = read_summary(comparison)
    assert summary["unexplained"] == []
    assert summary["compared"] + summary["not_compared"] >= TRAJECTORIES_MIN
    assert summary["passed_in_original"] >= PASSED_MIN * summary["compared"]
    differing = summary["compared"] - summary["agreed"]
    assert differing <= DISAGREEMENTS_MAX * summary["compared"]
    assert set(summary["disagreements"]) <= {reason.name for reason in comparison.reasons}


def test_every_other_comparison_has_stored_verdicts() -> None:
    without = {comparison.name for comparison in COMPARISONS if not has_verdicts(comparison)}
    assert without == set(WITHOUT)


@every_comparison
def test_the_sources_of_a_comparison_are_the_stored_ones(comparison: Comparison) -> None:
    names = [part.source for part in read_parts(comparison)]
    assert names == [source.name for source in comparison.sources]


def test_a_seed_decides_the_trajectories() -> None:
    comparison = next(each for each in COMPARISONS if each.name == "bfcl")
    source = next(each for each in comparison.sources if each.name.endswith("simple_python"))
    first = _items(source, 200, 3)
    assert [item.key for item in first] == [item.key for item in source.items(200, 3)]
    assert [item.key for item in first] != [item.key for item in source.items(200, 4)]
    kinds = {kind for item in first if item.trajectory for kind in item.trajectory.kinds}
    assert {*PERTURBATIONS, "gold"} - kinds <= {"another form of the answer"}
