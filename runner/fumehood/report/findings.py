"""Computes everything that a report shows; reads each trace once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.json_values import short_json
from fumehood.core.task import Case, Suite
from fumehood.records.row import EpisodeName
from fumehood.report.model_texts import Conversation
from fumehood.report.page.bodies import episode_body
from fumehood.report.page.texts import shown
from fumehood.report.results import Counts, Result, Results, by_domain, by_family, count
from fumehood.report.runs import Run, Subject
from fumehood.report.statistics.failures import Attribution, Label, attribute
from fumehood.report.statistics.intervals import Estimate, estimates
from fumehood.report.statistics.metrics import BUDGETS, graded
from fumehood.report.statistics.pairs import Comparison, compare
from fumehood.report.statistics.resources import Spent, Spread, spent, spreads
from fumehood.report.statistics.trials import TrialRates, trial_rates
from fumehood.report.traces import ReadTrace, read_traces

SHOWN_MAX = 12
"""With more agents, the page has no pictures and no overview of each agent."""


@dataclass(frozen=True, slots=True)
class BaselineScores:
    """Success of the baselines on the tasks of a run; None if it is unknown."""

    noop: float | None = None
    oracle: float | None = None


@dataclass(frozen=True, slots=True)
class Baselines:
    """Whether the baselines solved each task of a suite, by task ID; None if it is ungraded."""

    noop: Mapping[str, bool | None] = field(default_factory=dict)
    oracle: Mapping[str, bool | None] = field(default_factory=dict)

    def on(self, task_ids: Iterable[str] | None = None) -> BaselineScores:
        """Return the success of both on some tasks, each counted once; by default on all."""
        chosen = None if task_ids is None else set(task_ids)
        return BaselineScores(_solved(self.noop, chosen), _solved(self.oracle, chosen))

    def over(self, results: Results) -> BaselineScores:
        """Return the success of both on the tasks of some results."""
        return self.on(result.task.task_id for result in results)


def _solved(by_task: Mapping[str, bool | None], chosen: Collection[str] | None) -> float | None:
    """Return the share of the graded tasks that were solved; None without a graded task."""
    graded = [
        solved
        for task_id, solved in by_task.items()
        if solved is not None and (chosen is None or task_id in chosen)
    ]
    return sum(graded) / len(graded) if graded else None


@dataclass(frozen=True, slots=True)
class GroupFindings:
    """The metrics of an agent over all its results, or over a group of them."""

    counts: Counts
    estimates: Mapping[str, Estimate]
    """By metric name."""
    baselines: BaselineScores
    """Success of the baselines on the tasks of these results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectFindings:
    """The findings about one agent of one run."""

    subject: Subject
    whole: GroupFindings
    by_fault: Mapping[str, GroupFindings]
    by_domain: Mapping[str, GroupFindings]
    curve: tuple[float, ...]
    """S(k) for k = 0 … 32; empty if nothing is graded."""
    trials: TrialRates
    spreads: Mapping[tuple[str, str], Spread]
    """By seat and resource name."""
    attributions: Mapping[str, Attribution]
    """Why episodes failed, by episode name."""
    baselines: Baselines
    started_ms: int | None
    """Start of the first episode, milliseconds since the Unix epoch; None without a trace."""
    bodies: Mapping[EpisodeName, bytes]
    """What the page shows of each episode, as JSON in UTF-8, which takes half the memory of text;
    empty if no page was asked for."""

    def primaries(self) -> dict[Label, int]:
        """Count failed episodes by primary label."""
        labels = [attribution.primary for attribution in self.attributions.values()]
        return {label: labels.count(label) for label in Label if label in labels}

    def secondaries(self) -> dict[Label, int]:
        """Count failed episodes by secondary label; an episode may have several."""
        labels = [
            label for attribution in self.attributions.values() for label in attribution.secondary
        ]
        return {label: labels.count(label) for label in Label if label in labels}


