"""How a run is going: a bar on a terminal, plain lines elsewhere, nothing with --json."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fumehood.core.outcome import outcome_name
from fumehood.records.row import EpisodeRow

LINE_EVERY_S = 5.0
"""So often is a line printed where there is no terminal."""


class RunProgress:
    """Shows how many episodes are done and how they end. A context manager."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._total = self._done = self._successes = self._infra = 0
        self._printed_at = self._started_at = time.monotonic()
        self._folder: Path | None = None
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("[green]{task.fields[good]} good[/] [red]{task.fields[infra]}[/]"),
            TimeRemainingColumn(),
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
        if kind is KeyboardInterrupt and self._folder is not None:
            go_on = f"go on with: fumehood resume {self._folder}"
            line = f"{self._done} of {self._total} episodes are done; {go_on}"
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def wait(self, what: str) -> None:
        """Say what takes long."""
        if not self._quiet:
            self._console.print(what, highlight=False, markup=False)

    def start(self, folder: Path, engine: str, to_run: int, done: int) -> None:
        """Say what is about to happen, and where it is written."""
        self._folder = folder
        self._total = to_run
        self._started_at = time.monotonic()
        self._task = self._bar.add_task("episodes", total=to_run, good=0, infra="")
        if not self._quiet:
            before = f" ({done} done before)" if done else ""
            plural = "" if to_run == 1 else "s"
            line = f"{to_run} episode{plural}{before} into {folder}/: {engine}"
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def row(self, row: EpisodeRow) -> None:
        """Count one finished episode."""
        self._done += 1
        self._successes += row.score.success is True
        self._infra += row.is_infra
        infra = f"{self._infra} infra" if self._infra else ""
        self._bar.update(self._task, completed=self._done, good=self._successes, infra=infra)
        if row.is_infra and not self._quiet:
            self._console.print(
                f"{row.name}: {outcome_name(row.outcome)}: {getattr(row.outcome, 'detail', '')}",
                markup=False,
            )
        self._print_line()

    def _print_speed(self) -> None:
        if self._done and not self._quiet:
            seconds = max(time.monotonic() - self._started_at, 0.001)
            line = f"{self._done} in {seconds:.1f} s, {self._done / seconds:,.3g} episodes a second"
            self._console.print(line, highlight=False)

    def _print_line(self) -> None:
        if self._quiet or self._console.is_terminal:
            return
        now = time.monotonic()
        if now - self._printed_at >= LINE_EVERY_S or self._done == self._total:
            self._printed_at = now
            self._console.print(
                f"{self._done}/{self._total} episodes, {self._successes} good", highlight=False
            )
