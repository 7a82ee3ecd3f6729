"""``fumehood replay``."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import click

from fumehood.cli.output import PATH, print_json, say
from fumehood.cli.reading import (
    find_episode,
    hint_of_episodes,
    read_run,
    unverified_option,
    verification_of,
)
from fumehood.core.episode_spec import DataMode, EpisodeSpec
from fumehood.core.errors import InputError
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import INLINE
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.models import bounded
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.replay import Divergence, Replayed, replay_episode
from fumehood.orchestrator.run_plan import config_of, planned_of
from fumehood.orchestrator.service_pool import ServiceOptions, ServicePool
from fumehood.orchestrator.workspaces.episode_boxes import without_tools
from fumehood.orchestrator.workspaces.plans import workspaces_of
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.scorers.verdict import AGENT_BOX, SHARED_BOX

DIFFERS = 1


@dataclass(frozen=True, slots=True)
class _Episode:
    row: EpisodeRow
    planned: PlannedEpisode


@click.command()
@click.argument("run_dir", metavar="DIR", type=PATH)
@click.argument("one", metavar="[EPISODE]", required=False)
@click.option("--episode", multiple=True, help="AGENT/TASK/TRIAL, or a part. Repeatable.")
@click.option(
    "--concurrency",
    "-j",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Concurrent episodes.",
)
@click.option(
    "--service-workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Service processes.",
)
@unverified_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay(
    run_dir: Path,
    one: str | None,
    episode: tuple[str, ...],
    concurrency: int,
    service_workers: int,
    unverified: bool,
    as_json: bool,
) -> int:
    """Repeat the recorded calls of a run without its agents.

    Sends the calls to a service and compares results and states. Prints the first difference of
    each episode. Exit status 1 if an episode differs or has no row. The command does not use the
    network: pages come from the recording of the run. An episode in a workspace gets a new one.

    EPISODE names one episode, as in `fumehood show`; --episode selects all that contain a text.

    \b
    Examples:
      fumehood replay runs/20260101-120000 policy_aware/crud_gold
      fumehood replay runs/20260101-120000 --episode policy_aware
    """
    folder = read_run(run_dir, unverified=unverified)
    rows = folder.rows()
    planned = [_offline(item) for item in planned_of(folder)]
    traced = [row for row in rows if row.trace]
    is_selected = _selection(traced, one, episode, run_dir)
    chosen = _chosen(planned, [row for row in traced if is_selected(row.name)], run_dir)
    missing = _without_row([item.name for item in planned if is_selected(item.name)], rows)
    config = config_of(folder)
    cases = [selected.planned.case for selected in chosen]
    labels = owner_labels(str(folder.manifest().get("run", "")))
    engine = str(folder.manifest().get("engine", ""))

    def play(selected: _Episode) -> Replayed:
        try:
            recorded = folder.read_trace(selected.row)
        except InputError as error:
            return Replayed(Divergence(None, "", str(error)), False)
        spec = _spec(selected.planned, config)
        if selected.row.score.metrics.get(AGENT_BOX) == SHARED_BOX:
            spec = without_tools(spec)
        return replay_episode(
            spec,
            recorded,
            pool,
            selected.row.trace_digest,
            workspaces.plan(selected.planned.case, labels, pool.owner_uid),
        )

    worlds = sorted({case.task.world for case in cases})
    options = ServiceOptions(worlds=worlds, inline=_is_inline(folder))
    with (
        workspaces_of(
            engine, config.runtime, cases, say, shared_score=config.shared_score
        ) as workspaces,
        ServicePool(service_workers, options) as pool,
        ThreadPoolExecutor(concurrency) as threads,
    ):
        replayed = list(threads.map(play, chosen))
    different = [
        (selected.row, result.divergence) for selected, result in zip(chosen, replayed, strict=True)
    ]
    differences = [(row, divergence) for row, divergence in different if divergence is not None]
    identical = sum(result.is_identical for result in replayed)
    if as_json:
        print_json(_report(folder, len(chosen), identical, missing, differences))
    else:
        _print_differences(folder, len(chosen), identical, missing, differences)
    return DIFFERS if differences or missing else 0


def _is_inline(folder: RunReader) -> bool:
    """Return whether services may repeat the calls of a run in their own process.

    Only the signer of the run states that no untrusted agent made the calls.
    """
    return folder.manifest().get("engine") == INLINE and not folder.provenance.problem


def _selection(
    rows: list[EpisodeRow], one: str | None, parts: tuple[str, ...], folder: Path
) -> Callable[[EpisodeName], bool]:
    """Return whether an episode is selected.

    Args:
        rows: of the episodes with a trace.
        one: the argument EPISODE.
        parts: of ``--episode``.
        folder: of the run, for messages.

    Raises:
        InputError: nothing matches, or both are given.
    """
    if one is not None:
        if parts:
            raise InputError(f"--episode has no effect on one episode: remove it, or remove {one}")
        wanted = find_episode(rows, one, folder).name
        return lambda name: name == wanted
    for part in parts:
        if not any(part in str(row.name) for row in rows):
            raise InputError(
                f"no episode with a trace matches {part!r}; {hint_of_episodes(rows, part, folder)}"
            )
    return lambda name: not parts or any(part in str(name) for part in parts)


def _chosen(planned: list[PlannedEpisode], rows: list[EpisodeRow], folder: Path) -> list[_Episode]:
    by_name = {item.name: item for item in planned}
    for row in rows:
        if row.name not in by_name:
            raise InputError(
                f"{row.name} is not an episode of this run; see: fumehood verify {folder}"
            )
    return [_Episode(row, by_name[row.name]) for row in rows]


def _without_row(planned: list[EpisodeName], rows: list[EpisodeRow]) -> list[EpisodeName]:
    with_row = {row.name for row in rows}
    return [name for name in planned if name not in with_row]


def _offline(planned: PlannedEpisode) -> PlannedEpisode:
    """Return an episode that reads from the recording instead of the network.

    Raises:
        InputError: the episode was live and not recorded.
    """
    source = planned.data_source
    if source is None or source.data_mode in (DataMode.OFFLINE, DataMode.REPLAY):
        return planned
    if source.data_mode is DataMode.LIVE:
        raise InputError("this run was live without a recording, so it cannot be replayed")
    return replace(planned, data_source=replace(source, data_mode=DataMode.REPLAY))


def _spec(planned: PlannedEpisode, config: RunConfig) -> EpisodeSpec:
    """Return the episode as the run started it."""
    spec = planned.to_spec(round(config.wall_time_s * 1000))
    if config.models is None:
        return spec
    return bounded(spec, config.models, has_team=config.team is not None)


def _print_differences(
    folder: RunReader,
    replayed: int,
    identical: int,
    missing: list[EpisodeName],
    differences: list[tuple[EpisodeRow, Divergence]],
) -> None:
    if folder.provenance.mark:
        say(folder.provenance.mark)
    for row, divergence in differences:
        say(f"{row.name}: {divergence}")
    for name in missing:
        say(f"{name}: planned, but has no row")
    counts = f"{replayed} replayed, {identical} identical, {len(differences)} different"
    if rest := replayed - identical - len(differences):
        counts += f", {rest} with equal calls: a replay repeats no model or permission request"
    say(counts)


def _report(
    folder: RunReader,
    replayed: int,
    identical: int,
    missing: list[EpisodeName],
    differences: list[tuple[EpisodeRow, Divergence]],
) -> dict[str, object]:
    return {
        "run": str(folder.path),
        "verification": verification_of([folder]),
        "replayed": replayed,
        "identical": identical,
        "missing": [str(name) for name in missing],
        "differences": [
            {
                "episode": str(row.name),
                "call": divergence.call,
                "tool": divergence.tool,
                "difference": divergence.difference,
            }
            for row, divergence in differences
        ],
    }
