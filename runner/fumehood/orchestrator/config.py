"""The configuration of a run: its schema, its YAML file and its error messages.

A run configuration comes from flags, FUMEHOOD_* environment variables and one YAML file. The run
folder stores it, and every later command reads it from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from fumehood.benchmarks.shared.validation_errors import field_errors
from fumehood.benchmarks.shared.yaml_text import line_and_problem, load_yaml
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from fumehood.gateway.capabilities import Capability, is_grant
from fumehood.orchestrator.shards import Shard
from fumehood_snapshots.library.settings import RECORDING_MB, SearchConfig
from fumehood_snapshots.web.policy import FetchPolicy

MIB = 1 << 20
WALL_TIME_S_MAX = 30 * 24 * 60 * 60
"""Maximum wall time of an episode, seconds."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class BoxLimits(_Strict):
    """Limits of each box."""

    memory_mb: int = Field(default=512, ge=32, description="Memory and swap together, MiB.")
    cpus: float = Field(default=1.0, gt=0, description="CPU time per wall time.")
    processes: int = Field(default=128, ge=1, description="Processes and threads.")
    tmp_mb: int = Field(default=64, ge=1, description="Size of /tmp, MiB.")
    output_kb: int = Field(
        default=1024,
        ge=1,
        description="Kept bytes of standard output and of standard error, KiB each.",
    )


class MessageLimits(_Strict):
    """Limits on what an agent may send, per seat; all inclusive."""

    argument_bytes: int = Field(
        default=MIB, ge=1, le=64 * MIB, description="Arguments of one call, bytes."
    )
    argument_depth: int = Field(default=64, ge=1, le=200, description="Nesting depth of arguments.")
    name_bytes: int = Field(default=1024, ge=1, le=MIB, description="Name of a tool, bytes.")
    call_id_bytes: int = Field(default=64, ge=1, le=MIB, description="ID of a call, bytes.")
    answer_bytes: int = Field(
        default=MIB, ge=1, le=64 * MIB, description="Submitted answer or reason, bytes."
    )
    refusals: int = Field(
        default=1000, ge=1, le=100_000, description="Refused messages before the seat is closed."
    )
    refused_bytes: int = Field(
        default=64 * MIB,
        ge=1024,
        le=1024 * MIB,
        description="All refused and malformed messages, bytes; beyond it the sockets close.",
    )
    trace_bytes: int = Field(
        default=128 * MIB,
        ge=1024,
        le=4096 * MIB,
        description="Trace of one episode, bytes; beyond it the sockets close.",
    )
    message_bytes: int = Field(
        default=4 * MIB, ge=1024, le=128 * MIB, description="One gRPC message, bytes."
    )
    concurrent_calls: int = Field(
        default=16, ge=1, le=256, description="Concurrent calls and streams."
    )
    header_bytes: int = Field(
        default=8 * 1024, ge=1024, le=MIB, description="Metadata of one gRPC call, bytes."
    )
    connections: int = Field(
        default=64, ge=1, le=1024, description="Open connections on each socket."
    )
    head_bytes: int = Field(
        default=64 * 1024,
        ge=1024,
        le=MIB,
        description="Request line and headers of one HTTP request, bytes.",
    )
    body_bytes: int = Field(
        default=4 * MIB, ge=1024, le=128 * MIB, description="One message over HTTP, bytes."
    )
    request_bytes: int = Field(
        default=64 * MIB, ge=1024, le=1024 * MIB, description="One HTTP request in total, bytes."
    )
    pipelined_requests: int = Field(
        default=8, ge=1, le=1024, description="HTTP requests of one connection before a response."
    )
    handshake_ms: int = Field(
        default=5_000, ge=100, le=600_000, description="Time until a connection sends, ms."
    )

    def changed(self) -> dict[str, int]:
        """Return the limits that differ from their defaults."""
        return {
            name: value for name, value in self if value != type(self).model_fields[name].default
        }


