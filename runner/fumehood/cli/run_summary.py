"""Prints the result of a run, for ``run``, ``resume`` and ``score``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from fumehood.benchmarks.shared.baselines import Baseline
from fumehood.cli.baselines import describe, noop_of, oracle_of
from fumehood.cli.output import print_json, print_tables, say
from fumehood.cli.reading import verification_of
from fumehood.core.json_values import JsonObject
from fumehood.orchestrator.agents import name_agents
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.run_plan import config_of, planned_of
from fumehood.records.grants import model_grants, monitors_of
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.report import wording
from fumehood.report.results import OTHER_RISK, Counts, Results, by_risk, count, join_results
from fumehood.report.safe_text import one_line
from fumehood.report.statistics.infra import InfraDifference, infra_differences
from fumehood.report.statistics.metrics import ASPECTS, Unit, means
from fumehood.report.summary import (
    AgentSummary,
    ContractViolation,
    ModelCosts,
    breakdown,
    contract_violations,
    model_costs,
    run_digest,
    summarize,
)
from fumehood.report.text_table import TextTable

BAD_INPUT = 2
INFRA = 3
DIGEST_CHARS = 16
EXAMINED_TASKS = 10
"""Tasks of each agent whose trials are compared."""
FORGEABLE = ("reward", "shared mode (forgeable)", "difference")
"""Columns with the reward of the verifier, that of tests in the workspace, and the difference."""
LAST_LINE_CHARS = 200
"""Number of characters shown of the last line that an agent wrote to standard error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    folder: RunReader
    planned: int
    digest: str
    results: Results
    counts: Counts
    agents: Sequence[AgentSummary]
    noop: Baseline
    oracle: Baseline
    costs: dict[str, ModelCosts]
    violations: Sequence[ContractViolation]
    identical: Sequence[str]
    """Agents whose trials are identical."""

    @property
    def infra_differences(self) -> Sequence[InfraDifference]:
        return infra_differences({agent.agent: agent.attempts for agent in self.agents})

    @property
    def no_headline(self) -> str | None:
        return wording.why_no_headline(self.counts, self.planned)

    @property
    def is_finished(self) -> bool:
        """Whether enough planned episodes are finished for a headline number."""
        return wording.why_unfinished(self.counts.episodes, self.planned) is None

    @property
    def is_lost(self) -> bool:
        """Whether too many of the finished episodes have no score."""
        return wording.why_no_headline(self.counts, self.counts.episodes) is not None


def finish(folder: RunReader, rows: list[EpisodeRow], *, as_json: bool) -> int:
    """Print the result and return the exit status.

    Args:
        folder: the run.
        rows: of its episodes, scored.
        as_json: print one JSON object on standard output instead of a table.
    """
    planned = planned_of(folder)
    config, suite = config_of(folder), folder.suite()
    results = join_results(rows, suite)
    result = _Result(
        folder=folder,
        planned=len(planned),
        digest=run_digest(rows, [str(episode.name) for episode in planned]),
        results=results,
        counts=count(results),
        agents=summarize(rows, _in_order(config, {episode.agent for episode in planned})),
        noop=noop_of(suite),
        oracle=oracle_of(suite),
        costs=model_costs(folder, rows) if config.models else {},
        violations=list(contract_violations(rows, config.limits.output_kb << 10)),
        # Variants of the instruction need one trial each.
        identical=[] if config.prompt_variants else list(identical_trials(folder, rows)),
    )
    if as_json:
        print_json(_to_json(result))
    else:
        _print_result(result)
    for difference in result.infra_differences:
        _print_error(f"fumehood: {difference}")
    for agent in result.identical:
        _print_error(
            f"fumehood: agent {agent}: its trials are identical, so more than one adds no "
            "information: use --trials 1"
        )
    for violation in result.violations:
        _print_error(f"fumehood: {violation}{_last_error_line(folder, violation)}")
    if result.is_lost and result.counts.infra:
        return INFRA
    return BAD_INPUT if result.violations else 0


def _in_order(config: RunConfig, planned: Collection[str]) -> list[str]:
    """Return the planned agents in the order of the configuration, which no shard changes."""
    labels = [agent.label for agent in name_agents(config.agents)]
    return [label for label in labels if label in planned]


