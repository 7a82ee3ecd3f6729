"""Starts, resumes and finishes runs."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.score import UNGRADED
from fumehood.engines.code_digest import code_digest
from fumehood.engines.engine import AgentSource, Image
from fumehood.engines.orphans import reap_local
from fumehood.engines.ownership import owner_is_alive
from fumehood.orchestrator.agents import NamedAgent, code_differences, identity_of
from fumehood.orchestrator.config import MACHINE_SETTINGS, RunConfig
from fumehood.orchestrator.data_source import lacks_search
from fumehood.orchestrator.judging import RunJudge
from fumehood.orchestrator.models import ModelRun
from fumehood.orchestrator.monitors import check_unchanged, monitor_facts
from fumehood.orchestrator.places import Place, prepared_place
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.run import Run, RunLimits, missing
from fumehood.orchestrator.run_plan import config_of
from fumehood.orchestrator.setup import RunSetup
from fumehood.orchestrator.stop_signals import StopRequests, deferred_stop_signals
from fumehood.orchestrator.workspaces.checkpoints import check_not_kept
from fumehood.orchestrator.workspaces.plans import is_inside
from fumehood.records.files import file_at, make_private_folder
from fumehood.records.frozen_suite import suite_digest
from fumehood.records.redaction import Redaction
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.records.run_folder import RunFolder, one_writer
from fumehood.records.run_reader import Accept, RunReader, open_run, open_written
from fumehood.records.seals import SealedRow, Signing
from fumehood.records.shard_seals import require_own_shards
from fumehood.records.signing_key import user_key
from fumehood.records.trust import Trust
from fumehood.records.verify import verify
from fumehood.version import __version__

DAMAGED = Infra(
    InfraKind.ORCHESTRATOR, "its trace or output was torn or missing, so it was run again"
)

GROUPED_MAX = 64
"""Inline episodes that a service plays at once."""

PACKED_MIN = 1000
"""If a command plays at least this many inline episodes, their traces share a file."""

_log = structlog.get_logger("fumehood.run")


@dataclass(frozen=True, slots=True)
class Progress:
    """Callbacks for the progress of a run, all called from one thread."""

    on_start: Callable[[Path, str, int, Sequence[EpisodeRow]], None]
    """Arguments: run folder, engine with the reason for it, episodes to run, rows of those done."""
    on_row: Callable[[EpisodeRow], None]
    on_wait: Callable[[str], None]
    """Argument: one line that describes a long step, before the first episode or after a signal."""


def start_run(config: RunConfig, out: Path, progress: Progress) -> RunReader:
    """Execute a run in a new folder and return its content.

    Args:
        config: of the run.
        out: the run folder; must not exist or be empty.
        progress: receives the progress.

    Raises:
        InputError: a suite, agent, engine or folder cannot be used; nothing was run.
        InfraError: the services do not start.
        Stopped: a signal was received.
    """
    setup = RunSetup.create(config)
    if (kept := setup.config.keep_workspaces) is not None:
        check_not_kept(kept / planned.name.checkpoint_path for planned in setup.episodes)
    # The models of a planned run were asked before the first run of the plan.
    setup.check(probe=config.plan is None)
    if tasks := setup.tasks_of_idle_workers():
        _log.warning(
            "workers without budget",
            tasks=len(tasks),
            example=tasks[0],
            why="a bound of the task or of models.budget, divided among the team, is 0",
            remedy="raise it, for example with budget.scale, or set fewer workers",
        )
    if lacks_search(setup.config, setup.suite):
        _log.warning(
            "no search",
            why=f"data_mode {config.data_mode} without the setting `search`: agents can open pages "
            "by URL, and every search fails",
            remedy="add `search` to --config; a replay needs the `search` of the recorded run",
        )
    with prepared_place(setup, progress.on_wait) as place, deferred_stop_signals() as stop:
        manifest = _manifest(setup, place)
        signing = setup.signing()
        # The lock comes first: of two commands with the same --out, the second fails cleanly.
        with one_writer(_create_folder(out)):
            folder = RunFolder.create(out, manifest, setup.suite, signing)
            rows = _execute(folder, setup, place, setup.episodes, (), progress, stop)
    return open_written(out, rows, setup.suite, signing)


def resume_run(
    path: Path, progress: Progress, changes: Mapping[str, object] | None = None
) -> RunReader:
    """Run the missing episodes of a run and seal it; finished episodes are not repeated.

    Args:
        path: of the run folder.
        progress: receives the progress.
        changes: settings of the execution that differ from those of the run.

    Returns:
        The content of the finished run.

    Raises:
        InputError: the folder was changed, an agent that it names cannot be used, or another key
            signed a merged shard and an episode is missing or ended as ``infra``.
        InfraError: the services do not start.
        Stopped: a signal was received.
    """
    folder = RunFolder.open(path)
    trust = Trust(own=user_key().public)
    with one_writer(path):
        # Its configuration chooses the agents, the engine and the hosts that get keys.
        folder.require_signer(trust.own)
        run = open_run(path, trust, Accept.RESUMABLE)
        if not run.provenance.is_finished or any(row.is_infra for row in run.rows()):
            require_own_shards(path, run.manifest(), trust.own)
        setup = RunSetup.of_run(run)
        setup = replace(setup, config=setup.config.model_copy(update=changes or {}))
        _resume(folder, setup, progress)
    return open_run(path, trust)


def _resume(folder: RunFolder, setup: RunSetup, progress: Progress) -> None:
    repeated = prepare_resume(folder, setup.signing())
    if repeated:
        _log.warning(
            "running again", episodes=repeated, why="their traces or output are torn or missing"
        )
    finished = folder.finished_rows()
    to_run = missing(setup.episodes, finished)
    done = [row for row in finished if not row.is_infra]
    if not to_run:
        # A command may have been killed after its last episode, before it removed its folders.
        reap_local(owner_is_alive)
        progress.on_start(folder.path, "", 0, done)
        folder.seal()
        return
    setup.check()
    check_unchanged(setup.monitors, folder.manifest())
    with prepared_place(setup, progress.on_wait) as place, deferred_stop_signals() as stop:
        _check_code(_agent_facts(setup, place.images), folder.manifest())
        isolation = place.isolation
        is_same = isolation == folder.manifest().get("isolation")
        folder.other_isolation = "" if is_same else isolation
        _execute(folder, setup, place, to_run, done, progress, stop)


def run_or_resume(config: RunConfig, path: Path, progress: Progress) -> RunReader:
    """Return the content of a finished run: a new run, or an existing one that is resumed.

    Args:
        config: of the run.
        path: the run folder.
        progress: receives the progress.

    Raises:
        InputError: the folder holds a run with another plan, or the run cannot be executed.
        InfraError: the services do not start.
    """
    if not (path / "run.json").is_file():
        return start_run(config, path, progress)
    run = open_run(path, Trust(own=user_key().public), Accept.RESUMABLE)
    different = _plan_differences(RunSetup.create(config), run)
    if different:
        raise InputError(
            f"{path} holds a run with another plan ({', '.join(different)}): choose another --out"
        )
    return resume_run(path, progress, {name: getattr(config, name) for name in MACHINE_SETTINGS})


def prepare_resume(folder: RunFolder, signing: Signing) -> int:
    """Check a run folder against its seals and mark damaged episodes to be run again.

    Args:
        folder: of an interrupted or finished run; the caller holds its lock.
        signing: key of this user, and the plan.

    Returns:
        The number of finished episodes whose trace or output a crash has torn.

    Raises:
        InputError: no key or another key signed the run, or its content differs from the sealed
            content.
    """
    folder.sign_with(signing)
    damaged = _damaged_episodes(folder, signing.key.public)
    folder.drop_torn_row()
    undamaged_rows = {row.name for row in folder.finished_rows()} - damaged
    again = [
        _as_damaged(row)
        for row in folder.rows()
        if not row.is_infra and row.name not in undamaged_rows
    ]
    if any(row.is_infra for row in folder.rows()):
        folder.reopen()
    if again:
        # Each repeated episode gets a row first, so that the seals record the repetition.
        folder.append_rows(again)
    return len(again)


def _plan_differences(setup: RunSetup, run: RunReader) -> list[str]:
    """Return the settings in which the plan of a run differs from a setup."""
    different = setup.config.run_differences(config_of(run))
    if suite_digest(setup.suite) != run.manifest().get("suite_digest"):
        different.add("suite")
    changed = code_differences(run.manifest(), _agent_facts(setup, {}))
    different.update(f"code of {label}" for label in changed)
    return sorted(different)


def _damaged_episodes(folder: RunFolder, key: str) -> set[EpisodeName]:
    damage = verify(folder.path, key).damage
    for item in damage:
        if not item.is_of_crash:
            raise InputError(
                f"{item}; nothing was run or signed; see: fumehood verify {folder.path}"
            )
    return {item.episode for item in damage if item.episode is not None}


def _as_damaged(row: EpisodeRow) -> EpisodeRow:
    # Only the attempt whose trace is damaged; the earlier ones are counted with its row.
    ungraded = replace(row, outcome=DAMAGED, score=UNGRADED, attempts=1)
    return replace(ungraded, trace="", trace_digest="", stdout_bytes=0, stderr_bytes=0)


def _create_folder(out: Path) -> Path:
    try:
        make_private_folder(out)
    except OSError as error:
        if file := file_at(out):
            raise InputError(f"{file} is a file: choose another --out") from None
        raise InputError(f"{out} cannot be written: {error.strerror}") from None
    return out


def _execute(
    folder: RunFolder,
    setup: RunSetup,
    place: Place,
    to_run: Sequence[PlannedEpisode],
    done: Sequence[EpisodeRow],
    progress: Progress,
    stop: StopRequests,
) -> list[SealedRow]:
    config = setup.config
    progress.on_start(folder.path, place.reason, len(to_run), done)
    secret, has_team = place.secrets(), config.team is not None
    models = None
    if config.models is not None:
        number = len(to_run) * config.shards
        models = ModelRun(config.models, folder.path, secret, has_team=has_team, episodes=number)
    with place.playing(str(folder.manifest()["run"]), models) as playing:
        limits = RunLimits(
            concurrency=place.at_once,
            prepared=place.prepared,
            wall_ms=round(config.wall_time_s * 1000),
            grouped=GROUPED_MAX if place.is_inline else 1,
        )
        run = Run(
            folder,
            playing.runner.attempt,
            playing.plan,
            limits,
            RunJudge(setup.judge, folder.path, secrets=secret),
            stop,
            playing.abandon,
            playing.runner.attempt_all,
            progress.on_wait,
            Redaction(secret),
        )
        if place.is_inline and len(to_run) >= PACKED_MIN:
            folder.pack_traces()
        run.execute(to_run, progress.on_row)
    return folder.seal()


def _manifest(setup: RunSetup, place: Place) -> JsonObject:
    return {
        "run": secrets.token_hex(8),
        "suite": setup.suite.name,
        "suite_digest": suite_digest(setup.suite),
        "tasks": len(setup.suite.cases),
        "config": setup.config.model_dump(mode="json"),
        **({"monitors": monitor_facts(setup.monitors)} if setup.monitors else {}),
        **place.facts(),
        **_agent_facts(setup, place.images),
        "versions": {"fumehood": __version__, "python": platform.python_version()},
        "host": {
            "system": platform.system(),
            "kernel": platform.release(),
            "machine": platform.machine(),
        },
    }


def _agent_facts(setup: RunSetup, images: Mapping[AgentSource, Image]) -> JsonObject:
    """Return the fields of ``run.json`` that state what the agents are; images can be unknown."""

    def facts(agent: NamedAgent) -> JsonObject:
        code = code_digest(agent.source)
        image = images.get(agent.source)
        return {
            "label": agent.label,
            "kind": agent.source.kind.value,
            "name": agent.source.name,
            "image": image.reference if image else "",
            "digest": image.digest if image else "",
            **({"code": code} if code else {}),
            **({"in_workspace": True} if is_inside(agent.source) else {}),
            **({"arguments": agent.arguments} if agent.arguments else {}),
            **identity_of(agent, setup.config.models),
        }

    others = setup.participants.counterparts_of_run()
    counterparts: list[Json] = [{"seat": seat, **facts(agent)} for seat, agent in others.items()]
    return {
        "agents": [facts(agent) for agent in setup.participants.agents],
        **({"counterparts": counterparts} if counterparts else {}),
    }


def _check_code(now: JsonObject, manifest: JsonObject) -> None:
    """Check that the agents are those of the beginning of the run.

    Raises:
        InputError: the code of one has changed.
    """
    changed = code_differences(manifest, now)
    if changed:
        raise InputError(
            f"the code of the agent {changed[0]} has changed since the run began: restore it, or "
            "start a new run"
        )