class ProviderConfig(_Strict):
    """A model provider, or any server with the same API."""

    name: str = Field(description="Name in messages.")
    address: str = Field(
        description="URL with or without a trailing /v1, such as http://localhost:8000."
    )
    prefix: str = Field(
        "/v1",
        pattern=r"^(/[^/?#]+)*$",
        description="Path between the address and the endpoint, such as /v1.",
    )
    models: tuple[str, ...] = Field(("*",), description="Names or patterns of its models.")
    key_env: str = Field("", description="Environment variable that holds its key.")

    requests_per_minute: int | None = Field(
        None, ge=1, description="Requests in any 60 seconds; further ones wait."
    )
    tokens_per_minute: int | None = Field(
        None, ge=1, description="Input and output tokens in any 60 seconds; further requests wait."
    )
    concurrent_calls: int | None = Field(
        None, ge=1, description="Concurrent requests; default: `calls_at_once`."
    )

    @field_validator("address")
    @classmethod
    def _without_version(cls, address: str) -> str:
        """Return the address without the trailing /v1 that some client libraries require."""
        if re.fullmatch(r"https?://[^/?#]+(/[^?#]*)?", address) is None:
            raise ValueError(f"{address!r} is not a URL such as http://localhost:8000")
        if "@" in address.split("/")[2]:
            raise ValueError(
                "must not contain a key, because the run folder stores it: use key_env"
            )
        return address.rstrip("/").removesuffix("/v1")


class ModelBudget(_Strict):
    """Model budget of every seat whose task sets none."""

    calls: int | None = Field(default=None, ge=0, description="Model requests.")
    tokens: int | None = Field(default=None, ge=0, description="Input and output tokens together.")
    usd: float | None = Field(default=None, ge=0, description="US dollars.")


