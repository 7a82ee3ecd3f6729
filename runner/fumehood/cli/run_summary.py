"""What is said about a run when it is over, by run, resume and score alike."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from fumehood.benchmarks.baselines import Baseline
from fumehood.cli.baselines import noop_of
from fumehood.cli.table import agent_table, told
from fumehood.core.json_values import JsonObject
from fumehood.orchestrator.setup import config_of, planned_of
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.report.results import Counts, count, join_results
from fumehood.report.safe_text import safe
from fumehood.report.summary import (
    AgentSummary,
    ContractViolation,
    breakdown,
    contract_violations,
    model_costs,
    run_digest,
    summarize,
)
from fumehood.report.wording import why_no_headline

BAD_INPUT = 2
INFRA = 3
WIDE = 200
"""Columns of what is written to a file or a pipe."""
LAST_WORDS = 200
"""Characters of what an agent said last."""


def finish(folder: RunFolder, rows: list[EpisodeRow], *, as_json: bool) -> int:
    """Print the result and return the exit status.

    Args:
        folder: the run.
        rows: of its episodes, scored.
        as_json: print one JSON object on standard output, and nothing else there.
    """
    planned = planned_of(folder)
    labels = list(dict.fromkeys(one.agent for one in planned))
    summaries = summarize(rows, labels)
    digest = run_digest(rows, [str(one.name) for one in planned])
    found = list(contract_violations(rows, config_of(folder).limits.output_kb << 10))
    errors = Console(stderr=True)
    infra = sum(row.is_infra for row in rows)
    results = join_results(rows, folder.suite())
    no_headline = why_no_headline(count(results))
    noop = noop_of(folder.suite())
    spent = model_costs(folder, rows) if config_of(folder).models else {}
    if as_json:
        report: JsonObject = {
            "run": str(folder.path),
            "trace_digest": digest,
            "episodes": len(rows),
            "planned": len(planned),
            "infra": infra,
            "headline": no_headline is None,
            "noop": noop.to_json(),
            "agents": [
                {
                    **breakdown([each for each in results if each.row.name.agent == one.agent]),
                    **one.to_json(),
                }
                for one in summaries
            ],
            "models": {agent: costs.to_json() for agent, costs in spent.items()},
            "misbehaviour": [str(complaint) for complaint in found],
        }
        print(json.dumps(report, indent=2))
    else:
        counts = count(results)
        if no_headline is not None:
            errors.print(f"{no_headline}{_hint(folder, counts)}", markup=False, soft_wrap=True)
        if (
            why_no_headline(replace(counts, ungraded=0)) is None
            and counts.ungraded < counts.episodes - infra
        ):
            _print_table(folder, summaries, noop, digest, counts)
        for agent, costs in spent.items():
            print(f"models: {agent} {costs}")
    if len(rows) < len(planned) and not as_json:
        errors.print(
            f"{len(rows)} of {len(planned)} episodes; finish with: fumehood resume {folder.path}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    for complaint in found:
        line = f"fumehood: {complaint}{_last_words(folder, complaint)}"
        errors.print(line, markup=False, highlight=False, soft_wrap=True)
    if no_headline is not None and infra:
        return INFRA
    return BAD_INPUT if found else 0


def _print_table(
    folder: RunFolder,
    summaries: Sequence[AgentSummary],
    noop: Baseline,
    digest: str,
    counts: Counts,
) -> None:
    # A pipe has no width, and the table must not be squeezed into a guess of one.
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    console.print(agent_table(summaries))
    lines = [f"no-op   {told(noop)}: what comes of doing nothing"]
    if counts.ungraded:
        graded = sum(one.graded for one in summaries)
        stands = f"the score stands over {graded} of {graded + counts.ungraded} episodes"
        lines.append(f"{stands}{_hint(folder, counts)}")
    lines.append(
        f"isolation: {folder.manifest()['isolation']}   trace digest: {digest[:16]}…   {folder.path}/"
    )
    console.print("\n" + "\n".join(lines), highlight=False, markup=False)


def _hint(folder: RunFolder, counts: Counts) -> str:
    if not counts.ungraded or config_of(folder).judge:
        return ""
    return "; what needs an opinion needs a --judge"


def _last_words(folder: RunFolder, complaint: ContractViolation) -> str:
    """Return the last line that the box of the example wrote to standard error, and where the rest is."""
    for path in folder.outputs(complaint.example):
        if path.suffix == ".stderr":
            lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return f": {safe(lines[-1][:LAST_WORDS])}; see {path}" if lines else ""
    return ""
