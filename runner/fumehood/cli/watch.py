"""``fumehood watch``."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import click

from fumehood.cli.findings import findings_of
from fumehood.cli.output import PATH, print_json, report_extra, say
from fumehood.cli.page_server import PageServer, Served
from fumehood.cli.reading import unique_labels, unverified_option
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.orchestrator.experiment import runs_in
from fumehood.orchestrator.rescore import rescore
from fumehood.orchestrator.stop_signals import Stopped
from fumehood.records.run_memory import RunMemory
from fumehood.records.run_reader import Accept, RunReader, is_experiment, open_run
from fumehood.records.trust import Trust

LOOK_S = 1.0
"""Seconds between two checks of the folder."""
BUSY_SHARE = 0.4
"""Largest share of the time in which pages are built."""
TRIES = 3
"""Failed checks before the page states the failure: a check can fail while a run is written."""
WATCHED = ("episodes.jsonl", "seal.json")


class Watch:
    """Builds the pages of a run, or of the runs of an experiment, when there are new rows."""

    def __init__(self, folder: Path, accept: Accept) -> None:
        self._folder = folder
        self._accept = accept
        self._memories = defaultdict[Path, RunMemory](RunMemory)
        self.served = Served()
        self._stamp: object = None
        self._failures = 0

    def build(self) -> None:
        """Verify and score the new rows, verify changed files again, and show the pages.

        When a run is finished, all its rows and traces are verified again.

        Raises:
            InputError: a run does not verify.
        """
        from fumehood.report.page.render import render
        from fumehood.report.runs import join_run, subjects_of
        from fumehood.report.sections.registry import build_sections

        stamp, paths = self._now()
        if not paths and is_experiment(self._folder):
            raise InputError(f"{self._folder}: no run of the experiment has begun; try again later")
        paths = paths or [self._folder]
        readers = [
            open_run(path, Trust.of_user(), self._accept, self._memories[path]) for path in paths
        ]
        runs = [
            join_run(reader, rescore(reader), label)
            for reader, label in zip(readers, unique_labels(paths), strict=True)
        ]
        subjects = subjects_of(runs)
        first = subjects[0] if subjects and len(paths) == 1 else None
        findings = findings_of(runs, subjects, first)
        state: JsonObject = {**self._state(readers), "version": self.served.number + 1}
        pages = render(findings, build_sections(findings), live=state)
        by_path = {page.path: page.html.encode() for page in pages}
        self.served.show({**by_path, "": by_path["report.html"]}, state)
        self._stamp, self._failures = stamp, 0

    def build_if_changed(self) -> None:
        """Build if a file changed and a browser listens; show why a run no longer verifies."""
        if not self.served.listeners:
            return
        try:
            if self._is_due():
                self.build()
        except InputError as error:
            self._failures += 1
            if self._failures >= TRIES:
                with suppress(InputError):
                    self._stamp = self._now()[0]
                text = f"This page is of an earlier state: {error}"
                state: JsonObject = {**self.served.state, "text": text, "is_problem": True}
                if state != self.served.state:
                    self.served.show(self.served.pages, state)

    def _is_due(self) -> bool:
        is_retry = 0 < self._failures < TRIES
        is_stale = any(memory.is_stale() for memory in self._memories.values())
        return is_retry or is_stale or self._now()[0] != self._stamp

    def _now(self) -> tuple[object, list[Path]]:
        """Return a value that changes with the runs, and their folders."""
        paths = [path for path in runs_in(self._folder) if (path / "run.json").is_file()]
        files = [path / name for path in paths for name in WATCHED]
        return [(s.st_mtime_ns, s.st_size) for f in files if f.exists() for s in (f.stat(),)], paths

    def _state(self, readers: list[RunReader]) -> JsonObject:
        runs = [reader.provenance for reader in readers]
        done, planned = sum(run.episodes for run in runs), sum(run.planned for run in runs)
        waiting = len(runs_in(self._folder)) - len(runs)
        is_final = not waiting and all(run.is_finished for run in runs)
        verb = "run has" if waiting == 1 else "runs have"
        more = f"; {waiting} {verb} not begun" if waiting else ""
        text = (
            f"Finished: {done:,} episodes."
            if is_final
            else f"Not finished: {done:,} of {planned:,} episodes{more}."
        )
        return {"text": text, "is_final": is_final, "is_problem": False}


@click.command()
@click.argument("run_dir", metavar="DIR", type=PATH)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port.  [default: a free one]"
)
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
def watch(run_dir: Path, port: int, unverified: bool, as_json: bool) -> None:
    """Serve the report page of a run or experiment while it goes on.

    Prints an address for a browser of this machine. Every user who knows the address can read the
    page. The page updates itself. Every update verifies the new episodes and changed files; the
    finished run is verified in full. Ctrl-C ends the command; the run goes on.

    \b
    Example:
      fumehood watch runs/20260101-120000
    """
    with report_extra():
        import fumehood.report.page.render  # noqa: F401
    watched = Watch(run_dir, Accept.UNVERIFIED if unverified else Accept.VERIFIED)
    try:
        say(f"fumehood: reading {run_dir}", err=True)
        watched.build()
        with _server(watched.served, port) as server:
            if as_json:
                print_json({"run": str(run_dir), "url": server.url})
            else:
                say(server.url)
            say(f"fumehood: {watched.served.state['text']} Ctrl-C ends this command.", err=True)
            while True:
                started = time.monotonic()
                watched.build_if_changed()
                spent_s = time.monotonic() - started
                time.sleep(max(LOOK_S, spent_s * (1 / BUSY_SHARE - 1)))
    except Stopped:
        return


def _server(served: Served, port: int) -> PageServer:
    try:
        return PageServer(served, port)
    except OSError as error:
        raise InputError(f"--port {port} cannot be used: {error.strerror}") from None