class ModelParameters(_Strict):
    """How built-in scaffolds ask a model; the settings of ``fumehood_agent``'s scaffolds."""

    dialect: Literal["chat", "responses", "messages", "gemini"] = Field(
        default="chat", description="API of the requests."
    )
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="Field of a chat request with the token limit."
    )
    output_tokens: int = Field(default=1024, ge=1, description="Token limit of one reply.")
    temperature: float | None = Field(
        default=0, ge=0, le=2, description="Sampling temperature; null leaves it to the provider."
    )
    top_p: float | None = Field(default=None, gt=0, le=1, description="Nucleus sampling.")
    seed: int | None = Field(default=None, description="Seed of the sampling; for chat and gemini.")
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        Field(default=None, description="Reasoning effort.")
    )
    tool_choice: Literal["auto", "required", "none"] | None = Field(
        default=None, description="Whether the model must call a tool."
    )
    turns: int = Field(default=64, ge=1, description="Replies to one message of the user.")
    unusable_replies: int = Field(
        default=5,
        ge=1,
        description="Replies in a row that are cut or cannot be parsed, until the scaffold stops.",
    )
    context: Literal["none", "drop_oldest", "summarise"] = Field(
        default="drop_oldest",
        description="What happens to a conversation beyond context_characters.",
    )
    context_characters: int = Field(
        default=96_000, ge=1000, description="Length of the conversation, as JSON."
    )

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if self.dialect != "chat" and self.output_limit_field != "max_tokens":
            raise ValueError("output_limit_field has no effect unless dialect is chat")
        if self.dialect not in ("chat", "gemini") and self.seed is not None:
            raise ValueError(f"seed has no effect: the dialect {self.dialect} has no seed")
        return self

    def changed(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults."""
        return self.model_dump(exclude_defaults=True)


class ModelsConfig(_Strict):
    """Models that the agents of a run may call."""

    mode: Literal["live", "record", "replay"] = Field("live", description="Source of responses.")
    providers: tuple[ProviderConfig, ...] = Field(
        (), description="Providers; the first one that has a model answers."
    )
    prices: Path | None = Field(
        None,
        description="YAML file: model or pattern to input_usd_per_mtok and output_usd_per_mtok.",
    )
    cassette: Path | None = Field(
        None, description="Folder to replay from, or to record into instead of the run folder."
    )
    parameters: dict[str, ModelParameters] = Field(
        default_factory=dict,
        description="How scaffolds ask a model, by name or pattern; the first match counts.",
    )
    budget: ModelBudget = Field(default=ModelBudget(), description="Model budget of each seat.")
    output_tokens_max: int = Field(
        16384, ge=1, description="Output tokens reserved for a request without its own limit."
    )
    bodies: Literal["all", "failed", "none"] = Field(
        default="all",
        description="Episodes whose model requests and responses the run folder stores; failed: "
        "those without success.",
    )
    bodies_mb: int = Field(
        default=1024,
        ge=1,
        description="Stored requests and responses of a run, MiB. An episode stores none that need "
        "more than its equal share and what earlier episodes left of theirs.",
    )
    probe: bool = Field(
        default=True,
        description="Send one request per model and scaffold before the run, to test its form.",
    )
    calls_at_once: int = Field(256, ge=1, description="Concurrent requests to one provider.")
    grants: tuple[str, ...] = Field(
        (),
        description="What a model request may ask of a provider beyond text, such as web_search.",
    )

    def parameters_of(self, model: str) -> ModelParameters:
        """Return how scaffolds ask a model."""
        matching = (
            parameters for name, parameters in self.parameters.items() if fnmatchcase(model, name)
        )
        return next(matching, ModelParameters())

    @field_validator("grants")
    @classmethod
    def _known(cls, grants: tuple[str, ...]) -> tuple[str, ...]:
        for name in grants:
            if not is_grant(name):
                known = ", ".join(capability.value for capability in Capability)
                raise ValueError(f"{name!r} is not one of {known}, field:PATH or beta:NAME")
        return grants


class JudgeRule(_Strict):
    """One rule of the judge `rules`."""

    answer: str = Field(description="Answer if the rule matches.")
    criterion: str = Field("*", description="Name or pattern of the criteria it applies to.")
    contains: str = Field("", description="Text that one of the judged texts must contain.")


class JudgePrice(_Strict):
    """Price of the judge's model, US dollars per million tokens."""

    input_usd_per_mtok: float = Field(ge=0)
    output_usd_per_mtok: float = Field(ge=0)


class JudgingConfig(_Strict):
    """How the judge is asked.

    The run folder stores it, so that scoring again gives the same votes.
    """

    samples: int = Field(default=3, ge=1, le=25, description="Votes of a model per question.")
    output_tokens_max: int = Field(default=1024, ge=16, description="Output tokens of one reply.")
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="Sampling temperature; the provider's default if unset.",
    )
    price: JudgePrice | None = Field(
        default=None, description="Price of the judge's model, for the costs of judging."
    )
    rules: tuple[JudgeRule, ...] = Field(default=(), description="Rules of the judge `rules`.")


class Counterpart(_Strict):
    """The simulated participant at one seat."""

    agent: str = Field(
        description="Built-in name, module:Class, folder with a Dockerfile, or image."
    )
    model: str | None = Field(default=None, description="Its model; default: `model` of the run.")


class AgentConfig(_Strict):
    """An agent with a label and with arguments of its class."""

    agent: str = Field(
        description="Built-in name, module:Class, folder with a Dockerfile, or image."
    )
    label: str | None = Field(default=None, description="Name in tables; default: `agent`.")
    arguments: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Keyword arguments of a module:Class, or settings of an acp: agent.",
    )


class MonitorConfig(_Strict):
    """A monitor with a name, a deadline, or arguments of its class."""

    monitor: str = Field(
        description="FILE.yaml, FILE.py:Class, module:Class, model:NAME or person."
    )
    name: str | None = Field(
        default=None, min_length=1, max_length=64, description="Name in the trace."
    )
    deadline_s: float | None = Field(
        default=None, gt=0, le=3600, description="Time for one decision, seconds."
    )
    arguments: dict[str, JsonValue] = Field(
        default_factory=dict, description="Keyword arguments of the class, or of a model monitor."
    )
    budget: ModelBudget = Field(
        default=ModelBudget(), description="Budget of a model monitor in each episode."
    )


