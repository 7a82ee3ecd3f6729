"""What a run is asked to be: one strict record, from flags, environment and one YAML file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fumehood.core.errors import InputError
from fumehood.orchestrator.judging_config import JudgingConfig
from fumehood.orchestrator.message_limits import MessageLimits
from fumehood.orchestrator.models_config import ModelsConfig
from fumehood_snapshots.library.settings import SearchConfig
from fumehood_snapshots.web.policy import FetchPolicy

LONGEST_S = 30 * 24 * 60 * 60
"""Wall time that an episode may be given, seconds."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class BoxLimits(_Strict):
    """What one box may use."""

    memory_mb: int = Field(default=512, ge=32, description="Memory and swap together, MiB.")
    cpus: float = Field(default=1.0, gt=0, description="Processor time per wall time.")
    processes: int = Field(default=128, ge=1, description="Processes and threads.")
    tmp_mb: int = Field(default=64, ge=1, description="Size of /tmp, MiB.")
    output_kb: int = Field(
        default=1024, ge=1, description="Kept of standard output and of standard error, KiB each."
    )


class SeatPlayer(_Strict):
    """Who sits at a seat beside the agent."""

    agent: str = Field(
        description="Any agent: a built-in name, module:Class, a folder or an image."
    )
    model: str | None = Field(
        default=None, description="Model that it asks; the run's own where it is not said."
    )


class RunConfig(_Strict):
    """A run of agents on a suite."""

    suite: str = Field(description="NAME[:ARGUMENT] of a benchmark, or a file or folder of tasks.")
    agents: tuple[str, ...] = Field(
        min_length=1,
        description="Built-in name, module:Class, folder with a Dockerfile, or image; LABEL=… names it.",
    )
    trials: int = Field(1, ge=1, description="Attempts per agent and task.")
    seed: int = Field(0, description="Of all chance. 0 gives the first trial each task's own.")
    concurrency: int = Field(2, ge=1, le=256, description="Episodes running at once.")
    service_workers: int = Field(1, ge=1, le=64, description="Sandbox service processes.")
    engine: str = Field("auto", description="docker, bubblewrap, inline, process, or auto.")
    runtime: str | None = Field(
        None, description="Container runtime of the docker engine, such as runsc."
    )
    i_trust_this_agent: bool = Field(False, description="Let the process engine run any agent.")
    wall_time_s: float = Field(
        60.0, gt=0, le=LONGEST_S, description="Per episode whose task states none, seconds."
    )
    data_mode: Literal["offline", "live", "record", "replay"] = Field(
        "offline", description="Where searches and pages come from."
    )
    snapshot: Path | None = Field(None, description="Folder of the snapshot that the tasks name.")
    recording: Path | None = Field(
        None, description="Folder where record appends and replay reads."
    )
    fetch: FetchPolicy | None = Field(
        None, description="What live fetching may do; of live and record."
    )
    search: SearchConfig | None = Field(
        None, description="Who answers live searches; of live and record."
    )
    faults: str | None = Field(
        None, description="YAML file of faults that strike besides the tasks' own; none for none."
    )
    model: str | None = Field(None, description="Model that the built-in agents with one ask.")
    models: ModelsConfig | None = Field(
        None, description="Who answers for models; nobody without it."
    )
    judge: str | None = Field(
        None, description="Who answers what needs an opinion: a model of `models`, exact, or rules."
    )
    judging: JudgingConfig = Field(default=JudgingConfig(), description="How the judge is asked.")
    seats: dict[str, SeatPlayer] = Field(
        default_factory=dict,
        description="Who sits beside the agent, by seat; else whom the suite names.",
    )
    limits: BoxLimits = Field(default=BoxLimits(), description="Of each box.")
    messages: MessageLimits = Field(
        default=MessageLimits(), description="Of what an agent may send."
    )


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the settings in a file, checked for keys that mean nothing.

    Raises:
        InputError: it is not readable YAML, a key is unknown or a value does not fit; names line or key.
    """
    settings = parse_yaml(path)
    if not isinstance(settings, dict):
        raise InputError(f"{path}: must hold settings, such as 'suite: sample'")
    _check_keys(path, settings, RunConfig)
    limits = settings.get("limits")
    if isinstance(limits, dict):
        _check_keys(path, limits, BoxLimits, "limits.")
    judging = settings.get("judging")
    if isinstance(judging, dict):
        _check_keys(path, judging, JudgingConfig, "judging.")
    messages = settings.get("messages")
    if isinstance(messages, dict):
        _check_keys(path, messages, MessageLimits, "messages.")
    try:
        RunConfig.model_validate({"suite": "any", "agents": ("any",), **settings})
    except ValidationError as error:
        raise InputError(f"{path}: {_first(error)}") from None
    return settings


def parse_yaml(path: Path) -> Any:
    """Return what a YAML file holds, no key twice.

    Raises:
        InputError: it is not readable YAML; names the line.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{path}:{line}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise InputError(f"{path}: nests too deep") from None


def run_config(settings: Mapping[str, Any]) -> RunConfig:
    """Return checked settings.

    Raises:
        InputError: a value is missing or out of range; names the first.
    """
    try:
        return RunConfig.model_validate(settings)
    except ValidationError as error:
        raise InputError(_first(error)) from None


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"])
    if first["type"] in ("list_type", "tuple_type"):
        return f"{where}: must be a list, such as [{first['input']}]"
    said = first["msg"].removeprefix("Value error, ")
    return f"{where}: {said[0].lower()}{said[1:]}"


def _check_keys(
    path: Path, settings: Mapping[Any, Any], model: type[BaseModel], prefix: str = ""
) -> None:
    for key in settings:
        if key not in model.model_fields:
            near = difflib.get_close_matches(str(key), model.model_fields, n=1, cutoff=0.4)
            hint = (
                f"did you mean {prefix}{near[0]}?"
                if near
                else f"known: {', '.join(model.model_fields)}"
            )
            raise InputError(f"{path}: unknown key {prefix}{key}; {hint}")


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a mapping that says the same key twice, where YAML's own loader lets the last one win."""


def _construct_unique(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for position, key in enumerate(keys):
        mark = node.value[position][0].start_mark
        if isinstance(key, list | dict):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a word", mark)
        if key in keys[:position]:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} is there twice", mark
            )
    return {
        key: loader.construct_object(value, deep=True)
        for key, (_, value) in zip(keys, node.value, strict=True)
    }


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_unique)
