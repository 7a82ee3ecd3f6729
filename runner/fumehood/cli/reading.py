"""Opens runs for commands that read them, after their seals were verified."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fumehood.cli.output import say
from fumehood.core.errors import InputError
from fumehood.core.json_values import Json
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import Accept, RunReader, is_experiment, open_run
from fumehood.records.trust import Trust

if TYPE_CHECKING:
    from fumehood.report.runs import Run

unverified_option = click.option(
    "--unverified", is_flag=True, help="Read a run that does not verify, and mark every output."
)


def read_run(path: Path, *, unverified: bool) -> RunReader:
    """Verify a run, and print on standard error whose key signed it.

    Raises:
        InputError: the path is not a run folder, or does not verify and is not ``unverified``.
    """
    run = _verified(path, unverified=unverified)
    say(f"fumehood: {run.provenance}", err=True)
    return run


def _verified(path: Path, *, unverified: bool) -> RunReader:
    accept = Accept.UNVERIFIED if unverified else Accept.VERIFIED
    return open_run(path, Trust.of_user(), accept)


def read_runs(paths: Iterable[Path], *, unverified: bool) -> list[Run]:
    """Verify runs, also those of experiments, and score them again; each run once.

    Prints one line on standard error for all verified runs of one signer.

    Raises:
        InputError: as :func:`read_run`; or a trace is missing or was changed.
    """
    from fumehood.orchestrator.rescore import rescore
    from fumehood.report.runs import join_run

    folders = runs_of(paths)
    readers = [_verified(folder, unverified=unverified) for folder in folders]
    by_state: dict[str, list[RunReader]] = {}
    for run in readers:
        state = str(run.provenance).removeprefix(f"{run.provenance.folder} is ")
        by_state.setdefault(state, []).append(run)
    for state, (first, *others) in by_state.items():
        line = f"{1 + len(others)} runs are {state}" if others else first.provenance
        say(f"fumehood: {line}", err=True)
    labels = unique_labels(folders)
    return [join_run(run, rescore(run), label) for run, label in zip(readers, labels, strict=True)]


def runs_of(paths: Iterable[Path]) -> list[Path]:
    """Return the run folders of runs and experiments, each once, as they were named."""
    named: dict[Path, Path] = {}
    for run in chain.from_iterable(map(folders_of, paths)):
        named.setdefault(run.resolve(), run)
    return list(named.values())


def folders_of(path: Path) -> list[Path]:
    """Return the run folders of an experiment; for another folder, that folder.

    Raises:
        InputError: as :func:`fumehood.orchestrator.experiment.runs_in`.
    """
    if not is_experiment(path):
        return [path]
    # The import of what starts an experiment takes longer than reading hundreds of episodes.
    from fumehood.orchestrator.experiment import runs_in

    return runs_in(path)


def unique_labels(paths: Sequence[Path]) -> list[str]:
    """Return the folder names of runs; equal names get a number that makes them unique."""
    names = [path.resolve().name for path in paths]
    taken = {name for name in names if names.count(name) == 1}
    labels = []
    for at, name in enumerate(names, 1):
        label = name
        if names.count(name) > 1:
            # Another folder may be named like a folder with its number.
            label = next(new for n in count(at) if (new := f"{name}#{n}") not in taken)
            taken.add(label)
        labels.append(label)
    return labels


def mark_of(runs: Iterable[RunReader]) -> str:
    """Return the text that marks outputs about these runs; empty if all are verified."""
    return "; ".join(dict.fromkeys(run.provenance.mark for run in runs if run.provenance.mark))


def verification_of(runs: Iterable[RunReader]) -> list[Json]:
    """Return what verification found out about each run, for JSON output."""
    return [{"run": str(run.path), **run.provenance.to_json()} for run in runs]


def find_episode(rows: Sequence[EpisodeRow], wanted: str, folder: Path) -> EpisodeRow:
    """Return the row of AGENT/TASK/TRIAL, of AGENT/TASK, or of a part that only one episode has.

    Args:
        rows: of the run.
        wanted: AGENT/TASK/TRIAL, or a part of it; a whole AGENT/TASK is no part of another name.
        folder: of the run, for the message.

    Raises:
        InputError: no episode or several episodes match.
    """
    matches = (
        [row for row in rows if str(row.name) == wanted]
        or [row for row in rows if f"{row.name.agent}/{row.name.task}" == wanted]
        or [row for row in rows if wanted in str(row.name)]
    )
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise InputError(f"no episode matches {wanted!r}; {hint_of_episodes(rows, wanted, folder)}")
    names = ", ".join(str(row.name) for row in matches[:3])
    raise InputError(
        f"{wanted!r} matches {len(matches)} episodes, such as {names}; name one as AGENT/TASK/TRIAL"
    )


def hint_of_episodes(rows: Sequence[EpisodeRow], wanted: str, folder: Path) -> str:
    """Return the most similar name of an episode, if any, and the command that lists all."""
    near = get_close_matches(wanted, [str(row.name) for row in rows], n=1, cutoff=0.8)
    suggestion = f"did you mean {near[0]!r}? " if near else ""
    return f"{suggestion}list them with: fumehood show {shlex.quote(str(folder))}"