class TaskSelection(_Strict):
    """The tasks of the suite that a run uses, in the order of the suite."""

    names: tuple[str, ...] = Field(("*",), min_length=1, description="Task IDs or patterns.")
    tags: dict[str, str] = Field(
        default_factory=dict,
        description="Tag to a value or pattern, such as category: multi_turn_*.",
    )
    limit: int | None = Field(
        default=None, ge=1, description="Number of tasks, from the first one."
    )
    sample: int | None = Field(
        default=None, ge=1, description="Number of tasks, drawn with `sample_seed`."
    )
    sample_seed: int = Field(default=0, description="Seed of the drawn sample.")

    @model_validator(mode="after")
    def _one_number(self) -> TaskSelection:
        if self.limit is not None and self.sample is not None:
            raise ValueError("limit and sample exclude each other: remove one")
        return self


_Bounds: Any = create_model(  # type: ignore[call-overload]
    "_Bounds",
    __base__=_Strict,
    **{
        kind.value: (int | None, Field(default=None, ge=0, description=kind.description))
        for kind in BudgetKind
    },
)


class BudgetChange(_Bounds):  # type: ignore[misc]
    """Bounds that replace those of the tasks, for the seats of the tested agent."""

    scale: float | None = Field(
        None, gt=0, description="Factor of the steps, calls and retries of each task, rounded up."
    )

    def changes(self) -> dict[str, Any]:
        """Return what is set, without the label of a level."""
        changes: dict[str, Any] = self.model_dump(exclude={"label"}, exclude_none=True)
        return changes


class TeamConfig(_Strict):
    """A supervisor and workers that replace the one agent of each task, within its budget."""

    workers: int = Field(ge=1, le=15, description="Number of workers: worker1, worker2, …")


_Object = TypeVar("_Object", bound=BaseModel)


def _kind_of(value: Any) -> str:
    return "object" if isinstance(value, dict | BaseModel) else "text"


TextOr = Annotated[
    Annotated[str, Tag("text")] | Annotated[_Object, Tag("object")], Discriminator(_kind_of)
]
"""A text, or an object with more settings."""


HERE = "here"
"""Plays the episodes on this machine, without a cluster."""
RAY = "ray://"
LOCAL = "local:"
ON_PATTERN = r"^(here|local:[1-9][0-9]{0,2}|ray://\S+:[0-9]{1,5})$"
"""Forms of the setting ``on``."""

DataMode = Literal["offline", "live", "record", "replay"]

MACHINE_SETTINGS = frozenset(
    {"concurrency", "engine", "forked_starts", "i_trust_this_agent", "i_trust_this_cluster"}
    | {"on", "prepare", "runtime", "service_workers"}
)
"""Settings of the execution. They are not part of the plan."""

SUITE_SETTINGS = frozenset({"suite", "tasks", "faults", "budget", "team", "from_workspace"})
"""Settings that determine the suite. The digests of the suites are compared instead."""


