"""What a reproduction rests on, and where that is not what the paper rests on. Said, whatever the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fumehood.report.paper.published import TASKS


@dataclass(frozen=True, slots=True)
class Data:
    """Where the tasks came from."""

    path: str
    files: tuple[tuple[str, str], ...]
    """Name and hex SHA-256 of each file that they were read from."""
    tasks: int
    generated: str | None
    """Profile, release and seed where a generator of ours made them; None for files from elsewhere."""
    published_as: str | None
    """Name of the published file whose bytes these are; None where no published digest is known."""


def statements(data: Data) -> Iterator[str]:
    """Yield one sentence for each thing that has to be known before numbers are compared."""
    yield from _about_tasks(data)
    if data.tasks != TASKS:
        yield f"The paper's split has {TASKS:,} tasks, this one {data.tasks:,}."
    yield (
        "The paper's numbers are of release 0.1 of the benchmark; the engine was specified from the source "
        "of the release after it, and replays runs recorded from that source call for call."
    )
    yield (
        "`heuristic` is rebuilt from the paper's description, because its source is not public: it calls "
        "each tool once with default arguments and stops. `schema_repair` follows the public source."
    )
    yield (
        "`policy_aware` is this project's own: the paper's scores the same as `schema_repair`, ours reads "
        "roles, denials and the remaining budget, so it is not expected to."
    )


def _about_tasks(data: Data) -> Iterator[str]:
    if data.generated is not None:
        yield (
            f"The tasks are NOT the paper's: this project generated them ({data.generated}), with the same "
            "record and the same kinds of faults, but others. Differences from the published numbers say "
            "nothing about agents or engine. To compare, pass the published files with `--data`."
        )
    elif data.published_as is not None:
        yield (
            f"The tasks are those published as `{data.published_as}`, checked by SHA-256. The paper's own "
            "numbers are of release 0.1, another set of tasks."
        )
    else:
        yield (
            f"The tasks were read from `{data.path}`. No digest of the paper's files is known, so whether "
            "these are they is for whoever downloaded them to say."
        )
    for name, digest in data.files:
        yield f"SHA-256 of `{name}`: `{digest}`."
