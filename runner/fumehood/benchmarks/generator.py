"""Every generator there is, and what one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from fumehood.benchmarks.manifest import Manifest
from fumehood.benchmarks.proof import Judge
from fumehood.core.registry import Registry

Progress = Callable[[str, int, int], None]
"""Told now and then: split, tasks that are ready, tasks in all."""


def untold(split: str, ready: int, total: int) -> None:
    """Be told and say nothing."""


class Generator(Protocol):
    """Makes the tasks of one family."""

    def __call__(
        self,
        profile: str,
        seed: int,
        out: Path,
        *,
        splits: Mapping[str, int] | None = None,
        judge: Judge | None = None,
        progress: Progress = untold,
    ) -> Manifest:
        """Write a suite with its oracles, manifest and freeze file; the same arguments give the same bytes.

        Args:
            profile: name of a size.
            seed: any whole number.
            out: a folder that is not there yet, or empty.
            splits: other numbers of tasks for some splits.
            judge: scores evidence, so that every oracle is proven; None skips that proof.
            progress: told how far the work is.

        Raises:
            InputError: profile, splits or folder cannot be used.
            Unproven: a task is not what it claims to be; nothing is written.
        """
        ...


GENERATORS: Registry[Generator] = Registry(
    "generator",
    {
        "native": "fumehood.benchmarks.native.generate.suite:generate_suite",
        "toolmisuse": "fumehood.benchmarks.toolmisuse.generate.suite:generate_suite",
    },
)