@dataclass(frozen=True, slots=True)
class Versus:
    """A comparison of two agents."""

    first: Subject
    second: Subject
    comparison: Comparison
    baselines: Baselines = Baselines()
    """On the suite of the first agent."""

    def baselines_on(self, family: str | None = None) -> BaselineScores:
        """Return the success of the baselines on the compared tasks.

        Args:
            family: only of the tasks with this fault family, or CLEAN; None for all tasks.
        """
        firsts = [pair.first for pair in self.comparison.pairing.pairs]
        return self.baselines.over(firsts if family is None else by_family(firsts)[family])


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings about all runs."""

    runs: tuple[Run, ...]
    subjects: tuple[SubjectFindings, ...]
    versus: tuple[Versus, ...]
    """Every other agent against the baseline."""

    @property
    def mark(self) -> str:
        """The text that marks every output; empty if all runs are verified."""
        marks = (run.folder.provenance.mark for run in self.runs)
        return "; ".join(dict.fromkeys(mark for mark in marks if mark))

    @property
    def unfinished(self) -> str:
        """The text that says which runs miss episodes; empty if all runs are finished."""
        states = (run.folder.provenance for run in self.runs)
        parts = [
            f"{state.folder}: {state.episodes:,} of {state.planned:,} episodes are finished"
            for state in states
            if not state.is_finished and state.episodes < state.planned
        ]
        if not parts:
            return ""
        return f"UNFINISHED: {'; '.join(parts)}. All numbers are of finished episodes only."

    @property
    def are_few(self) -> bool:
        """Whether pictures can show all agents; the tables of an experiment replace them."""
        return len(self.subjects) <= SHOWN_MAX

    @property
    def any_graded(self) -> bool:
        """Whether any episode is graded."""
        return any(agent.whole.counts.graded for agent in self.subjects)

    def groups(self, grouping: str) -> list[str]:
        """Return the group names of ``by_fault`` or ``by_domain`` over all agents."""
        names = [name for agent in self.subjects for name in getattr(agent, grouping)]
        return list(dict.fromkeys(names))


Prove = Callable[[Suite], Callable[[str], bool | None]]
"""Returns whether tasks of a suite are known to be solvable, by task ID."""


Received = Callable[[Case, int], Sequence[SeatSpec]]


def _as_in_tasks(run: Run) -> Received:
    return lambda case, trial: case.task.seats


def _nothing_proven(suite: Suite) -> Callable[[str], bool | None]:
    return lambda task_id: None


def compute_findings(
    runs: Sequence[Run],
    subjects: Sequence[Subject],
    baseline: Subject | None,
    prove: Prove = _nothing_proven,
    baselines_of: Callable[[Suite], Baselines] = lambda suite: Baselines(),
    received_in: Callable[[Run], Received] = _as_in_tasks,
    *,
    has_page: bool = True,
) -> Findings:
    """Compute the findings.

    Args:
        runs: all runs.
        subjects: the agents of the runs.
        baseline: the agent that the others are compared with; None for no comparisons of pairs.
        prove: proves that a task is solvable, if the task does not say so itself.
        baselines_of: returns the tasks of a suite that the baselines solved.
        received_in: returns the instructions that the trials of a run received.
        has_page: whether the findings are written as a page, which shows each episode.

    Raises:
        InputError: a trace is missing or not a trace.
    """
    suites = {_suite_key(run): run.suite for run in runs}
    baselines = {key: baselines_of(suite) for key, suite in suites.items()}
    versus = tuple(
        Versus(
            baseline,
            subject,
            compare(baseline.results, subject.results),
            baselines[_suite_key(baseline.run)],
        )
        for subject in subjects
        if baseline is not None and subject is not baseline
    )
    return Findings(
        tuple(runs),
        tuple(
            _of_subject(
                subject,
                baselines[_suite_key(subject.run)],
                _Reader(subject.run, prove, received_in(subject.run) if has_page else None),
            )
            for subject in subjects
        ),
        versus,
    )


def _suite_key(run: Run) -> str:
    return str(run.manifest.get("suite_digest", run.label))


def _of_subject(subject: Subject, baselines: Baselines, reader: _Reader) -> SubjectFindings:
    results = subject.results
    entries: list[Spent] = []
    attributions: dict[str, Attribution] = {}
    bodies: dict[EpisodeName, bytes] = {}
    starts: list[int] = []
    for result in results:
        name = result.row.name
        own = reader.run.folder.once(name, "findings", partial(reader.read, result))
        entries.extend(own.spent)
        bodies[name] = own.body
        if own.started_ms is not None:
            starts.append(own.started_ms)
        if own.why is not None:
            attributions[str(name)] = own.why
    return SubjectFindings(
        subject=subject,
        whole=_of_group(results, baselines.on()),
        by_fault=_of_groups(by_family(results), baselines),
        by_domain=_of_groups(by_domain(results), baselines),
        curve=_curve(results),
        trials=trial_rates(results),
        spreads=spreads(entries),
        attributions=attributions,
        baselines=baselines,
        started_ms=min(starts, default=None),
        bodies=bodies,
    )


@dataclass(frozen=True, slots=True)
class _Episode:
    """What a report states about one episode."""

    spent: list[Spent]
    started_ms: int | None
    """None without a trace."""
    why: Attribution | None
    """Why it failed."""
    body: bytes
    """What the page shows, as JSON in UTF-8; empty without a page."""


class _Reader:
    """Reads each trace of a run once."""

    def __init__(self, run: Run, prove: Prove, received: Received | None) -> None:
        """Read nothing yet.

        Args:
            run: the run.
            prove: proves that a task is solvable.
            received: returns the instructions that trials received; None without a page.
        """
        self.run = run
        self._is_solvable = prove(run.suite)
        self._received = received
        self._cases = {case.task.task_id: case for case in run.suite.cases}

    def read(self, result: Result) -> _Episode:
        """Return what a report states about an episode.

        Raises:
            InputError: its trace is missing or not a trace.
        """
        ((_, trace),) = read_traces(self.run.folder, [result])
        started_ms = trace.events[0].wall_ms if trace.events else None
        why = attribute(result, trace.evidence, self._is_solvable)
        body = b"" if self._received is None else self._body(self._received, result, trace, why)
        return _Episode(spent(result, trace), started_ms, why, body)

    def _body(
        self, received: Received, result: Result, trace: ReadTrace, why: Attribution | None
    ) -> bytes:
        folder, name = self.run.folder, result.row.name
        case = self._cases[name.task]
        printed = [str(path.relative_to(folder.path)) for path in folder.outputs(name)]
        conversation = Conversation(folder.exchanges(name))
        body = episode_body(case.task, result, trace, why, printed, conversation)
        seats = received(case, name.trial)
        if tuple(seats) != case.task.seats:
            body["instructions"] = [shown(seat.instruction) for seat in seats]
        return short_json(body).encode()


def _of_groups(groups: Mapping[str, Results], own: Baselines) -> dict[str, GroupFindings]:
    return {name: _of_group(group, own.over(group)) for name, group in groups.items()}


def _of_group(results: Results, baselines: BaselineScores) -> GroupFindings:
    return GroupFindings(count(results), estimates(results), baselines)


def _curve(results: Results) -> tuple[float, ...]:
    graded_results = graded(results)
    if not graded_results:
        return ()
    needed = [result.number("tool_calls") for result in graded_results if result.success]
    return tuple(
        sum(calls is not None and calls <= k for calls in needed) / len(graded_results)
        for k in range(BUDGETS[-1] + 1)
    )