class RunConfig(_Strict):
    """A run of agents on a suite."""

    suite: str = Field(description="NAME[:ARGUMENT] of a benchmark, or a file or folder of tasks.")
    agents: tuple[TextOr[AgentConfig], ...] = Field(
        min_length=1,
        description="Built-in name, module:Class, folder with a Dockerfile, image, image archive "
        "(engine oci), or acp:NAME; LABEL=… sets its label.",
    )
    tasks: TaskSelection | None = Field(
        None, description="Tasks of the suite to run; all if unset."
    )
    trials: int = Field(1, ge=1, strict=True, description="Episodes per agent and task.")
    seed: int = Field(
        0, description="Seed of the run; with 0, the first trial has the seed of its task."
    )
    on: str = Field(
        HERE,
        json_schema_extra={"pattern": ON_PATTERN},
        description="Where episodes are played: here, the nodes of a Ray cluster "
        "(ray://HOST:PORT), or N processes of this machine (local:N).",
    )
    i_trust_this_cluster: bool = Field(
        False, description="Allow a Ray cluster without token authentication."
    )
    concurrency: int = Field(
        2, ge=1, description="Concurrent episodes on this machine, or on each node."
    )
    service_workers: int = Field(1, ge=1, le=64, description="Service processes of each node.")
    prepare: int = Field(
        0,
        ge=0,
        description="Number of next episodes whose boxes are started in advance.",
    )
    engine: str = Field("auto", description="docker, oci, bubblewrap, inline, process, or auto.")
    runtime: str | None = Field(
        None, description="Container runtime of the engine docker or oci, such as runsc."
    )
    forked_starts: bool = Field(
        True,
        description="Fork agents from a prepared process in the bubblewrap engine; false starts a "
        "new Python for each.",
    )
    i_trust_this_agent: bool = Field(
        False, description="Allow the process engine to run any agent."
    )
    wall_time_s: float = Field(
        60.0,
        gt=0,
        le=WALL_TIME_S_MAX,
        description="Wall time of an episode whose task sets none, seconds.",
    )
    data_mode: DataMode = Field("offline", description="Source of searches and pages.")
    snapshot: Path | None = Field(None, description="Folder of the snapshot that the tasks name.")
    recording: Path | None = Field(
        None, description="Folder that record appends to and replay reads."
    )
    recording_mb: int = Field(
        RECORDING_MB,
        ge=1,
        description="Size of the recording, MiB; an episode adds at most a 16th.",
    )
    fetch: FetchPolicy | None = Field(
        None, description="Limits of fetching pages, for live and record."
    )
    search: SearchConfig | None = Field(None, description="Search provider, for live and record.")
    faults: str | None = Field(
        None, description="YAML file of additional faults; `none` disables it."
    )
    fault_intensity: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Multiplies the probability of each additional fault, 0 to 1.",
    )
    budget: BudgetChange | None = Field(
        None, description="Bounds that replace those of the tasks, for the tested agents."
    )
    ask_confidence: bool = Field(
        False, description="Ask agents how likely it is that they have done the task correctly."
    )
    prompt_variants: int = Field(
        0,
        ge=0,
        description="Number of wordings of each instruction, one per trial; 0: that of the task.",
    )
    reword_published: bool = Field(
        False, description="Allow prompt variants of published instructions."
    )
    shared_score: bool = Field(
        False,
        description="Also run the tests inside each workspace, as Harbor does by default; an agent "
        "can forge this score.",
    )
    keep_workspaces: Path | None = Field(
        None,
        description="Folder for tars of what each episode changed in its workspace "
        "(AGENT/TASK.TRIAL.tar).",
    )
    from_workspace: Path | None = Field(
        None, description="Such a tar, from which each trial of the only task starts."
    )
    team: TeamConfig | None = Field(
        None, description="Plays each task with a supervisor and workers, within the task's budget."
    )
    model: str | None = Field(None, description="Model that built-in scaffolds call.")
    models: ModelsConfig | None = Field(
        None, description="Model providers; without them no model can be called."
    )
    judge: str | None = Field(
        None,
        description="Judge of criteria that no rule decides: a model of `models`, exact, or rules.",
    )
    judging: JudgingConfig = Field(default=JudgingConfig(), description="How the judge is asked.")
    monitors: tuple[TextOr[MonitorConfig], ...] | None = Field(
        None,
        description="Monitors that decide about each step, in order: FILE.yaml, FILE.py:Class, "
        "module:Class, model:NAME or person.",
    )
    seats: dict[str, Counterpart] = Field(
        default_factory=dict, description="Counterpart by seat; default: the one the suite names."
    )
    limits: BoxLimits = Field(default=BoxLimits(), description="Limits of each box.")
    messages: MessageLimits = Field(
        default=MessageLimits(), description="Limits on what an agent may send."
    )
    levels: dict[str, str] = Field(
        default_factory=dict,
        description="Name of the run's level of each factor of an experiment, for tables.",
    )
    plan: str | None = Field(
        None, description="Digest of the plan of the experiment that the run belongs to."
    )
    shard: str | None = Field(
        None, description="Part K/N of the episodes to play, such as 3/16; all if unset."
    )

    @field_validator("on")
    @classmethod
    def _known_place(cls, on: str) -> str:
        if re.fullmatch(ON_PATTERN.strip("^$"), on) is None:
            raise ValueError(f"{on!r} is not here, local:N (1 to 999) or ray://HOST:PORT")
        return on

    @field_validator("shard")
    @classmethod
    def _numbered(cls, shard: str | None) -> str | None:
        return None if shard is None else str(Shard.parse(shard))

    @model_validator(mode="after")
    def _records_here(self) -> Self:
        models = self.models
        records = self.data_mode == "record" or (
            models is not None and models.mode == "record" and models.cassette is not None
        )
        if self.shard is not None and records:
            raise ValueError("a shard cannot record outside its run folder: record on one machine")
        if self.i_trust_this_cluster and not self.on.startswith(RAY):
            raise ValueError(f"i_trust_this_cluster has no effect on {self.on}: remove it")
        return self

    @property
    def shards(self) -> int:
        """The number of shards, which share the limits of providers and the space for bodies."""
        return Shard.parse(self.shard).count if self.shard else 1

    def plan_settings(self) -> dict[str, Any]:
        """Return all settings but those of the execution and the shard."""
        return self.model_dump(mode="json", exclude={*MACHINE_SETTINGS, "shard"})

    def run_differences(self, other: RunConfig) -> set[str]:
        """Return the settings, apart from those of the suite, in which two plans differ."""
        names = RunConfig.model_fields.keys() - MACHINE_SETTINGS - SUITE_SETTINGS
        return {name for name in names if getattr(self, name) != getattr(other, name)}


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the settings of a configuration file; keys and values are checked.

    Raises:
        InputError: the file is not readable YAML, or a key or value is invalid.
    """
    settings = parse_yaml(path, "settings, such as 'suite: sample'")
    try:
        run_config({"suite": "any", "agents": ("any",), **settings})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return settings


def run_config(settings: Mapping[str, Any], variables: Mapping[str, str] = {}) -> RunConfig:
    """Return validated settings.

    Args:
        settings: by name.
        variables: environment variable of each setting that came from one; errors name it.

    Raises:
        InputError: a key is unknown, or a value is missing or out of range; names the first.
    """
    try:
        return RunConfig.model_validate(settings)
    except ValidationError as error:
        first = field_errors(error, RunConfig)[0]
        variable = variables.get(str(first.location[0])) if first.location else None
        raise InputError(f"{variable}: {first}" if variable else str(first)) from None


def machine_settings(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the execution in environment variables, such as FUMEHOOD_ENGINE.

    Raises:
        InputError: a value is invalid; names its variable.
    """
    names = {name: f"FUMEHOOD_{name.upper()}" for name in sorted(MACHINE_SETTINGS)}
    names = {name: variable for name, variable in names.items() if variables.get(variable)}
    given = {name: variables[variable] for name, variable in names.items()}
    config = run_config({"suite": "any", "agents": ("any",), **given}, names)
    return {name: getattr(config, name) for name in names}


def usual_machine_settings() -> dict[str, Any]:
    """Return the settings of the execution with their default values."""
    return {name: RunConfig.model_fields[name].default for name in sorted(MACHINE_SETTINGS)}


def read_model(path: Path, model: type[_Object], content: str) -> _Object:
    """Return the content of a YAML file as an instance of a model; see :func:`parse_yaml`.

    Raises:
        InputError: the file is not readable YAML, or a key or value is invalid; names the first.
    """
    settings = parse_yaml(path, content)
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        raise InputError(f"{path}: {field_errors(error, model)[0]}") from None


def parse_yaml(path: Path, content: str) -> dict[str, Any]:
    """Return the object in a YAML file; a repeated key or an alias is an error.

    Args:
        path: of the file.
        content: what the object must contain, in words.

    Raises:
        InputError: the file is not readable YAML, with its line, or contains no object.
    """
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        settings = load_yaml(text)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        line, problem = line_and_problem(text, error)
        raise InputError(f"{path}:{line}: {problem}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply") from None
    if not isinstance(settings, dict):
        raise InputError(f"{path}: must contain {content}")
    return settings
