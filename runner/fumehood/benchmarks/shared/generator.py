"""The protocol and the registry of generators, and the code that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from fumehood.benchmarks.shared.manifest import Manifest, SuiteWriter
from fumehood.benchmarks.shared.proof import ScoreEpisode
from fumehood.core.errors import InputError, nearest
from fumehood.core.registry import Registry

S = TypeVar("S", bound=str)

PROGRESS_EVERY = 100
"""Number of tasks between two progress reports."""

Progress = Callable[[str, int, int], None]
"""Called with the split, the number of finished tasks, and the number of all tasks."""


def no_progress(split: str, ready: int, total: int) -> None:
    """Report no progress."""


class Generator(Protocol):
    """Generates the tasks of one family."""

    def __call__(
        self,
        profile: str,
        seed: int,
        out: Path,
        *,
        splits: Mapping[str, int] | None = None,
        score_episode: ScoreEpisode | None = None,
        progress: Progress = no_progress,
    ) -> Manifest:
        """Write a suite with its manifest and freeze file. The same arguments give the same bytes.

        Args:
            profile: name of a size.
            seed: any integer.
            out: a folder that does not exist or is empty.
            splits: numbers of tasks that replace those of the profile.
            score_episode: scores evidence, so that every oracle is proven; None skips this proof.
            progress: called after every 100 tasks and at the end of each split.

        Raises:
            InputError: profile, splits or folder cannot be used.
            Unproven: a task fails its checks; nothing is written.
        """
        ...


GENERATORS: Registry[Generator] = Registry(
    "generator",
    {
        "native": "fumehood.benchmarks.native.generate.suite:generate_suite",
        "safety": "fumehood.benchmarks.safety.suite:generate_suite",
        "toolmisuse": "fumehood.benchmarks.toolmisuse.generate.suite:generate_suite",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan(Generic[S]):
    """The content and the layout of a generated suite."""

    family: str
    """Name of the benchmark that loads the suite."""
    profile: str
    release: str
    generator: int
    """Version of the generator."""
    seed: int
    sizes: Mapping[S, int]
    """Split → number of tasks."""
    files: Sequence[str]
    """Paths below the suite's folder, with ``{split}`` as a placeholder."""
    make: Callable[[S, int], Sequence[Any]]
    """Returns the records of the task at an index of a split, one per file, after checking the
    task."""


def write_suite(out: Path, plan: SuitePlan[S], progress: Progress) -> Manifest:
    """Make all tasks and write them with manifest and freeze file; after an error nothing is left.

    Args:
        out: a folder that does not exist or is empty.
        plan: content and layout.
        progress: see :class:`Generator`.
    """
    with SuiteWriter(out) as writer:
        for split, size in plan.sizes.items():
            tasks = []
            for index in range(size):
                tasks.append(plan.make(split, index))
                if len(tasks) % PROGRESS_EVERY == 0 or len(tasks) == size:
                    progress(split, len(tasks), size)
            for position, file in enumerate(plan.files):
                writer.write_records(
                    file.format(split=split), (records[position] for records in tasks)
                )
        return writer.finish(
            family=plan.family,
            profile=plan.profile,
            release=plan.release,
            generator=plan.generator,
            seed=plan.seed,
        )


def split_sizes(
    profile: str, profiles: Mapping[str, Mapping[S, int]], overrides: Mapping[str, int]
) -> dict[S, int]:
    """Return the number of tasks of each split.

    Args:
        profile: name of a size.
        profiles: name → split → number of tasks.
        overrides: numbers of tasks that replace those of the profile.

    Raises:
        InputError: there is no such profile or split, or a number is negative.
    """
    if profile not in profiles:
        raise InputError(f"there is no profile {profile!r}; {nearest(profile, list(profiles))}")
    sizes = profiles[profile]
    for split, size in overrides.items():
        if split not in sizes:
            raise InputError(f"there is no split {split!r}; {nearest(split, list(sizes))}")
        if size < 0:
            raise InputError(f"split {split} cannot have {size} tasks")
    return {split: overrides.get(split, size) for split, size in sizes.items()}
