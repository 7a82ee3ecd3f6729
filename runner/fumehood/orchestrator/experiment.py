"""An experiment: one file with the levels of several factors, and one run folder per cell.

::

    experiment.json    the frozen and signed plan; written before the first run
    runs/CELL/         one ordinary run folder per cell, with all agents of the cell

A cell is a combination of all factors but the agent. Agents and trials vary within
a cell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InputError
from fumehood.core.formats import require_format
from fumehood.core.json_values import JsonObject
from fumehood.engines.registry import INLINE
from fumehood.orchestrator.added_faults import NONE
from fumehood.orchestrator.agents import is_scaffold, name_agents
from fumehood.orchestrator.config import (
    AgentConfig,
    BudgetChange,
    DataMode,
    ModelParameters,
    RunConfig,
    TaskSelection,
    TeamConfig,
    TextOr,
    read_model,
    run_config,
)
from fumehood.orchestrator.data_source import uses_data
from fumehood.orchestrator.model_probe import probe_models
from fumehood.orchestrator.setup import RunSetup
from fumehood.records.files import make_private_folder, read_plain, write_whole
from fumehood.records.row import file_name
from fumehood.records.run_folder import RunFolder, one_writer
from fumehood.records.run_reader import PLAN_FILE, RunReader, is_experiment
from fumehood.records.shard_seals import SHARDS, require_own_shards, require_own_signers
from fumehood.records.signing_key import KEY_VARIABLE, is_signed_by, user_key
from fumehood_snapshots.library.settings import SearchConfig
from fumehood_snapshots.web.policy import FetchPolicy

FORMAT = "fumehood.experiment/1"
RUNS = "runs"
OWN = "own"
"""Name of the budget level that leaves the budgets of the tasks unchanged."""
DECIDED = frozenset(
    {"suite", "tasks", "agents", "model", "data_mode", "faults", "budget", "trials", "seed"}
    | {"fault_intensity", "levels", "plan", "prompt_variants", "shard", "team"}
)
"""Settings of a run that other keys of an experiment decide."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    label: str | None = Field(default=None, description="Name in tables.")


class SuiteLevel(_Strict):
    """A suite, or a part of it."""

    suite: str = Field(description="NAME[:ARGUMENT] of a benchmark, or a file or folder of tasks.")
    tasks: TaskSelection | None = Field(default=None, description="Default: as in the experiment.")


class ModelLevel(_Strict):
    """A model with parameters."""

    model: str = Field(description="Name of the model at its provider.")
    parameters: ModelParameters = Field(
        default=ModelParameters(), description="As in `models.parameters` of a run."
    )

    @property
    def name(self) -> str:
        """Its label, or the model with the parameters that differ from their defaults."""
        return self.label or _name_of(self.model, self.parameters.changed())


class DataModeLevel(_Strict):
    """A data mode with its settings. Suites without searches and pages have one level only."""

    data_mode: DataMode = Field(description="Source of searches and pages.")
    snapshot: Path | None = Field(default=None, description="As in a run.")
    recording: Path | None = Field(default=None, description="As in a run.")
    fetch: FetchPolicy | None = Field(default=None, description="As in a run.")
    search: SearchConfig | None = Field(default=None, description="As in a run.")


class FaultLevel(_Strict):
    """A fault level."""

    file: str = Field(description="YAML file of additional faults, or `none`.")
    intensities: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        (), description="One level each, with this `fault_intensity` of a run; default: one level."
    )

    def at_each(self) -> Iterator[tuple[FaultLevel, float | None]]:
        """Yield one level for each intensity."""
        if not self.intensities:
            yield self, None
        for intensity in self.intensities:
            name = _dosed(self.label or Path(self.file).stem, intensity)
            yield self.model_copy(update={"label": name}), intensity


class BudgetLevel(BudgetChange):
    """A budget level."""

    label: str | None = Field(default=None, description="Name in tables.")


class TeamLevel(TeamConfig):
    """A team level."""

    label: str | None = Field(default=None, description="Name in tables.")


_Level = TypeVar("_Level", BudgetLevel, TeamLevel)


