"""What the user means by one side of a comparison: ``DIR``, or ``DIR:AGENT`` where a run has several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fumehood.core.errors import InputError
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_folder import RunFolder

if TYPE_CHECKING:
    from fumehood.report.runs import Run, Subject


class Sides:
    """Reads run folders, each once."""

    def __init__(self) -> None:
        self._runs: dict[Path, Run] = {}

    def agents(self, text: str) -> list[Subject]:
        """Return the agents that a side names: one, or all of a run.

        Raises:
            InputError: there is no such folder or agent.
        """
        from fumehood.report.runs import subjects_of

        path, agent = _split(text)
        subjects = list(subjects_of([self._run(path)]))
        named = [subject for subject in subjects if agent in (None, subject.agent)]
        if not named:
            known = ", ".join(subject.agent for subject in subjects)
            raise InputError(f"{path} has no agent called {agent!r}; there are: {known}")
        return named

    def _run(self, path: Path) -> Run:
        from fumehood.report.runs import join_run

        key = path.resolve()
        if key not in self._runs:
            folder = RunFolder.open(path)
            self._runs[key] = join_run(folder, rescore(folder))
        return self._runs[key]


def pairs_of(first: list[Subject], second: list[Subject]) -> list[tuple[Subject, Subject]]:
    """Return who is compared with whom: one with one, or every agent with its namesake.

    Raises:
        InputError: nobody has a namesake, or it would be somebody with themselves.
    """
    if len(first) == len(second) == 1:
        pairs = [(first[0], second[0])]
    else:
        others = {subject.agent: subject for subject in second}
        pairs = [(subject, others[subject.agent]) for subject in first if subject.agent in others]
    pairs = [
        (one, other) for one, other in pairs if one.run is not other.run or one.agent != other.agent
    ]
    if not pairs:
        one, other = (", ".join(subject.agent for subject in side) for side in (first, second))
        raise InputError(
            f"say which agents to compare, as DIR:AGENT; the first has {one}, the second {other}"
        )
    return pairs


def _split(text: str) -> tuple[Path, str | None]:
    if Path(text).is_dir() or ":" not in text:
        return Path(text), None
    path, _, agent = text.rpartition(":")
    return Path(path), agent
