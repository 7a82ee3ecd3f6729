"""Runs during which the host fails, at seeded random moments: disks, streams, signals, limits.

After each failure a run says in one line what happened, has the right exit status, and leaves
nothing behind. Resuming it gives the results of a run without failures.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random

from fumehood.orchestrator.stop_signals import STOP_SIGNALS
from tests.chaos.commands import RunningCommand, services_of
from tests.chaos.workspace import Results, Workspace, damage_of, results_of, rows_of, workspace
from tests.parts.listening import wait_until

TASKS = 10
BAD_INPUT, INFRA = 2, 3
PATIENCE_S = 120.0
NO_DOCKER = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
"""Other users of this machine may leave containers at any time."""

Failure = Callable[[Workspace, Random], None]
"""Runs with a failure of the host, and checks the run."""


class FailingRun:
    """One run in a workspace, which fails and is resumed."""

    def __init__(self, space: Workspace, engine: str = "inline", at: Path | None = None) -> None:
        self.space = space
        self.path = at or space.root / "run"
        suite = str(space.suite("s", TASKS))
        agents = ("-a", "policy_aware", "-a", "schema_repair", "-j", "2")
        self._words = ("run", suite, *agents, "--engine", engine, "--out", str(self.path))

    def start(
        self, before: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> RunningCommand:
        """Start the run, or continue it if it has begun."""
        begun = (self.path / "run.json").exists()
        words = ("resume", str(self.path)) if begun else self._words
        return self.space.start(*words, environment=environment, before=before)

    def fail(
        self, *, before: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> RunningCommand:
        """Run to the end, and return the command that has ended."""
        with self.start(before, environment) as command:
            assert command.wait(PATIENCE_S) is not None, command.output()
            return command

    def wait_for_rows(self, command: RunningCommand) -> bool:
        """Wait until the first row is written; return whether the command still runs."""
        rows = self.path / "episodes.jsonl"
        wait_until(lambda: rows.exists() or not command.is_running, PATIENCE_S)
        return command.is_running

    def check_failure(self, output: str, status: int | None, expected: Sequence[int]) -> None:
        """Check what a run has reported and stored.

        Args:
            output: what it printed.
            status: its exit status.
            expected: statuses that are right.
        """
        assert status in expected, (status, output)
        assert "Traceback" not in output, output
        reports = [line for line in output.splitlines() if line.startswith("fumehood: ")]
        assert len(reports) <= 1, output
        assert status == 0 or reports, output
        self._check_rows()

    def check_resumed(self) -> None:
        """Resume, and check that nothing was lost, changed or left behind."""
        with self.start() as command:
            assert command.wait(PATIENCE_S) == 0, command.output()
        assert results_of(self.path) == quiet_results()
        assert damage_of(self.path) == []
        self.check_nothing_is_left()

    def check_nothing_is_left(self) -> None:
        """Check that services have ended and that no folder or record remains."""
        wait_until(lambda: self.space.orphans() == [])
        assert self.space.orphans() == []
        with self.space.start("doctor", "--orphans", environment=NO_DOCKER) as command:
            assert command.wait(PATIENCE_S) == 0, command.output()

    def _check_rows(self) -> None:
        quiet = quiet_results()
        for name, row in results_of(self.path).items() if self.path.exists() else ():
            assert row == quiet[name]


@cache
def quiet_results() -> Results:
    """Return the results of a run without failures; they are the same on every engine."""
    with workspace() as space:
        run = FailingRun(space)
        command = run.fail()
        assert command.status == 0
        return results_of(run.path)


def signals(space: Workspace, random: Random) -> None:
    """One signal or several, at any moment."""
    run = FailingRun(space, random.choice(("inline", "process")))
    # A test that runs in the background or with nohup ignores some, and its commands inherit that.
    usable = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    first = random.choice(usable)
    with run.start() as command:
        wait_until(lambda: command.handles_signals or not command.is_running)
        if random.random() < 0.7:
            run.wait_for_rows(command)
        command.wait(random.uniform(0, 1.5))
        for number in (first, *random.choices(usable, k=9)):
            command.send(number)
            if random.random() < 0.2:
                break
            command.wait(random.uniform(0, 0.2))
        status = command.wait(PATIENCE_S)
        run.check_failure(command.output(), status, (0, 128 + first))
    run.check_nothing_is_left()
    run.check_resumed()


def closed_streams(space: Workspace, random: Random) -> None:
    """Standard input, output and error are closed, in any combination."""
    closed = random.choice((">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "<&-"))
    run = FailingRun(space)
    command = run.fail(before=("sh", "-c", f'exec "$@" {closed}', "sh"))
    assert command.status == 0, closed
    run.check_resumed()


def full_streams(space: Workspace, random: Random) -> None:
    """Standard output and error are written to a full disk."""
    full, status = random.choice(
        ((">/dev/full", INFRA), ("2>/dev/full", 0), (">/dev/full 2>&1", INFRA))
    )
    run = FailingRun(space)
    command = run.fail(before=("sh", "-c", f'exec "$@" {full}', "sh"))
    assert command.status == status, full
    run.check_resumed()


def no_reader(space: Workspace, random: Random) -> None:
    """The reader of standard output or error ends at once."""
    run = FailingRun(space)
    pipe = random.choice(('"$@" | true', '"$@" 2>&1 >/dev/null | true'))
    command = run.fail(before=("bash", "-c", f"set -o pipefail; {pipe}", "bash"))
    assert command.status == 0, pipe
    run.check_resumed()


def file_size_limit(space: Workspace, random: Random) -> None:
    """No file may grow beyond a limit (setrlimit(2), RLIMIT_FSIZE)."""
    run = FailingRun(space)
    limit = f"ulimit -f {random.randint(2, 40)}"
    with run.start(("bash", "-c", f'{limit}; exec "$@"', "bash")) as command:
        status = command.wait(PATIENCE_S)
        run.check_failure(command.output(), status, (0, BAD_INPUT, INFRA))
    run.check_resumed()


def full_disk(space: Workspace, random: Random) -> None:
    """The disk of the run folder is full at any moment."""
    disk = space.root / "disk"
    with _disk(disk, random.randrange(4, 160, 4)):
        run = FailingRun(space, at=disk / "run")
        with run.start() as command:
            status = command.wait(PATIENCE_S)
            run.check_failure(command.output(), status, (0, BAD_INPUT, INFRA))
        run.check_nothing_is_left()
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        run.check_resumed()


def full_state_disk(space: Workspace, random: Random) -> None:
    """The disk of sockets and records is full at any moment."""
    disk = space.root / "state"
    variables = {"XDG_RUNTIME_DIR": str(disk)}
    with _disk(disk, random.randrange(4, 60, 4)):
        run = FailingRun(space, random.choice(("inline", "process")))
        with run.start(environment=variables) as command:
            status = command.wait(PATIENCE_S)
            run.check_failure(command.output(), status, (0, INFRA))
        assert [path for path in disk.rglob("*") if path.is_file()] == []
    run.check_resumed()


def damaged_folder(space: Workspace, random: Random) -> None:
    """The run folder is removed, renamed or emptied while the run writes it."""
    damage = random.choice((_remove, _rename, _remove_rows, _empty_rows))
    run = FailingRun(space)
    with run.start() as command:
        run.wait_for_rows(command)
        command.send(signal.SIGSTOP)
        wait_until(lambda: command.is_stopped or not command.is_running)
        # After the last row the run may have ended already, as far as it can know.
        if len(rows_of(run.path)) < 2 * TASKS:
            damage(run.path)
        command.send(signal.SIGCONT)
        status = command.wait(PATIENCE_S)
        output = command.output()
        assert status in (0, BAD_INPUT, INFRA), output
        assert "Traceback" not in output
        assert status or not _is_damaged(run.path), output
    run.check_nothing_is_left()
    if status:
        run.check_resumed()


def read_only_folder(space: Workspace, random: Random) -> None:
    """The run folder becomes read-only while the run writes it."""
    run = FailingRun(space, random.choice(("inline", "process")))
    with run.start() as command, _mounts() as mounted:
        if run.wait_for_rows(command):
            # A mount that a command writes to cannot become read-only, so another one does. The
            # mount over the run folder is a copy of it.
            unused = space.root / "unused"
            unused.mkdir()
            for step in (
                ["--bind", run.path, unused],
                ["-o", "remount,ro,bind", unused],
                ["--bind", unused, run.path],
            ):
                subprocess.run(["mount", *map(str, step)], check=True)
            mounted += [run.path, unused]
        status = command.wait(PATIENCE_S)
        run.check_failure(command.output(), status, (0, INFRA))
    run.check_nothing_is_left()
    run.check_resumed()


def few_descriptors(space: Workspace, random: Random) -> None:
    """The descriptor limit is lowered at any moment."""
    run = FailingRun(space, "process")
    limit = random.randint(12, 40)
    with run.start() as command:
        run.wait_for_rows(command)
        with suppress(ProcessLookupError):
            resource.prlimit(command.pid, resource.RLIMIT_NOFILE, (limit, limit))
        status = command.wait(PATIENCE_S)
        run.check_failure(command.output(), status, (0, BAD_INPUT, INFRA))
    run.check_resumed()


def odd_environment(space: Workspace, random: Random) -> None:
    """A POSIX locale, long or absent folders, or a read-only home."""
    long = space.root / ("x" * 60) / ("y" * 60)
    long.mkdir(parents=True)
    long.chmod(0o700)
    posix = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    environment = random.choice(
        (
            posix,
            {"TMPDIR": str(long)},
            {"XDG_RUNTIME_DIR": str(long)},
            {"TMPDIR": str(space.root / "absent")},
            {"HOME": "/proc/self"},
        )
    )
    run = FailingRun(space, random.choice(("inline", "process")))
    with run.start(environment=environment) as command:
        assert command.wait(PATIENCE_S) == 0, (environment, command.output())
    run.check_resumed()


def stopped_service(space: Workspace, random: Random) -> None:
    """The services are stopped for a time."""
    run = FailingRun(space, random.choice(("inline", "process")))
    with run.start() as command:
        run.wait_for_rows(command)
        services = services_of(command)
        for service in services:
            service.kill(signal.SIGSTOP)
        command.wait(random.uniform(0.5, 4))
        for service in services:
            service.kill(signal.SIGCONT)
        status = command.wait(PATIENCE_S)
        run.check_failure(command.output(), status, (0,))
    run.check_nothing_is_left()
    run.check_resumed()


FOR_ROOT: tuple[Failure, ...] = (full_disk, full_state_disk, read_only_folder)
"""Failures that need a mount."""
FAILURES: tuple[Failure, ...] = (
    *(signals, closed_streams, full_streams, no_reader, file_size_limit, damaged_folder),
    *(few_descriptors, odd_environment, stopped_service),
)


def failures() -> tuple[Failure, ...]:
    """Return the failures that this user can cause."""
    return (*FAILURES, *(FOR_ROOT if os.geteuid() == 0 else ()))


def run_with_failure(failure: Failure, seed: int) -> None:
    """Run with one failure in a new workspace."""
    with workspace() as space:
        failure(space, Random(f"{failure.__name__}/{seed}"))


@contextmanager
def _disk(at: Path, size_kb: int) -> Iterator[None]:
    """Mount a small disk, which other users can enter."""
    at.mkdir()
    options = f"size={size_kb}k,mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


@contextmanager
def _mounts() -> Iterator[list[Path]]:
    mounted: list[Path] = []
    try:
        yield mounted
    finally:
        for path in mounted:
            subprocess.run(["umount", str(path)], check=True)


def _remove(run: Path) -> None:
    shutil.rmtree(run, ignore_errors=True)


def _rename(run: Path) -> None:
    run.rename(run.with_name("renamed"))


def _remove_rows(run: Path) -> None:
    (run / "episodes.jsonl").unlink()


def _empty_rows(run: Path) -> None:
    (run / "episodes.jsonl").write_bytes(b"")


def _is_damaged(run: Path) -> bool:
    return not run.exists() or bool(damage_of(run))
