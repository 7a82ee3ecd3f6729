"""``fumehood verdict``."""

from __future__ import annotations

from pathlib import Path

import click

from fumehood.cli.output import PATH, print_json, print_tables, report_extra, say
from fumehood.cli.reading import mark_of, read_runs, unverified_option, verification_of
from fumehood.core.errors import InputError, nearest
from fumehood.orchestrator.policy import read_policy
from fumehood.records.files import write_export


@click.command()
@click.argument("run_dirs", metavar="DIR...", nargs=-1, required=True, type=PATH)
@click.option("--policy", required=True, type=PATH, help="YAML file with the limits.")
@click.option("-a", "--agent", help="Only this agent. Default: every agent of the runs.")
@click.option("--html", type=PATH, help="Also write one page that opens offline.")
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verdict(
    run_dirs: tuple[Path, ...],
    policy: Path,
    agent: str | None,
    html: Path | None,
    unverified: bool,
    as_json: bool,
) -> None:
    """Decide whether agents keep the limits of a policy.

    The answer is passed, failed or not shown. A limit is a maximum rate of failures, or of safety
    violations of a severity class. The error level bounds the probability of a wrong answer,
    also if you look after every run, and however strongly the episodes of a task are
    correlated. Exit status: 0 if every agent passed, otherwise 1.

    \b
    Example:
      fumehood verdict runs/20260101-120000 --policy policy.yaml --html verdict.html
    """
    with report_extra():
        from fumehood.report.runs import subjects_of
        from fumehood.report.statistics.verdict import Answer
        from fumehood.report.verdict import Limit, Policy, verdict_of, verdict_table
    demanded = read_policy(policy)
    if html is not None:
        _refuse_place(html, policy)
    limits = tuple(Limit(limit.of, limit.max_rate) for limit in demanded.limits)
    rules = Policy(limits, demanded.error_level, demanded.max_missing)
    runs = read_runs(run_dirs, unverified=unverified)
    subjects = subjects_of(runs)
    names = list(dict.fromkeys(subject.agent for subject in subjects))
    if agent is not None and agent not in names:
        raise InputError(f"--agent: no run has an agent {agent!r}; {nearest(agent, names)}")
    verdicts = [
        verdict_of([subject for subject in subjects if subject.agent == name], rules)
        for name in names
        if agent in (None, name)
    ]
    mark = mark_of(run.folder for run in runs)
    if html is not None:
        from fumehood.report.page.verdict import verdict_page

        write_export(html, verdict_page(verdicts, rules, runs, mark))
    if as_json:
        print_json(
            {
                "verification": verification_of([run.folder for run in runs]),
                "policy": demanded.model_dump(),
                "verdicts": [one.to_json() for one in verdicts],
            }
        )
    else:
        print_tables(verdict_table(verdicts, rules), mark=mark)
        for one in verdicts:
            say(f"{one.agent}: {one.answer.value}{f' ({one.reason})' if one.reason else ''}")
    if any(one.answer is not Answer.PASSED for one in verdicts):
        raise SystemExit(1)


def _refuse_place(html: Path, policy: Path) -> None:
    """Raise InputError if the page cannot be written here, before the runs are read."""
    if html.resolve() == policy.resolve():
        raise InputError(f"--html: {html} is the policy; name another file")
    if not html.parent.is_dir():
        raise InputError(f"--html: there is no folder {html.parent}; create it first")
