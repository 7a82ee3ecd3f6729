"""Generates a native suite. Nothing is written unless every task passes its checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fumehood.benchmarks.generator import Progress, untold
from fumehood.benchmarks.manifest import Manifest, SuiteWriter
from fumehood.benchmarks.native.generate.allocation import slot_at
from fumehood.benchmarks.native.generate.checks import refuse_unfit
from fumehood.benchmarks.native.generate.task import make_task
from fumehood.benchmarks.native.record import record_to_json
from fumehood.benchmarks.proof import Judge
from fumehood.core.errors import InputError, nearest

GENERATOR = 2
"""Increases with every change after which the same seed gives other bytes."""

RELEASE = "1"

FIRST_NUMBERS: Mapping[str, int] = {"train": 100_000, "dev": 300_000, "test_public": 400_000}
"""Split → where the numbers begin that its names are made of, far enough apart to share none."""

PROFILES: Mapping[str, tuple[int, int, int]] = {
    "default": (24, 24, 24),
    "small": (240, 48, 48),
    "medium": (960, 192, 312),
    "large": (4992, 816, 1008),
}
"""Profile → tasks in train, dev and test. Multiples of 24, which is every world with every kind of fault."""

_TOLD_EVERY = 100


def generate_suite(
    profile: str,
    seed: int,
    out: Path,
    *,
    splits: Mapping[str, int] | None = None,
    judge: Judge | None = None,
    progress: Progress = untold,
) -> Manifest:
    """Write a suite, one file a split, with its manifest and freeze file.

    See :class:`~fumehood.benchmarks.generator.Generator` for arguments and errors.
    """
    sizes = _sizes(profile, splits or {})
    with SuiteWriter(out) as writer:
        for split, size in sizes.items():
            records = []
            for index in range(size):
                record = make_task(slot_at(split, index, FIRST_NUMBERS[split]), split, seed)
                refuse_unfit(record, judge)
                records.append(record)
                if len(records) % _TOLD_EVERY == 0 or len(records) == size:
                    progress(split, len(records), size)
            writer.write_records(f"{split}.jsonl", map(record_to_json, records))
        return writer.seal(
            family="native", profile=profile, release=RELEASE, generator=GENERATOR, seed=seed
        )


def _sizes(profile: str, overrides: Mapping[str, int]) -> dict[str, int]:
    if profile not in PROFILES:
        raise InputError(f"no profile is called {profile!r}; {nearest(profile, list(PROFILES))}")
    for split, size in overrides.items():
        if split not in FIRST_NUMBERS:
            raise InputError(f"no split is called {split!r}; {nearest(split, list(FIRST_NUMBERS))}")
        if size < 0:
            raise InputError(f"split {split} cannot have {size} tasks")
    return {**dict(zip(FIRST_NUMBERS, PROFILES[profile], strict=True)), **overrides}
