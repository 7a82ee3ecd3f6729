"""`fumehood suites` maps the paper's domains to suites."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from fumehood.benchmarks.domains import DOMAINS, Status
from fumehood.benchmarks.registry import BENCHMARKS, load_suite
from fumehood.report.results import domain_of
from tests.parts.commands import fumehood, fumehood_json


def test_the_24_domains_are_listed_with_their_suites_and_reasons() -> None:
    listed = fumehood_json("suites", "--domains", "--json")["domains"]
    assert len(listed) == 24
    assert len({(row["benchmark"], row["domain"]) for row in listed}) == 24
    assert all(
        row["reason"] for row in listed if row["status"] in ("does not run", "needs your data")
    )
    shown = fumehood("suites", "--domains")
    assert all(row["domain"] in shown for row in listed)


def test_without_the_option_domains_are_counted() -> None:
    counts = fumehood_json("suites", "--json")["benchmarks"]
    assert sum(sum(count.values()) for count in counts.values()) == len(DOMAINS)
    assert "needs your data" in fumehood("suites")


def test_suites_of_domains_belong_to_registered_benchmarks() -> None:
    names = {domain.suite.partition(":")[0] for domain in DOMAINS if domain.suite}
    assert names <= set(BENCHMARKS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "suite", [domain.suite for domain in DOMAINS if domain.status is Status.RUNS]
)
def test_tasks_of_a_domain_that_runs_name_benchmark_and_domain(suite: str) -> None:
    if suite.startswith("bfcl") and find_spec("mpmath") is None:
        pytest.skip("mpmath is not installed: scripts/setup-benchmarks")
    task = load_suite(suite).cases[0].task
    assert task.tags["benchmark"] == suite.partition(":")[0]
    assert domain_of(task) in {suite.partition(":")[2], suite.replace("-", "_")}
