"""Shards: parts of the episodes of a run, which several machines play.

The parts follow from the names of the planned episodes only, so every machine computes the same
ones. They are drawn by a hash, so that each part has episodes of all agents and kinds of tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from fumehood.core.errors import InputError
from fumehood.records.row import EpisodeName

AUTO = "auto"
"""Takes the number of the shard from the variables of a scheduler."""
_SHARD = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of ``count`` disjoint parts of a run."""

    number: int
    """From 1."""
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that ``K/N`` names.

        Raises:
            ValueError: the text has another form, or K is greater than N.
        """
        match = _SHARD.fullmatch(text)
        if match is None or int(match[1]) > int(match[2]):
            raise ValueError(f"must be K/N, such as 3/16, with K from 1 to N, not {text!r}")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def part_of(self, names: Iterable[EpisodeName]) -> frozenset[EpisodeName]:
        """Return the episodes of this shard; the sizes of all shards differ by at most one."""
        drawn = sorted(names, key=lambda name: sha256(name.identifier.encode()).digest())
        return frozenset(drawn[self.number - 1 :: self.count])


def shard_setting(text: str, variables: Mapping[str, str]) -> str:
    """Return the shard that a flag names, as ``K/N``.

    ``auto`` reads the variables of a job array of Slurm (sbatch(1)). ``auto/N`` also reads the
    index that Kubernetes gives to a pod of an indexed Job, which does not state their number.

    Args:
        text: ``K/N``, ``auto`` or ``auto/N``.
        variables: of the environment.

    Raises:
        InputError: the text has another form, or a variable is missing or contradicts the others.
    """
    word, _, count = text.partition("/")
    try:
        if word != AUTO:
            return str(Shard.parse(text))
        if "SLURM_ARRAY_TASK_ID" in variables:
            given = (variables[f"SLURM_ARRAY_TASK_{name}"] for name in ("ID", "MIN", "COUNT"))
            task, first, tasks = map(int, given)
            index, rest = divmod(task - first, int(variables.get("SLURM_ARRAY_TASK_STEP", "1")))
            # Without this check, a part of an array that is submitted again would be numbered anew.
            if rest or count not in ("", str(tasks)):
                raise InputError(
                    f"--shard {text}: the job array has {tasks} tasks from {first}, and this is "
                    f"{task}: name the shard, such as --shard 3/{count or 16}"
                )
            return str(Shard.parse(f"{index + 1}/{tasks}"))
        return str(Shard.parse(f"{int(variables['JOB_COMPLETION_INDEX']) + 1}/{count}"))
    except (KeyError, ValueError) as error:
        if word != AUTO:
            raise InputError(
                f"--shard {error}; with Slurm or Kubernetes, use auto or auto/N"
            ) from None
        raise InputError(
            f"--shard {text}: use auto in a job array of Slurm, auto/N with the "
            "number N of completions in an indexed Job of Kubernetes, and K/N elsewhere"
        ) from None