class ExperimentConfig(BaseModel):
    """An experiment: all combinations of the levels of its factors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["fumehood.experiment/1"]
    suites: tuple[TextOr[SuiteLevel], ...] = Field(min_length=1, description="Suites.")
    agents: tuple[TextOr[AgentConfig], ...] = Field(
        min_length=1, description="Agents and scaffolds; each scaffold is run with each model."
    )
    models: tuple[TextOr[ModelLevel], ...] = Field((), description="Models of the scaffolds.")
    data_modes: tuple[TextOr[DataModeLevel], ...] = Field(
        ("offline",), min_length=1, description="Data modes."
    )
    faults: tuple[TextOr[FaultLevel], ...] = Field(
        (NONE,), min_length=1, description="Files of additional faults; `none` adds none."
    )
    budgets: tuple[TextOr[BudgetLevel], ...] = Field(
        (OWN,), min_length=1, description="Changed budgets; `own` leaves those of the tasks."
    )
    teams: tuple[TextOr[TeamLevel], ...] = Field(
        (NONE,), min_length=1, description="Teams that play each task; `none` is one agent."
    )
    prompts: tuple[int, ...] = Field(
        (0,),
        min_length=1,
        description="Numbers of wordings of each instruction, one per trial; 0: that of the task.",
    )
    trials: int = Field(1, ge=1, strict=True, description="Episodes per agent and task.")
    seed: int = Field(0, description="Seed of all runs; 0 gives the first trial the task's seed.")
    tasks: TaskSelection | None = Field(None, description="Tasks of each suite; all if unset.")
    run: dict[str, JsonValue] = Field(
        default_factory=dict, description="All other settings of a run, such as models and engine."
    )

    @field_validator("run")
    @classmethod
    def _fixed(cls, settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for name in settings:
            if name in DECIDED:
                raise ValueError(f"{name!r} is not a setting here: move it out of `run`")
        return settings

    @field_validator("budgets")
    @classmethod
    def _named(cls, levels: tuple[str | BudgetLevel, ...]) -> tuple[str | BudgetLevel, ...]:
        for level in levels:
            if isinstance(level, str) and level != OWN:
                raise ValueError(f"must be {OWN!r} or bounds such as {{calls: 4}}, not {level!r}")
        return levels

    @field_validator("teams")
    @classmethod
    def _counted(cls, levels: tuple[str | TeamLevel, ...]) -> tuple[str | TeamLevel, ...]:
        for level in levels:
            if isinstance(level, str) and level != NONE:
                raise ValueError(
                    f"must be {NONE!r} or a size such as {{workers: 3}}, not {level!r}"
                )
        return levels


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of levels, which is one run."""

    name: str
    """Name of its run folder."""
    config: RunConfig

    @property
    def levels(self) -> Mapping[str, str]:
        """Its level of each factor, as the experiment or the settings name it."""
        return levels_of(self.config)


def levels_of(config: RunConfig) -> dict[str, str]:
    """Return the level of a run in each factor, as the experiment or the settings name it."""
    faults, budget, team = config.faults or NONE, config.budget, config.team
    variants = config.prompt_variants
    return {
        "suite": config.suite,
        "model": config.model or "",
        "data_mode": config.data_mode,
        "faults": NONE if faults == NONE else _dosed(Path(faults).stem, config.fault_intensity),
        "budget": OWN if budget is None else _name_of("", budget.changes()),
        "team": NONE if team is None else _name_of("", {"workers": team.workers}),
        "prompts": _name_of("", {"variants": variants}) if variants else OWN,
        **config.levels,
    }


