"""``fumehood suites``: lists benchmarks and the domains that they cover."""

from __future__ import annotations

import json
from collections import Counter

import click

from fumehood.benchmarks.domains import DOMAINS, Status
from fumehood.cli.output import print_tables
from fumehood.report.text_table import TextTable


@click.command()
@click.option("--domains", is_flag=True, help="List each domain, its suite, and what is missing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def suites(domains: bool, as_json: bool) -> None:
    """List the domains of the paper 'A Unified Framework'.

    The paper is arXiv 2605.27898. A domain runs, or needs a package or data that you supply, or
    does not run.

    \b
    Examples:
      fumehood suites
      fumehood suites --domains --json
    """
    counts = {
        benchmark: Counter(each.status for each in DOMAINS if each.benchmark == benchmark)
        for benchmark in dict.fromkeys(each.benchmark for each in DOMAINS)
    }
    if as_json:
        by_status = {
            name: {status.value: count[status] for status in Status}
            for name, count in counts.items()
        }
        listed = {"domains": [each.to_json() for each in DOMAINS]} if domains else {}
        click.echo(json.dumps({"benchmarks": by_status, **listed}, indent=2))
        return
    if domains:
        rows = [
            (each.benchmark, each.name, each.suite or "-", each.status.value, each.shown_reason)
            for each in DOMAINS
        ]
        header = ("benchmark", "domain", "suite", "status", "what is missing")
        print_tables(TextTable("Domains", header, rows, names=5))
        return
    table = [(name, *(str(count[status]) for status in Status)) for name, count in counts.items()]
    print_tables(TextTable("Domains", ("benchmark", *(each.value for each in Status)), table))
