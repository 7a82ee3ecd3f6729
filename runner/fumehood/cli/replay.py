"""``fumehood replay``."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import click

from fumehood.core.episode_spec import DataMode, EpisodeSpec
from fumehood.core.errors import InputError
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.models import bounded
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.replay import Divergence, Replayed, replay_episode
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.orchestrator.setup import config_of, planned_of
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.report.safe_text import safe

DIFFERS = 1


@dataclass(frozen=True, slots=True)
class _Episode:
    row: EpisodeRow
    planned: PlannedEpisode


@click.command()
@click.argument("run_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--episode", multiple=True, help="AGENT/TASK/TRIAL, or a part of it. Repeatable.")
@click.option("--concurrency", "-j", default=2, show_default=True, help="Episodes at once.")
@click.option("--service-workers", default=1, show_default=True, help="Sandbox service processes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def replay(
    run_dir: Path, episode: tuple[str, ...], concurrency: int, service_workers: int, as_json: bool
) -> int:
    """Make the recorded calls of the run in DIR again, without its agents, and compare.

    Drives a sandbox service over its sockets and names, for each episode that goes otherwise, the first call
    whose result or state differs. Exit status 1 where one does, or
    where an episode of the plan has no row. Nothing goes to the network: pages come from the run's recording.
    """
    folder = RunFolder.open(run_dir)
    rows = folder.rows()
    planned = [_offline(one) for one in planned_of(folder)]
    chosen = _chosen(planned, [row for row in rows if row.trace], episode)
    missing = _missing(planned, rows, episode)
    config = config_of(folder)

    def play(one: _Episode) -> Replayed:
        try:
            recorded = folder.read_trace(one.row)
        except InputError as error:
            return Replayed(Divergence(None, "", str(error)), False)
        return replay_episode(_spec(one.planned, config), recorded, pool, one.row.trace_digest)

    worlds = sorted({one.planned.case.task.world for one in chosen})
    with (
        ServicePool(service_workers, worlds=worlds) as pool,
        ThreadPoolExecutor(concurrency) as threads,
    ):
        replayed = list(threads.map(play, chosen))
    different = [(one.row, each.divergence) for one, each in zip(chosen, replayed, strict=True)]
    differences = [(row, divergence) for row, divergence in different if divergence is not None]
    identical = sum(each.is_identical for each in replayed)
    if as_json:
        click.echo(
            json.dumps(_report(run_dir, len(chosen), identical, missing, differences), indent=2)
        )
    else:
        for row, divergence in differences:
            click.echo(safe(f"{row.name}: {divergence}"))
        for name in missing:
            click.echo(safe(f"{name}: planned, and there is no row of it"))
        click.echo(
            f"{len(chosen)} replayed, {identical} byte by byte the same, {len(differences)} not"
        )
    return DIFFERS if differences or missing else 0


def _chosen(
    planned: list[PlannedEpisode], rows: list[EpisodeRow], wanted: tuple[str, ...]
) -> list[_Episode]:
    for part in wanted:
        if not any(part in str(row.name) for row in rows):
            raise InputError(
                f"no episode with a trace is called {part!r}; list them with: fumehood show DIR"
            )
    by_name = {one.name: one for one in planned}
    chosen = [row for row in rows if _is_wanted(row.name, wanted)]
    for row in chosen:
        if row.name not in by_name:
            raise InputError(f"{row.name} is no episode of this run; see: fumehood verify DIR")
    return [_Episode(row, by_name[row.name]) for row in chosen]


def _missing(
    planned: list[PlannedEpisode], rows: list[EpisodeRow], wanted: tuple[str, ...]
) -> list[EpisodeName]:
    there = {row.name for row in rows}
    return [one.name for one in planned if one.name not in there and _is_wanted(one.name, wanted)]


def _is_wanted(name: EpisodeName, wanted: tuple[str, ...]) -> bool:
    return not wanted or any(part in str(name) for part in wanted)


def _offline(one: PlannedEpisode) -> PlannedEpisode:
    """Return an episode that goes to no network: what was recorded comes from its recording.

    Raises:
        InputError: it was live, so nothing was kept that it could be played from.
    """
    around = one.data_source
    if around is None or around.data_mode in (DataMode.OFFLINE, DataMode.REPLAY):
        return one
    if around.data_mode is DataMode.LIVE:
        raise InputError(
            "this run was live: what the network said was not kept, so it cannot be replayed"
        )
    return replace(one, data_source=replace(around, data_mode=DataMode.REPLAY))


def _spec(one: PlannedEpisode, config: RunConfig) -> EpisodeSpec:
    """Return an episode as the run opened it."""
    spec = one.to_spec(round(config.wall_time_s * 1000))
    return bounded(spec, config.models) if config.models is not None else spec


def _report(
    run_dir: Path,
    replayed: int,
    identical: int,
    missing: list[EpisodeName],
    differences: list[tuple[EpisodeRow, Divergence]],
) -> dict[str, object]:
    return {
        "run": str(run_dir),
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