def _dosed(name: str, intensity: float | None) -> str:
    return name if intensity is None else f"{name} {intensity:g}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs of an experiment. `compare` and `reproduce` also create such plans."""

    cells: tuple[Cell, ...]

    @property
    def shard(self) -> str | None:
        """The part of all runs that is played; None for all episodes."""
        return self.cells[0].config.shard

    def with_settings(self, **settings: object) -> Plan:
        """Return the plan with other settings of all runs."""
        cells = self.cells
        return Plan(
            tuple(Cell(cell.name, cell.config.model_copy(update=settings)) for cell in cells)
        )

    @property
    def digest(self) -> str:
        """Hash of the names and settings of all runs, apart from those of the execution."""
        text = json.dumps(_fixed_parts(self), sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()

    def to_json(self) -> JsonObject:
        """Return the plan as it is frozen."""
        return {
            "format": FORMAT,
            "cells": [
                {"name": cell.name, "config": cell.config.model_dump(mode="json")}
                for cell in self.cells
            ],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """Return a frozen plan.

        Raises:
            KeyError, TypeError, ValueError, InputError: the value is not a plan.
        """
        cells = tuple(Cell(cell["name"], run_config(cell["config"])) for cell in value["cells"])
        names = {cell.name for cell in cells}
        levels = {json.dumps(cell.levels, sort_keys=True) for cell in cells}
        if not cells or len(names) < len(cells) or len(levels) < len(cells):
            raise ValueError("a plan has cells with different names and different levels")
        for name in names:
            if name in {"", ".", ".."} or "/" in name:
                raise ValueError("the name of a cell is the name of one folder")
        return cls(cells)


def read_experiment(path: Path) -> ExperimentConfig:
    """Return the content of an experiment file.

    Raises:
        InputError: the file is not readable YAML, or a key or value is invalid.
    """
    content = f"'format: {FORMAT}', 'suites' and 'agents'"
    return read_model(path, ExperimentConfig, content)


def plan_of(experiment: ExperimentConfig) -> Plan:
    """Return one cell for each combination of levels.

    Agents that are not scaffolds call no model of the experiment, so they are run once, and not
    once per model. Suites without searches and pages have the first data mode only.

    Raises:
        InputError: a setting of a run is invalid, scaffolds lack a model, or two levels of a factor
            have the same name.
    """
    groups = _agents_by_model(experiment)
    cells = []
    for suite in _levels(experiment.suites, SuiteLevel, "suite"):
        modes = _levels(experiment.data_modes, DataModeLevel, "data_mode")
        if not uses_data(load_suite(suite.suite, modes[0].snapshot)):
            modes = [DataModeLevel(data_mode="offline")]
        for (model, agents), mode, faults, budget, team, prompts in product(
            groups,
            modes,
            _fault_levels(experiment),
            _objects(experiment.budgets),
            _objects(experiment.teams),
            experiment.prompts,
        ):
            cells.append(
                _cell(experiment, suite, model, agents, mode, faults, budget, team, prompts)
            )
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two cells are called {name}: give levels different labels")
    return Plan(tuple(cells))


RunCell = Callable[[RunConfig, Path, str], RunReader]
"""Runs or resumes one cell in a folder; the text states which cell it is."""


def run_plan(plan: Plan, folder: Path, run_cell: RunCell) -> Iterator[RunReader]:
    """Run or resume the cells of a plan, and yield each finished run.

    Raises:
        InputError: the folder holds another plan, or a run cannot be executed.
        InfraError: services do not start.
        Stopped: a signal was received; the same call continues.
    """
    setups = {cell.name: RunSetup.create(cell.config) for cell in plan.cells}
    # The frozen plan has absolute paths, as its runs have.
    plan = Plan(tuple(Cell(name, setup.config) for name, setup in setups.items()))
    make_private_folder(folder)
    with one_writer(folder):
        # The models of all new runs are asked once, before the first run.
        new = (name for name in setups if not (folder / RUNS / name / "run.json").is_file())
        probe_models([setups[name].probed() for name in new])
        freeze(plan, folder)
        for number, cell in enumerate(plan.cells, 1):
            title = f"run {number} of {len(plan.cells)}: {cell.name}"
            config = cell.config.model_copy(update={"plan": plan.digest})
            yield run_cell(config, folder / RUNS / cell.name, title)


def runs_in(folder: Path) -> list[Path]:
    """Return the run folders of an experiment; for another folder, that folder.

    Raises:
        InputError: the plan cannot be read, the folder has a run that the plan does not name, or a
            run is not that of its cell.
    """
    if not is_experiment(folder):
        return [folder]
    plan = frozen_plan(folder)
    cells = {cell.name: cell for cell in plan.cells}
    runs = folder / RUNS
    names = {path.name for path in runs.iterdir()} if runs.is_dir() else set[str]()
    for name in sorted(names):
        if name not in cells:
            raise InputError(
                f"{runs / name}: is not in the plan {folder / PLAN_FILE}: move it away"
            )
        _require_planned(runs / name, cells[name], plan.digest)
    return [runs / name for name in cells]


def _require_planned(path: Path, cell: Cell, digest: str) -> None:
    try:
        own = run_config(json.loads(read_plain(path / "run.json"))["config"]).plan_settings()
    except (OSError, ValueError, KeyError, TypeError, RecursionError, InputError):
        return  # The reader of the run states what is wrong.
    planned = {**cell.config.plan_settings(), "plan": digest}
    different = [name for name, value in planned.items() if own[name] != value]
    if different or path.is_symlink():
        why = f"differs in: {', '.join(different)}" if different else "is a link"
        raise InputError(f"{path}: is not the run that the plan names; it {why}")


def frozen_plan(folder: Path) -> Plan:
    """Return the plan that a folder holds, also that of another user.

    Raises:
        InputError: it holds none that can be read.
    """
    return _read_frozen(folder / PLAN_FILE)[0]


def own_plan(folder: Path, *, is_estimated: bool = False) -> Plan:
    """Return the plan that a folder holds if this user signed it, so that it may be executed.

    Its settings choose the agents, the engine and the hosts that get keys.

    Args:
        folder: of the experiment.
        is_estimated: whether episodes for an estimate are played, which are no part of the
            experiment.

    Raises:
        InputError: the folder holds no readable plan, this user did not sign it, or another key
            signed a merged shard and there are runs to start or an estimate to play.
    """
    path, key = folder / PLAN_FILE, user_key().public
    plan, value = _read_frozen(path)
    if not _is_signed(value, key):
        raise InputError(
            f"{path} is not signed with your key, so its origin is unknown: name the YAML file "
            f"with --out {folder}, or set {KEY_VARIABLE} to the file of the key"
        )
    runs = [folder / RUNS / cell.name for cell in plan.cells]
    begun = [run for run in runs if (run / "run.json").is_file()]
    # `resume_run` checks the runs that have begun.
    if is_estimated or len(begun) < len(runs):
        require_own_signers(folder, value, key)
        for run in begun:  # Plans of earlier versions do not state the keys.
            require_own_shards(run, RunFolder(run).manifest(), key)
    return plan


def is_plan_signed(folder: Path, key: str) -> bool:
    """Return whether a key signed the plan that a folder holds.

    Args:
        folder: of the experiment.
        key: public key, 64 hex digits; any other text signed nothing.

    Raises:
        InputError: the folder holds no readable plan.
    """
    return _is_signed(_read_frozen(folder / PLAN_FILE)[1], key)


def _is_signed(plan: Mapping[str, Any], key: str) -> bool:
    statement = {name: part for name, part in plan.items() if name != "signature"}
    return is_signed_by(key, statement, plan.get("signature"))


def _read_frozen(path: Path) -> tuple[Plan, Mapping[str, Any]]:
    try:
        value = json.loads(read_plain(path))
        require_format(value["format"], FORMAT, path)
        return Plan.from_json(value), value
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path} is not a readable plan of an experiment") from None


def freeze(plan: Plan, folder: Path) -> None:
    """Write a plan into a folder and sign it; a folder that holds it is left unchanged.

    Raises:
        InputError: the folder holds something else.
    """
    if not is_experiment(folder):
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty: choose another --out")
        write_plan(plan, folder)
    elif different := _differences(frozen_plan(folder), plan):
        raise InputError(
            f"{folder} holds an experiment with another plan ({', '.join(different)}): "
            "choose another --out"
        )


def write_plan(plan: Plan, folder: Path, shards: Sequence[JsonObject] = ()) -> None:
    """Write a plan into a folder and sign it.

    Args:
        plan: of the experiment.
        folder: of the experiment, without a plan.
        shards: of a merged experiment, each with ``shard`` and the ``signing_key`` that sealed it.
    """
    statement = plan.to_json()
    if shards:
        statement[SHARDS] = list(shards)
    signed = {**statement, "signature": user_key().sign(statement)}
    write_whole(folder / PLAN_FILE, json.dumps(signed, indent=2) + "\n")


def _differences(first: Plan, second: Plan) -> list[str]:
    """Return the settings in which the runs of two plans differ."""
    if [cell.name for cell in first.cells] != [cell.name for cell in second.cells]:
        return ["levels"]
    configs = zip(_fixed_parts(first), _fixed_parts(second), strict=True)
    different = {name for (_, a), (_, b) in configs for name in a if a[name] != b[name]}
    if first.shard != second.shard:
        different.add("shard")
    return sorted(different)


def _fixed_parts(plan: Plan) -> list[Any]:
    return [(cell.name, cell.config.plan_settings()) for cell in plan.cells]


def _agents_by_model(
    experiment: ExperimentConfig,
) -> list[tuple[ModelLevel | None, list[str | AgentConfig]]]:
    """Return the agents to run with each model; other agents are run without a model."""
    named = zip(experiment.agents, name_agents(experiment.agents), strict=True)
    kinds = [(given, is_scaffold(agent)) for given, agent in named]
    scaffolds = [given for given, calls_model in kinds if calls_model]
    others = [given for given, calls_model in kinds if not calls_model]
    models = _levels(experiment.models, ModelLevel, "model")
    if scaffolds and not models:
        raise InputError(f"the scaffold {scaffolds[0]} needs a model: state it under `models`")
    if scaffolds and experiment.run.get("engine") == INLINE:
        raise InputError(
            f"the inline engine does not run agents that call a model, such as {scaffolds[0]}: "
            "set run.engine to docker or bubblewrap"
        )
    if models and not scaffolds:
        raise InputError("no agent is a scaffold, so `models` has no effect: remove it")
    groups: list[tuple[ModelLevel | None, list[str | AgentConfig]]] = [
        (model, scaffolds) for model in models
    ]
    return [*groups, (None, others)] if others else groups


def _levels(given: Sequence[Any], kind: Any, field: str) -> list[Any]:
    return [kind(**{field: level}) if isinstance(level, str) else level for level in given]


def _fault_levels(experiment: ExperimentConfig) -> list[tuple[FaultLevel, float | None]]:
    levels: list[FaultLevel] = _levels(experiment.faults, FaultLevel, "file")
    return [pair for level in levels for pair in level.at_each()]


def _objects(given: Sequence[str | _Level]) -> list[_Level | None]:
    return [None if isinstance(level, str) else level for level in given]


def _cell(
    experiment: ExperimentConfig,
    suite: SuiteLevel,
    model: ModelLevel | None,
    agents: Sequence[str | AgentConfig],
    mode: DataModeLevel,
    dosed_faults: tuple[FaultLevel, float | None],
    budget: BudgetLevel | None,
    team: TeamLevel | None,
    prompts: int,
) -> Cell:
    faults, intensity = dosed_faults
    labels = {
        "suite": suite.label,
        "model": None if model is None else model.name,
        "data_mode": mode.label,
        "faults": faults.label,
        "budget": None if budget is None else budget.label,
        "team": None if team is None else team.label,
    }
    settings: dict[str, Any] = {
        **experiment.run,
        "suite": suite.suite,
        "tasks": suite.tasks or experiment.tasks,
        "agents": agents,
        "model": None if model is None else model.model,
        "faults": faults.file if faults.file == NONE else str(Path(faults.file).resolve()),
        "fault_intensity": intensity,
        "budget": None if budget is None else BudgetChange(**budget.model_dump(exclude={"label"})),
        "team": None if team is None else TeamConfig(workers=team.workers),
        "prompt_variants": prompts,
        "trials": experiment.trials,
        "seed": experiment.seed,
        "levels": {factor: label for factor, label in labels.items() if label},
        **mode.model_dump(exclude={"label"}, exclude_none=True),
    }
    if model is not None and (parameters := model.parameters.changed()):
        models: Any = settings.get("models") or {}
        # The first match counts, so the parameters of the level come first.
        known = dict(models.get("parameters", {}))
        known.pop(model.model, None)
        settings["models"] = {**models, "parameters": {model.model: parameters, **known}}
    counts = {
        "suite": 2,  # Always part of the name.
        "model": len(experiment.models) + 1,
        "data_mode": len(experiment.data_modes),
        "faults": len(_fault_levels(experiment)),
        "budget": len(experiment.budgets),
        "team": len(experiment.teams),
        "prompts": len(experiment.prompts),
    }
    config = run_config(settings)
    levels = levels_of(config)
    parts = [file_name(name) for factor, name in levels.items() if name and counts[factor] > 1]
    # Tables name the levels as the file does.
    return Cell("--".join(parts), config.model_copy(update={"levels": levels}))


def _name_of(name: str, settings: Mapping[str, Any]) -> str:
    changes = ",".join(f"{key}={value}" for key, value in settings.items())
    return " ".join(part for part in (name, changes) if part)
