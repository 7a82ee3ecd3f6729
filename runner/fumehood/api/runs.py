"""Runs, their episodes and comparisons as Python objects."""

from __future__ import annotations

import asyncio
import html
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from fumehood.api.classes import reference_of
from fumehood.cli.output import report_extra
from fumehood.cli.progress import RunProgress
from fumehood.core.errors import InputError, nearest
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.outcome import outcome_name
from fumehood.orchestrator.agents import name_agents
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import start_run
from fumehood.orchestrator.rescore import rescore
from fumehood.orchestrator.run_plan import config_of
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import Accept, RunReader
from fumehood.records.run_reader import open_run as open_reader
from fumehood.records.trust import Trust
from fumehood.scorers.found import FailedCheck, failed_checks

AgentLike = str | type | Mapping[str, Any]
"""A reference such as ``policy_aware`` or ``module:Class``, a class, or an object of a
configuration file with ``agent``, ``label`` and ``arguments``."""


class Episode:
    """One episode of a run."""

    def __init__(self, folder: RunReader, row: EpisodeRow) -> None:
        self._folder = folder
        self.row = row
        """The row with outcome, score and metrics."""

    def __bool__(self) -> bool:
        """Refuse, so that ``assert episode`` cannot pass for an episode that failed.

        Raises:
            TypeError: always.
        """
        raise TypeError("an episode is neither true nor false: use episode.passed")

    @property
    def success(self) -> bool | None:
        """Whether all checks hold; None if the episode is not graded."""
        return self.row.score.success

    @property
    def passed(self) -> bool:
        """Whether the episode is graded and all checks hold."""
        return self.row.score.success is True

    @property
    def outcome(self) -> str:
        """Name of the outcome, such as ``finished``."""
        return outcome_name(self.row.outcome)

    @property
    def checks(self) -> Mapping[str, bool]:
        """Whether each check holds."""
        return self.row.score.checks

    def trace(self) -> list[JsonObject]:
        """Return the events of the trace; empty if there is none.

        Raises:
            InputError: the trace was changed.
        """
        records = self._folder.read_trace(self.row) if self.row.trace else []
        return [json.loads(record.event_json) for record in records]

    def failed_checks(self) -> list[FailedCheck]:
        """Return the checks that do not hold: ``name``, ``expected`` and ``found``."""
        cases = {case.task.task_id: case for case in self._folder.suite().cases}
        return list(failed_checks(self.row.score, cases.get(self.row.name.task), self.trace()))

    def explain(self) -> str:
        """Return why the episode failed, one line per fact, and where its files are."""
        lines = [f"{self.row.name} ended: {self.outcome}"]
        if self.success is None:
            lines.append(f"not graded: {getattr(self.row.outcome, 'detail', 'no judge answered')}")
        for check in self.failed_checks():
            lines.append(f"{check.name} does not hold")
            if check.expected is not None:
                lines.append(f"  expected {canonical_json(check.expected)}")
            if check.found is not None:
                lines.append(f"  found {check.found}")
        return "\n".join((*lines, f"all calls: fumehood show {self._folder.path} {self.row.name}"))

    def __repr__(self) -> str:
        """Return name, outcome, success and the checks that do not hold."""
        failed = [name for name, holds in self.checks.items() if not holds]
        checks = f", failed {', '.join(failed)}" if failed else ""
        return f"<Episode {self.row.name}: {self.outcome}, success {self.success}{checks}>"


class Run:
    """A run, verified when it was opened.

    ``run["policy_aware", "crud_gold"]`` is an episode; the trial is a third, optional part.
    """

    def __init__(self, folder: RunReader) -> None:
        """Read the rows of an open run folder."""
        self._folder = folder
        self._rows = folder.rows()

    @property
    def path(self) -> Path:
        """The run folder."""
        return self._folder.path

    @property
    def agents(self) -> list[str]:
        """Labels of the agents."""
        return [agent.label for agent in name_agents(config_of(self._folder).agents)]

    @property
    def success(self) -> dict[str, float | None]:
        """Share of solved episodes among the graded ones, by agent; None without graded ones."""
        shares: dict[str, float | None] = {}
        for agent in self.agents:
            own = [row.score.success for row in self._rows if row.name.agent == agent]
            graded = [success for success in own if success is not None]
            shares[agent] = sum(graded) / len(graded) if graded else None
        return shares

    @cached_property
    def joined(self) -> Any:
        """The run as reports read it: scored again from its traces."""
        with report_extra():
            from fumehood.report.runs import join_run
        return join_run(self._folder, rescore(self._folder))

    def arrow(self) -> Any:
        """Return one row per episode as a ``pyarrow.Table``, with the columns of episodes.csv."""
        with report_extra():
            from fumehood.report.data_table import arrow_table
            from fumehood.report.findings import compute_findings
            from fumehood.report.runs import subjects_of
            from fumehood.report.sections.episodes import episode_data
        findings = compute_findings([self.joined], subjects_of([self.joined]), None, has_page=False)
        return arrow_table(episode_data(findings))

    def rows(self) -> Any:
        """Return :meth:`arrow` as a DataFrame of pandas, or of polars.

        Raises:
            InputError: neither is installed.
        """
        return _frame(self.arrow())

    def __getitem__(self, name: tuple[str, str] | tuple[str, str, int]) -> Episode:
        """Return an episode by agent, task and, optionally, trial.

        Raises:
            KeyError: there is none.
        """
        agent, task, *rest = name
        trial = rest[0] if rest else 0
        for row in self._rows:
            if (row.name.agent, row.name.task, row.name.trial) == (agent, task, trial):
                return Episode(self._folder, row)
        names = [f"{row.name.agent}/{row.name.task}" for row in self._rows]
        raise KeyError(f"no episode {agent}/{task}/{trial}; {nearest(f'{agent}/{task}', names)}")

    def __iter__(self) -> Iterator[Episode]:
        """Yield the episodes."""
        return (Episode(self._folder, row) for row in self._rows)

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self._rows)

    def __repr__(self) -> str:
        """Return the folder and the success of each agent."""
        return f"<Run {self.path}: {len(self)} episodes; {', '.join(self._lines())}>"

    def _repr_html_(self) -> str:
        cells = "".join(f"<li>{html.escape(line)}</li>" for line in self._lines())
        mark = html.escape(self._folder.provenance.mark)
        return f"<b>{html.escape(str(self.path))}</b> {mark} ({len(self)} episodes)<ul>{cells}</ul>"

    def _lines(self) -> Iterator[str]:
        for agent, share in self.success.items():
            yield f"{agent}: {'not graded' if share is None else f'{share:.1%}'}"