def identical_trials(folder: RunReader, rows: Sequence[EpisodeRow]) -> Iterator[str]:
    """Yield the agents with several trials whose traces differ in nothing but the seed.

    Examines the first tasks of each agent.
    """
    groups: dict[str, dict[str, list[EpisodeRow]]] = {}
    for row in rows:
        groups.setdefault(row.name.agent, {}).setdefault(row.name.task, []).append(row)
    for agent, tasks in groups.items():
        examined = [trials for trials in tasks.values() if len(trials) > 1][:EXAMINED_TASKS]
        if examined and all(_are_identical(folder, trials) for trials in examined):
            yield agent


def _are_identical(folder: RunReader, trials: Sequence[EpisodeRow]) -> bool:
    if not all(row.trace for row in trials):
        return False
    first, *others = (
        # The first event contains the seed.
        [record.event_json for record in folder.read_trace(row)[1:]]
        for row in trials
    )
    return all(events == first for events in others)


def agent_table(agents: Sequence[AgentSummary], *, is_finished: bool = True) -> TextTable:
    """Return one row per agent.

    Optional columns: utility and safety if a task has safety checks; the task completion score and
    milestones if a scorer gave them; forgeable rewards; the numbers of forgeable scores and of
    episodes in which the agent ran inside its workspace.

    Args:
        agents: of the run.
        is_finished: whether enough planned episodes are finished; otherwise shares are dashes.
    """

    def shown(share: float | None) -> str:
        return _share(share if is_finished else None)

    has_safety = any(agent.safety_rate is not None for agent in agents)
    has_undecided = any(agent.safety_undecided for agent in agents)
    has_completion = any(agent.task_completion is not None for agent in agents)
    has_milestones = any(agent.milestones is not None for agent in agents)
    has_forgeable = any(agent.forgeable_reward is not None for agent in agents)
    has_shared = any(agent.scored_shared for agent in agents)
    has_shared_box = any(agent.shared_box for agent in agents)
    header = (
        *("agent", "success", "episodes"),
        *(FORGEABLE if has_forgeable else ()),
        *(("shared, forgeable",) if has_shared else ()),
        *(("shared box",) if has_shared_box else ()),
        *(("utility", "safety", "weighted safety") if has_safety else ()),
        *(("safety undecided",) if has_undecided else ()),
        *(("completion",) if has_completion else ()),
        *(("milestones",) if has_milestones else ()),
        *("recovered", "faulted", "calls", "invalid", "denied"),
        *("ungraded", "infra", "infra as failure"),
        "outcomes",
    )
    rows = [
        (
            agent.agent,
            shown(agent.success_rate),
            str(agent.graded),
            *(_forgeable(agent) if has_forgeable else ()),
            *((str(agent.scored_shared),) if has_shared else ()),
            *((str(agent.shared_box),) if has_shared_box else ()),
            *(
                map(shown, (agent.utility_rate, agent.safety_rate, agent.weighted_safety))
                if has_safety
                else ()
            ),
            *((str(agent.safety_undecided),) if has_undecided else ()),
            *((shown(agent.task_completion),) if has_completion else ()),
            *((_mean(agent.milestones),) if has_milestones else ()),
            shown(agent.recovery_rate),
            str(agent.faulted),
            _mean(agent.tool_calls),
            _mean(agent.invalid_calls),
            _mean(agent.denied_calls),
            str(agent.attempts.ungraded),
            str(agent.attempts.infra),
            shown(agent.attempts.success_with_infra_failed),
            ", ".join(f"{name} {number}" for name, number in agent.outcomes.items()),
        )
        for agent in agents
    ]
    return TextTable("", header, rows, trailing_text=1)


def _forgeable(agent: AgentSummary) -> tuple[str, str, str]:
    own, difference = agent.forgeable_reward, agent.forgeable_difference
    if own is None or difference is None:
        return wording.NONE, wording.NONE, wording.NONE
    return (
        _share(own - difference),
        _share(own),
        wording.signed(difference, None, Unit.SHARE),
    )


def risk_table(agents: Sequence[AgentSummary], results: Results) -> TextTable:
    """Return utility and safety by risk class; without rows if no task has a risk class."""
    groups = {
        (risk, agent.agent): group
        for agent in agents
        for risk, group in by_risk(
            [result for result in results if result.row.name.agent == agent.agent]
        ).items()
    }
    rows = [
        (
            *names,
            str(len(group)),
            *(_share(mean.value) for mean in means(group, ASPECTS).values()),
            wording.violations(group),
        )
        for names, group in sorted(groups.items())
    ]
    if {risk for risk, _ in groups} <= {OTHER_RISK}:
        rows = []
    header = ("risk class", "agent", "episodes", *(metric.title.lower() for metric in ASPECTS))
    title = "Utility and safety by risk class"
    return TextTable(title, (*header, "violations"), rows, names=2, trailing_text=1)


