"""Generates a whole suite: every task checked and proven, or nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from runner.benchmarks.manifest import Manifest, SuiteWriter
from runner.benchmarks.proof import Judge
from runner.benchmarks.toolmisuse.generate.coherence import refuse_incoherent
from runner.benchmarks.toolmisuse.generate.profiles import profile_of
from runner.benchmarks.toolmisuse.generate.slots import Slot, slot_0_1, slot_0_2
from runner.benchmarks.toolmisuse.generate.task import make_task
from runner.benchmarks.toolmisuse.oracles import FOLDER, OracleRecord
from runner.benchmarks.toolmisuse.record import Split, TaskRecord

GENERATOR = 1
"""Grows with every change after which the same seed gives other bytes."""

DEFAULT_SEED = 42

Progress = Callable[[str, int, int], None]
"""Told now and then: split, tasks that are ready, tasks in all."""

_SLOTS: Mapping[str, Callable[[Split, int, int], Slot]] = {"0.1": slot_0_1, "0.2": slot_0_2}

_TOLD_EVERY = 100


def generate_suite(
    profile: str,
    seed: int,
    out: Path,
    *,
    splits: Mapping[str, int] | None = None,
    judge: Judge | None = None,
    progress: Progress = lambda split, ready, total: None,
) -> Manifest:
    """Write a suite in the published folder layout, with its oracles, manifest and freeze file.

    The same arguments give the same bytes on any machine.

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
            writer.write_records(f"{split}/tasks.jsonl", (record.model_dump() for record in records))
            writer.write_records(f"{FOLDER}/{split}.jsonl", (oracle.model_dump() for oracle in oracles))
        return writer.seal(
            family="toolmisuse", profile=profile, release=chosen.release, generator=GENERATOR, seed=seed
        )


def _tasks(release: str, split: Split, size: int, seed: int) -> Iterator[tuple[TaskRecord, OracleRecord]]:
    for index in range(size):
        yield make_task(_SLOTS[release](split, index, seed), release, seed)
