"""Shows the progress of a run: a bar on a terminal, plain lines elsewhere, nothing with --json."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fumehood.core.outcome import outcome_name
from fumehood.orchestrator import launch
from fumehood.orchestrator.config import RunConfig
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader, folder_to_resume
from fumehood.report.safe_text import one_line


def _duration(seconds: float) -> str:
    """Return a duration as ``40 s``, ``12:05 min`` or ``3:07 h``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"


def timing(elapsed_s: float, done: int, total: int) -> str:
    """Return the elapsed time, the rate and the time left.

    Args:
        elapsed_s: since the first of them began, seconds.
        done: number that finished in this time.
        total: number to finish in this time.
    """
    elapsed = f"{_duration(elapsed_s)} elapsed"
    if not done:
        return elapsed
    left = f", {_duration((total - done) * elapsed_s / done)} left" if done < total else ""
    return f"{elapsed}, {done / max(elapsed_s, 0.001):,.3g} per second{left}"


LINE_EVERY_S = 5.0
"""Interval of the lines that are printed without a terminal."""


@contextmanager
def part_progress(
    title: str, total: int, unit: str, *, quiet: bool
) -> Iterator[Callable[[], None]]:
    """Yield a function that counts one finished part of a long operation.

    Args:
        title: what is done.
        total: number of parts.
        unit: name of the parts, such as ``episodes``.
        quiet: whether to show nothing.
    """
    console = Console(stderr=True)
    timed = TextColumn("{task.fields[timing]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), timed)
    is_bar = console.is_terminal and not quiet
    bar = Progress(*columns, console=console, transient=True)
    shown = bar.add_task(title, total=total, timing="")
    done, started_at = 0, time.monotonic()
    printed_at = started_at

    def count() -> None:
        nonlocal done, printed_at
        done += 1
        now = time.monotonic()
        times = timing(now - started_at, done, total)
        bar.update(shown, advance=1, timing=times)
        if not quiet and not is_bar and now - printed_at >= LINE_EVERY_S:
            printed_at = now
            console.print(f"{title}: {done} of {total} {unit}, {times}", highlight=False)

    if is_bar:
        bar.start()
    try:
        yield count
    finally:
        if is_bar:  # Otherwise it would print an empty line.
            bar.stop()


class RunProgress:
    """Shows how many episodes are finished and their results. A context manager."""

    def __init__(self, console: Console, *, quiet: bool, is_kept: bool = True) -> None:
        """Create the display.

        Args:
            console: receives the lines.
            quiet: whether to print no progress.
            is_kept: whether the run folder remains after an interruption.
        """
        self._console = console
        self._quiet = quiet
        self._is_kept = is_kept
        self._total = self._before = self._done = self._successes = self._infra = 0
        self._printed_at = self._started_at = time.monotonic()
        self._folder: Path | None = None
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("[green]{task.fields[solved]} solved[/] [red]{task.fields[infra]}[/]"),
            TextColumn("{task.fields[timing]}"),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
        self._print_speed()
        if isinstance(error, KeyboardInterrupt) and self._folder is not None:
            line = f"{self._done} of {self._total} episodes are finished"
            if self._done == self._total:
                line += ", but the run is not sealed"
            if self._is_kept:
                line += f"; continue with: fumehood resume {folder_to_resume(self._folder)}"
            self._console.print(one_line(line), highlight=False, markup=False, soft_wrap=True)

    def wait(self, step: str) -> None:
        """Print the name of a long step."""
        if not self._quiet:
            self._console.print(one_line(step), highlight=False, markup=False, soft_wrap=True)

    def start(self, folder: Path, engine: str, to_run: int, done: Sequence[EpisodeRow]) -> None:
        """Print how many episodes run, where, and on which engine.

        Args:
            folder: the run folder.
            engine: its name, with the reason for it; empty if no episode runs.
            to_run: number of episodes to run.
            done: rows of the episodes that are finished already.
        """
        self._folder = folder
        self._before = self._done = len(done)
        self._total = to_run + len(done)
        self._successes = sum(row.score.success is True for row in done)
        self._started_at = time.monotonic()
        self._task = self._bar.add_task(
            "episodes",
            total=self._total,
            completed=self._done,
            solved=self._successes,
            infra="",
            timing="",
        )
        if not self._quiet:
            before = f" ({len(done)} finished before)" if done else ""
            plural = "" if to_run == 1 else "s"
            where = f", engine {engine}" if engine else ""
            line = f"{to_run} episode{plural}{before}, run folder {folder}/{where}"
            self._console.print(one_line(line), highlight=False, markup=False, soft_wrap=True)

    def row(self, row: EpisodeRow) -> None:
        """Count one finished episode."""
        self._done += 1
        self._successes += row.score.success is True
        self._infra += row.is_infra
        infra = f"{self._infra} infra" if self._infra else ""
        self._bar.update(
            self._task,
            completed=self._done,
            solved=self._successes,
            infra=infra,
            timing=self._timing(),
        )
        if row.is_infra and not self._quiet:
            self._console.print(
                one_line(
                    f"{row.name}: {outcome_name(row.outcome)}: {getattr(row.outcome, 'detail', '')}"
                ),
                markup=False,
                soft_wrap=True,
            )
        self._print_line()

    def callbacks(self) -> launch.Progress:
        """Return the callbacks that a run takes."""
        return launch.Progress(self.start, self.row, self.wait)

    def _timing(self) -> str:
        elapsed_s, before = time.monotonic() - self._started_at, self._before
        return timing(elapsed_s, self._done - before, self._total - before)

    def _print_speed(self) -> None:
        ran = self._done - self._before
        if ran and not self._quiet:
            seconds = max(time.monotonic() - self._started_at, 0.001)
            plural = "" if ran == 1 else "s"
            line = f"{ran} episode{plural} in {seconds:.1f} s ({ran / seconds:,.3g} per second)"
            self._console.print(line, highlight=False)

    def _print_line(self) -> None:
        if self._quiet or self._console.is_terminal:
            return
        now = time.monotonic()
        if now - self._printed_at >= LINE_EVERY_S or self._done == self._total:
            self._printed_at = now
            self._console.print(
                f"{self._done}/{self._total} episodes, {self._successes} solved, {self._timing()}",
                highlight=False,
            )


def run_with_progress(
    config: RunConfig, path: Path, *, quiet: bool, is_kept: bool = True
) -> RunReader:
    """Return the content of a finished run: a new run, or an existing one that is resumed.

    Args:
        config: of the run.
        path: the run folder.
        quiet: whether to print no progress.
        is_kept: whether the run folder remains after an interruption.

    Raises:
        InputError: the folder holds a run with another plan, or the run cannot be executed.
        InfraError: the services do not start.
    """
    with RunProgress(Console(stderr=True), quiet=quiet, is_kept=is_kept) as progress:
        return launch.run_or_resume(config, path, progress.callbacks())