def _to_json(result: _Result) -> JsonObject:
    return {
        "run": str(result.folder.path),
        "verification": verification_of([result.folder]),
        "trace_digest": result.digest,
        "episodes": len(result.results),
        "tasks": result.counts.tasks,
        "planned": result.planned,
        "infra": result.counts.infra,
        "headline": result.no_headline is None,
        "noop": result.noop.to_json(),
        "oracle": result.oracle.to_json(),
        "agents": [
            {
                **breakdown(
                    [scored for scored in result.results if scored.row.name.agent == agent.agent]
                ),
                **agent.to_json(),
            }
            for agent in result.agents
        ],
        "infra_differences": [str(difference) for difference in result.infra_differences],
        "identical_trials": list(result.identical),
        "model_grants": list(model_grants(result.folder.manifest())),
        "monitors": list(monitors_of(result.folder.manifest())),
        "models": {agent: costs.to_json() for agent, costs in result.costs.items()},
        "contract_violations": [str(violation) for violation in result.violations],
    }


def _print_result(result: _Result) -> None:
    counts, hint = result.counts, _judge_hint(result.folder, result.counts)
    if grants := model_grants(result.folder.manifest()):
        say(f"model requests may use: {', '.join(grants)}")
    if monitors := monitors_of(result.folder.manifest()):
        say(f"monitors: {', '.join(monitors)}")
    if result.no_headline is not None:
        _print_error(f"{result.no_headline}{hint}")
    # Ungraded episodes alone do not hide the table: a judge may grade them later.
    others = replace(counts, ungraded=0)
    if counts.graded and wording.why_no_headline(others, counts.episodes) is None:
        say(wording.sizes([scored.row.name for scored in result.results]))
        print_tables(
            agent_table(result.agents, is_finished=result.is_finished),
            risk_table(result.agents, result.results),
            mark=result.folder.provenance.mark,
        )
        say("")
        say(f"no-op baseline: {describe(result.noop)}   oracle: {describe(result.oracle)}")
        if counts.ungraded:
            say(f"scores are over {counts.graded} of {counts.episodes} episodes{hint}")
        isolation = result.folder.isolation()
        digest = f"trace digest: {result.digest[:DIGEST_CHARS]}…"
        say(f"isolation: {isolation}   {digest}   {result.folder.path}/")
    models = config_of(result.folder).models
    replays = models is not None and models.mode == "replay"
    for agent, costs in result.costs.items():
        say(f"models: {agent} {costs}{' (a replay: with providers, it would cost this)' * replays}")
    if len(result.results) < result.planned:
        done = f"{len(result.results)} of {result.planned} episodes"
        _print_error(f"{done}; finish with: fumehood resume {result.folder.path}")


def _print_error(line: str) -> None:
    Console(stderr=True).print(one_line(line), markup=False, highlight=False, soft_wrap=True)


def _judge_hint(folder: RunReader, counts: Counts) -> str:
    if not counts.ungraded or config_of(folder).judge:
        return ""
    return "; episodes without a score may need a --judge"


def _last_error_line(folder: RunReader, violation: ContractViolation) -> str:
    """Return the exception of the example episode, or its last line on standard error, and the
    file."""
    for path in folder.outputs(violation.example):
        if path.suffix == ".stderr":
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            return f": {_cause(text)[:LAST_LINE_CHARS]}; see {path}" if text else ""
    return ""


def _cause(text: str) -> str:
    """Return the exception of the last traceback; without one, the last line."""
    *_, last = text.rsplit("Traceback (most recent call last):", 1)
    is_traceback = last is not text
    # Lines of frames are indented; those of an exception group also begin with a bar.
    ends = re.finditer(r"^(?:[ ]*\| )?(?! |\+|\|)(\S.*)$", last, re.MULTILINE)
    end = next(ends, None) if is_traceback else None
    return end[1] if end else text.splitlines()[-1]


def _share(value: float | None) -> str:
    return wording.amount(value, Unit.SHARE)


def _mean(value: float | None) -> str:
    return wording.amount(value, Unit.COUNT)
