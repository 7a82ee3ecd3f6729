"""A folder in which commands run and are killed, and in which nothing may be left behind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fumehood.records.verify import verify
from tests.chaos.commands import RunningCommand

SAMPLE = Path(__file__).parents[2] / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
ATTEMPT_FIELDS = frozenset({"attempts", "wall_ms", "stdout_bytes", "stderr_bytes", "seal"})
"""Fields of a row that may differ between two runs of the same plan."""

Results = Mapping[str, Mapping[str, Any]]
"""By episode, the fields of its row that describe the agent."""


class Workspace:
    """Folders for owner records, temporary files, suites and runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.records, self.temporary = root / "n", root / "t"
        self.records.mkdir()
        self.temporary.mkdir()
        # A service started by root becomes another user, who must be able to enter.
        for folder in (root, self.records):
            folder.chmod(0o711)

    def start(
        self,
        *words: str,
        environment: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> RunningCommand:
        """Start a command in this workspace; see :class:`RunningCommand`."""
        variables = {
            "XDG_RUNTIME_DIR": str(self.records),
            "XDG_STATE_HOME": str(self.records),
            "TMPDIR": str(self.temporary),
            "FUMEHOOD_SIGNING_KEY": str(self.root / "key.pem"),
        }
        return RunningCommand(words, environment=variables | dict(environment or {}), before=before)

    def finish(
        self, *words: str, environment: Mapping[str, str] | None = None, status: int = 0
    ) -> str:
        """Run a command to its end, which must have this status, and return its output."""
        with self.start(*words, environment=environment) as command:
            assert command.wait(1800) == status, command.output()
            return command.output()

    def suite(self, name: str, tasks: int) -> Path:
        """Write a suite of the first tasks of the sample."""
        lines = SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)
        path = self.root / f"{name}.jsonl"
        path.write_text("".join(lines[:tasks]), encoding="utf-8")
        return path

    def orphans(self) -> list[str]:
        """Return the files in this workspace that belong to no run folder."""
        records = [path for path in self.records.rglob("*") if path.is_file()]
        return sorted(str(path) for path in [*records, *self.temporary.iterdir()])


@contextmanager
def workspace() -> Iterator[Workspace]:
    """Make a workspace with a path short enough for sockets."""
    with TemporaryDirectory(prefix="ch-", dir="/tmp") as folder:
        yield Workspace(Path(folder))


def rows_of(run: Path) -> list[Mapping[str, Any]]:
    """Return every row in the file of a run, including rows that later ones replace."""
    rows = run / "episodes.jsonl"
    lines = rows.read_text(encoding="ascii").splitlines() if rows.exists() else []
    return [json.loads(line) for line in lines]


def results_of(run: Path) -> Results:
    """Return the results of a run; every episode must have exactly one row that counts."""
    results: dict[str, Mapping[str, Any]] = {}
    for row in rows_of(run):
        if row["end"]["outcome"] == "infra":
            assert row["success"] is None, "an infrastructure failure was scored"
            continue
        assert row["episode"] not in results, f"{row['episode']} was counted twice"
        results[row["episode"]] = {
            name: value for name, value in row.items() if name not in ATTEMPT_FIELDS
        }
    return results


def infra_rows_of(run: Path) -> list[Mapping[str, Any]]:
    """Return the rows of infrastructure failures, including those that were resumed later."""
    return [row for row in rows_of(run) if row["end"]["outcome"] == "infra"]


def attempted_again(run: Path) -> int:
    """Return how many rows took more than one attempt."""
    return sum(row["attempts"] > 1 for row in rows_of(run))


def damage_of(run: Path) -> Sequence[str]:
    """Return the damage of a finished run: torn or missing files, and invalid seals."""
    torn = [f"{path}: half written" for path in run.rglob("*.partial")]
    return [*torn, *map(str, verify(run).damage)]
