"""The protocol of comparisons with an original, and the comparison of a suite's trajectories."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.evidence import Evidence
from fumehood.core.score import Score
from fumehood.core.task import Suite
from fumehood.scorers.registry import score_evidence
from tests.differential.originals.questions import RAISED, digits
from tests.differential.perturbations import Trajectory, perturb_suite
from tests.differential.services import play_through_services
from tests.parts.benchmark_data import data_folder

SCRIPTS = Path(__file__).parent / "originals"
PROJECT = Path(__file__).parents[2]
UNGRADED = "ungraded"
"""Verdict when Fumehood grades nothing, for example without a judge."""


class NoOriginal(InputError):
    """The environment or the code of an original is missing."""


@dataclass(frozen=True, slots=True)
class Item:
    """One trajectory to compare, played or not."""

    key: bytes
    """Hash of everything that both sides receive."""
    question: Mapping[str, Any]
    """Input of the original's script."""
    trajectory: Trajectory | None = None


def trajectory_of(item: Item) -> Trajectory:
    """Return the trajectory of an item that is played."""
    assert item.trajectory is not None
    return item.trajectory


def play_all(items: Sequence[Item], *, service: bool) -> Iterator[Evidence]:
    """Play trajectories through real services, or else in this process."""
    played = [trajectory_of(item) for item in items]
    if service:
        return play_through_services([(each.case, each.moves) for each in played])
    return (play_in_memory(each.case.task, each.moves) for each in played)


class Source(Protocol):
    """Where the trajectories of one part of a benchmark come from."""

    @property
    def name(self) -> str:
        """Unique name, such as a suite argument."""
        ...

    @property
    def count(self) -> int:
        """Default number of trajectories."""
        ...

    @property
    def elsewhere(self) -> bool:
        """Whether only a user can supply the data, so that CI does not have them."""
        ...

    @property
    def has_episodes(self) -> bool:
        """Whether services can play the trajectories."""
        ...

    def items(self, count: int, seed: int) -> Sequence[Item]:
        """Return the trajectories that ``seed`` decides.

        Raises:
            InputError: data are missing.
        """
        ...

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        """Yield Fumehood's verdict of each trajectory.

        Args:
            items: trajectories of this source.
            service: whether to play through real services instead of in this process.
        """
        ...


def success(score: Score) -> str:
    """Return the success of a score as a verdict."""
    return UNGRADED if score.success is None else digits(score.success)


@dataclass(frozen=True)
class OfSuite:
    """Perturbed gold of a suite."""

    name: str
    """Suite argument; ``{data}`` is the folder of public data, ``{originals}`` of checkouts."""
    count: int
    details: Mapping[str, str] = field(default_factory=dict)
    """Added to each question, with the same placeholders."""
    verdict: Callable[[Score], str] = success
    keep: Callable[[Any], bool] = lambda case: True
    """Whether to take a task (a case of the suite)."""
    elsewhere: bool = False
    has_episodes: bool = True

    def items(self, count: int, seed: int) -> Sequence[Item]:
        return [
            Item(
                trajectory.key,
                {
                    **{name: _filled(text) for name, text in self.details.items()},
                    "task": trajectory.case.task.task_id,
                    "moves": trajectory.moves,
                },
                trajectory,
            )
            for trajectory in self._trajectories(count, seed)
        ]

    def _trajectories(self, count: int, seed: int) -> Iterator[Trajectory]:
        yield from perturb_suite(self._suite(), count, seed)

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        for item, evidence in zip(items, play_all(items, service=service), strict=True):
            case = trajectory_of(item).case
            yield self.verdict(score_evidence(case.task, case.gold, evidence))

    def _suite(self) -> Suite:
        suite = load_suite(_filled(self.name))
        return replace(suite, cases=tuple(case for case in suite.cases if self.keep(case)))


@dataclass(frozen=True, slots=True)
class Reason:
    """Why verdicts differ, and who is right."""

    name: str
    text: str
    """With the file and line of the original."""
    right: str
    """``original``, ``Fumehood`` or ``neither``."""
    explains: Callable[[Item, str, str], bool]
    """Takes a trajectory, Fumehood's verdict and the original's."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A benchmark and its original."""

    name: str
    """Folder of the benchmark."""
    original: str
    """Package or repository, with its version."""
    script: str
    """File in ``originals``; empty if the data contain the verdicts of the original."""
    sources: Sequence[Source]
    environment: str
    """Suffix of the virtual environment's name."""
    needs: Sequence[str] = ()
    """Checkouts that the script reads, in the folder of originals."""
    reasons: Sequence[Reason] = ()


def _filled(text: str) -> str:
    return text.format(data=data_folder(), originals=originals_folder())


def originals_folder() -> Path:
    """Return the folder of the originals' environments and checkouts."""
    return Path(os.environ.get("FUMEHOOD_ORIGINALS") or PROJECT / ".originals").absolute()


def ask_original(comparison: Comparison, items: Sequence[Item]) -> list[str]:
    """Return the verdicts of the original.

    Raises:
        NoOriginal: its environment or code is missing, or its script failed.
    """
    if not comparison.script:
        return [item.question["recorded"] for item in items]
    folder = originals_folder()
    python = folder / f"venv-{comparison.environment}" / "bin" / "python"
    for path in (python, *(folder / name for name in comparison.needs)):
        if not path.exists():
            raise NoOriginal(f"{comparison.name}: no {path}; run scripts/setup-originals")
    text = "".join(f"{json.dumps(dict(item.question))}\n" for item in items)
    done = subprocess.run(
        [str(python), "-W", "ignore", str(SCRIPTS / comparison.script)],
        env={**os.environ, "FUMEHOOD_ORIGINALS": str(folder), "PYTHONPATH": ""},
        input=text,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    verdicts = done.stdout.split("\n")[:-1]
    if done.returncode or len(verdicts) != len(items):
        raise NoOriginal(
            f"{comparison.name}: {comparison.script} ended with status {done.returncode} after "
            f"{len(verdicts)} of {len(items)} verdicts"
        )
    return verdicts


def reason_of(comparison: Comparison, item: Item, here: str, there: str) -> str | None:
    """Return the name of the reason of a disagreement; None without one."""
    names = (each.name for each in comparison.reasons if each.explains(item, here, there))
    return next(names, None)


def is_compared(here: str, there: str) -> bool:
    """Return whether both sides gave a verdict."""
    return here != UNGRADED and there not in (RAISED, UNGRADED)