class Plot:
    """A picture that notebooks show."""

    def __init__(self, svg: str) -> None:
        self.svg = svg
        """The picture, SVG."""

    def save(self, path: str | Path) -> None:
        """Write the picture into a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


class Comparison:
    """Agents or conditions, compared on the same tasks and trials."""

    def __init__(self, runs: Sequence[Run], by: str, against: str | None) -> None:
        """Compare the runs; see :func:`compare`."""
        with report_extra():
            from fumehood.report.compare.dimension import CompareOptions, Target
            from fumehood.report.compare.registry import DIMENSIONS
        self._compared = (DIMENSIONS.load(by)()).compare(
            [Target(run.joined) for run in runs], CompareOptions(against=against)
        )

    def to_dict(self) -> JsonObject:
        """Return the numbers, as ``fumehood compare --json`` prints them."""
        return self._compared.json

    def plot(self, width_px: int = 700) -> Plot:
        """Draw the differences in success, with 95 % intervals.

        Args:
            width_px: width of the picture, pixels.
        """
        from fumehood.report.findings import compute_findings
        from fumehood.report.pictures import draw, in_light
        from fumehood.report.sections.comparisons import differences

        subjects = self._compared.subjects
        runs = list({id(subject.run): subject.run for subject in subjects}.values())
        findings = compute_findings(runs, subjects, subjects[0], has_page=False)
        return Plot(in_light(draw(differences(findings.versus), width_px, findings.mark)))

    def __str__(self) -> str:
        """Return the tables in Markdown."""
        from fumehood.report.text_table import markdown_table

        return "\n\n".join(markdown_table(table) for table in self._compared.tables)

    def _repr_markdown_(self) -> str:
        return str(self)


def run(
    suite: str | Path,
    agents: Sequence[AgentLike],
    *,
    out: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Run agents on the tasks of a suite, and wait for the result.

    Args:
        suite: name of a benchmark, or a file or folder of tasks.
        agents: references, or classes. A class of a notebook is written into a module in the
            working directory.
        out: the run folder; ``runs/TIME`` by default.
        progress: whether to show the progress on standard error.
        settings: of the configuration file, such as ``trials=3`` or ``engine="docker"``.

    Raises:
        InputError: a setting, suite, agent or engine cannot be used; nothing was run.
        InfraError: the services do not start.
    """
    config = run_config(
        {**settings, "suite": str(suite), "agents": [_agent(agent) for agent in agents]}
    )
    folder = Path(out) if out else Path("runs") / time.strftime("%Y%m%d-%H%M%S")
    with RunProgress(Console(stderr=True), quiet=not progress) as shown:
        return Run(start_run(config, folder, shown.callbacks()))


async def run_async(suite: str | Path, agents: Sequence[AgentLike], **options: Any) -> Run:
    """Run like :func:`run` in a thread, so that other coroutines go on."""
    return await asyncio.to_thread(run, suite, agents, **options)


def open_run(path: str | Path, *, unverified: bool = False) -> Run:
    """Open a run folder.

    Args:
        path: the folder.
        unverified: read it even if it does not verify, and mark what shows it.

    Raises:
        InputError: it is not a run folder, or it does not verify.
    """
    accept = Accept.UNVERIFIED if unverified else Accept.VERIFIED
    return Run(open_reader(Path(path), Trust.of_user(), accept))


def compare(*runs: Run, by: str = "agent", against: str | None = None) -> Comparison:
    """Compare the agents or conditions of runs on the same tasks.

    Args:
        runs: one or more runs.
        by: as in ``fumehood compare --by``.
        against: the baseline; the first agent by default.

    Raises:
        InputError: the runs cannot be compared.
    """
    if by == "agent" and len(runs) == 1 and against is None and len(runs[0].agents) > 1:
        against = runs[0].agents[0]
    return Comparison(runs, by, against)


def _agent(agent: AgentLike) -> str | dict[str, Any]:
    if isinstance(agent, type):
        return {"agent": reference_of(agent), "label": agent.__name__}
    return agent if isinstance(agent, str) else dict(agent)


def _frame(table: Any) -> Any:
    try:
        import pandas  # noqa: F401
    except ImportError:
        pass
    else:
        return table.to_pandas()
    try:
        import polars
    except ImportError:
        raise InputError(
            "rows() needs pandas or polars: install one of them, or use arrow()"
        ) from None
    return polars.from_arrow(table)
