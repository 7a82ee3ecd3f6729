"""The data of single episodes in a page: an index, and packed chunks with everything else.

A chunk holds tasks with all their episodes. Opening an episode unpacks one chunk. The findings
have the JSON of each episode.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from fumehood.core.json_values import short_json
from fumehood.core.outcome import outcome_name
from fumehood.core.task import Case
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.page.bodies import task_body
from fumehood.report.page.texts import shown
from fumehood.report.results import CLEAN, Result
from fumehood.report.statistics.failures import TITLES, Label

CHUNK_CHARS = 600_000
"""A chunk ends when its JSON is longer."""

SCORES = {True: 1, False: 0, None: -1}

INFRA = -2

TaskKey = tuple[str, str]
"""Name and digest; tasks of one name may differ between runs."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tasks that are unpacked together."""

    tasks: range
    """Their positions in the index."""
    packed: str


@dataclass(slots=True)
class _Attempts:
    """A task with all its episodes."""

    case: Case
    episodes: list[tuple[int, SubjectFindings, Result]] = field(default_factory=list)
    """Position of the agent in the report, findings of the agent, result."""


def index_and_chunks(findings: Findings) -> tuple[dict[str, Any], list[Chunk]]:
    """Return the index of all episodes, by columns, and the chunks."""
    tasks = _by_task(findings)
    index = _index(findings, tasks)
    chunks: list[Chunk] = []
    texts: list[str] = []
    first, chars, row = 0, 0, 0
    for at, attempts in enumerate(tasks.values()):
        texts.append(_task_with_episodes(attempts, row))
        row += len(attempts.episodes)
        chars += len(texts[-1])
        if chars > CHUNK_CHARS or at == len(tasks) - 1:
            chunks.append(Chunk(range(first, at + 1), packed(texts)))
            texts, first, chars = [], at + 1, 0
    index["chunk"] = [number for number, chunk in enumerate(chunks) for _ in chunk.tasks]
    return index, chunks


def _by_task(findings: Findings) -> dict[TaskKey, _Attempts]:
    tasks: dict[TaskKey, _Attempts] = {}
    for at, agent in enumerate(findings.subjects):
        cases = {case.task.task_id: case for case in agent.subject.run.suite.cases}
        for result in agent.subject.results:
            key = result.task.task_id, result.task.digest
            attempts = tasks.setdefault(key, _Attempts(cases[result.task.task_id]))
            attempts.episodes.append((at, agent, result))
    for attempts in tasks.values():
        attempts.episodes.sort(key=lambda episode: (episode[0], episode[2].row.name.trial))
    return tasks


def _task_with_episodes(attempts: _Attempts, first_row: int) -> str:
    """Return the JSON of a task, with that of its episodes."""
    task = short_json({**task_body(attempts.case), "row": first_row})
    bodies = b",".join(agent.bodies[result.row.name] for _, agent, result in attempts.episodes)
    return f'{task[:-1]},"episodes":[{bodies.decode()}]}}'


def _index(findings: Findings, tasks: Mapping[TaskKey, _Attempts]) -> dict[str, Any]:
    episodes = [
        (number, *episode)
        for number, attempts in enumerate(tasks.values())
        for episode in attempts.episodes
    ]
    outcomes = sorted({outcome_name(result.row.outcome) for *_, result in episodes})
    labels = list(Label)
    facts = [attempts.episodes[0][2].task for attempts in tasks.values()]
    return {
        "agents": [shown(agent.subject.label) for agent in findings.subjects],
        "outcomes": outcomes,
        "failures": [TITLES[label] for label in labels],
        "tasks": [
            [
                shown(task.task_id),
                shown(task.domain),
                [shown(name) for name in task.families or (CLEAN,)],
            ]
            for task in facts
        ],
        "task": [number for number, *_ in episodes],
        "agent": [at for _, at, _, _ in episodes],
        "trial": [result.row.name.trial for *_, result in episodes],
        "score": [_score_mark(result) for *_, result in episodes],
        "outcome": [outcomes.index(outcome_name(result.row.outcome)) for *_, result in episodes],
        "calls": [_calls(result) for *_, result in episodes],
        "wall": [result.row.wall_ms for *_, result in episodes],
        "failure": [_failure(agent, result, labels) for _, _, agent, result in episodes],
    }


def _score_mark(result: Result) -> int:
    return INFRA if result.row.is_infra else SCORES[result.success]


def _calls(result: Result) -> int:
    calls = result.number("tool_calls")
    return -1 if calls is None else int(calls)


def _failure(agent: SubjectFindings, result: Result, labels: Sequence[Label]) -> int:
    why = agent.attributions.get(str(result.row.name))
    return -1 if why is None else labels.index(why.primary)


def embedded_json(value: Any) -> Markup:
    """Return JSON for a script element; no text can close the element."""
    text = short_json(value)
    # In JSON these characters occur only inside strings, where escapes are equivalent.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def packed(texts: Sequence[str]) -> str:
    """Return JSON texts as one list, as gzip in base64; equal texts give equal results."""
    text = f"[{','.join(texts)}]".encode()
    return b64encode(gzip.compress(text, compresslevel=9, mtime=0)).decode("ascii")
