"""Generates a whole suite: every task checked and proven, or nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fumehood.benchmarks.generator import Progress, untold
from fumehood.benchmarks.manifest import Manifest, SuiteWriter
from fumehood.benchmarks.proof import Judge
from fumehood.benchmarks.toolmisuse.generate.allocation import Slot, slot_0_1, slot_0_2
from fumehood.benchmarks.toolmisuse.generate.coherence import refuse_incoherent
from fumehood.benchmarks.toolmisuse.generate.profiles import profile_of
from fumehood.benchmarks.toolmisuse.generate.task import make_task
from fumehood.benchmarks.toolmisuse.oracles import FOLDER, OracleRecord
from fumehood.benchmarks.toolmisuse.record import Split, TaskRecord

GENERATOR = 2
"""Increases with every change after which the same seed gives other bytes."""

DEFAULT_SEED = 42

_SLOTS: Mapping[str, Callable[[Split, int, int], Slot]] = {"0.1": slot_0_1, "0.2": slot_0_2}

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
    """Write a suite in the published folder layout, with its oracles, manifest and freeze file.

    See :class:`~fumehood.benchmarks.generator.Generator` for arguments and errors.
    """
    chosen = profile_of(profile, splits)
    with SuiteWriter(out) as writer:
        for split, size in chosen.sizes.items():
            records: list[TaskRecord] = []
            oracles: list[OracleRecord] = []
            for record, oracle in _tasks(chosen.release, split, size, seed):
                refuse_incoherent(record, oracle, judge)
                records.append(record)
                oracles.append(oracle)
                if len(records) % _TOLD_EVERY == 0 or len(records) == size:
                    progress(split, len(records), size)
            writer.write_records(
                f"{split}/tasks.jsonl", (record.model_dump() for record in records)
            )
            writer.write_records(
                f"{FOLDER}/{split}.jsonl", (oracle.model_dump() for oracle in oracles)
            )
        return writer.seal(
            family="toolmisuse",
            profile=profile,
            release=chosen.release,
            generator=GENERATOR,
            seed=seed,
        )


def _tasks(
    release: str, split: Split, size: int, seed: int
) -> Iterator[tuple[TaskRecord, OracleRecord]]:
    for index in range(size):
        yield make_task(_SLOTS[release](split, index, seed), release, seed)
