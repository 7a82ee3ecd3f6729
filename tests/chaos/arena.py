"""A corner of this machine of its own, in which commands are run and killed, and nothing may be left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fumehood.records.verify import verify
from tests.chaos.victims import Victim

SAMPLE = Path(__file__).parents[2] / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
OF_THE_ATTEMPT = frozenset({"attempts", "wall_ms", "stdout_bytes", "stderr_bytes", "seal"})
"""Fields of a row that may differ between two runs of the same plan."""

Story = Mapping[str, Mapping[str, Any]]
"""Of every episode, what its row says about the agent."""


class Arena:
    """Folders for notes, temporary files, suites and runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notes, self.temporary = root / "n", root / "t"
        self.notes.mkdir(mode=0o700)
        self.temporary.mkdir()
        # A service of root becomes another user, who must get through.
        for folder in (root, self.temporary):
            folder.chmod(0o711)

    def start(self, *words: str, environment: Mapping[str, str] | None = None) -> Victim:
        """Start a command in this corner."""
        own = {
            "XDG_RUNTIME_DIR": str(self.notes),
            "TMPDIR": str(self.temporary),
            "FUMEHOOD_SIGNING_KEY": str(self.root / "key.pem"),
        }
        return Victim(words, environment=own | dict(environment or {}))

    def finish(
        self, *words: str, environment: Mapping[str, str] | None = None, status: int = 0
    ) -> str:
        """Run a command to its end, which must have this status, and return what it said."""
        with self.start(*words, environment=environment) as command:
            assert command.wait(1800) == status, command.said()
            return command.said()

    def suite(self, name: str, tasks: int) -> Path:
        """Write a suite of the first tasks of the sample."""
        lines = SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)
        path = self.root / f"{name}.jsonl"
        path.write_text("".join(lines[:tasks]), encoding="utf-8")
        return path

    def leftovers(self) -> list[str]:
        """Return what lies about in this corner that belongs to no run folder."""
        found = [path for path in self.notes.rglob("*") if path.is_file()]
        return sorted(str(path) for path in [*found, *self.temporary.iterdir()])


@contextmanager
def arena() -> Iterator[Arena]:
    """Make a corner with a name short enough for sockets."""
    with TemporaryDirectory(prefix="ch-", dir="/tmp") as folder:
        yield Arena(Path(folder))


def rows_of(run: Path) -> list[Mapping[str, Any]]:
    """Return every row of a run as it stands there, also those that later ones replace."""
    rows = run / "episodes.jsonl"
    lines = rows.read_text(encoding="ascii").splitlines() if rows.exists() else []
    return [json.loads(line) for line in lines]


def story_of(run: Path) -> Story:
    """Return what a run says about its agents; every episode must have exactly one row that counts."""
    told: dict[str, Mapping[str, Any]] = {}
    for row in rows_of(run):
        if row["end"]["outcome"] == "infra":
            assert row["success"] is None, "a failure of ours was scored"
            continue
        assert row["episode"] not in told, f"{row['episode']} was done twice"
        told[row["episode"]] = {
            name: value for name, value in row.items() if name not in OF_THE_ATTEMPT
        }
    return told


def infra_rows_of(run: Path) -> list[Mapping[str, Any]]:
    """Return the rows of episodes that failed on our side, also those that were made good later."""
    return [row for row in rows_of(run) if row["end"]["outcome"] == "infra"]


def attempted_again(run: Path) -> int:
    """Return how many rows took more than one attempt."""
    return sum(row["attempts"] > 1 for row in rows_of(run))


def damage_of(run: Path) -> Sequence[str]:
    """Return what is wrong with a finished run: torn or missing files, and what its seals say."""
    torn = [f"{path}: half written" for path in run.rglob("*.partial")]
    return [*torn, *map(str, verify(run).damage)]
