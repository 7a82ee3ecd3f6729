"""Resolves agent references and decides which agent takes which seat."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite, Task
from fumehood.engines.engine import BOX_SOCKET_DIR, IN_IMAGES, AgentKind, AgentSource, Image
from fumehood.engines.images.recipe import RECIPES
from fumehood.orchestrator.config import AgentConfig, ModelsConfig, RunConfig
from fumehood_agent.builtin import BUILTIN
from fumehood_agent.scaffolds.table import WITH_MODEL

ACP = "acp:"
"""Prefix of a recipe, folder or image whose program speaks the Agent Client Protocol."""
PERMISSIONS = ("allow", "reject")
"""Answers to the permission requests of an ACP agent; the first one is the default."""

_HELPER = f"{BOX_SOCKET_DIR}/bin/fumehood"
_PLAYS_ACP = (_HELPER, "run", "--port", "4141", "--", _HELPER, "acp")

ORACLE = "oracle"
"""Name of the built-in agent that replays a task's oracle, on every seat."""

_LABELLED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,63})=(.+)", re.DOTALL)
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_PYTHON_FILE = re.compile(r"(?:\./)?([\w/]+)\.py(?::(\w+))?")
"""A file in place of a module, as in ``my_agent.py:Agent``."""

_PROOFS = dict.fromkeys((kind.value for kind in AgentKind), "code") | {
    AgentKind.IMAGE.value: "digest"
}
"""Field of ``run.json`` with the digest of the code of an agent, by the kind of agent."""


@dataclass(frozen=True, slots=True)
class NamedAgent:
    """An agent of a run: a tested agent or a counterpart (a simulated participant)."""

    label: str
    """Name in tables; unique among the tested agents of a run."""
    source: AgentSource
    model: str | None = None
    """Model that the agent calls if it is a scaffold."""
    arguments: JsonObject = field(default_factory=dict)
    """Keyword arguments of its class, or settings of an ACP agent."""
    speaks_acp: bool = False
    """Whether its program is an agent of the Agent Client Protocol, which the in-box command
    plays."""

    def started_in(self, image: Image) -> Image:
        """Return the agent's image with the command that plays an episode."""
        if not self.speaks_acp:
            return image
        model = ("--model", self.model) if self.model else ()
        answers = ("--permissions", str(self.arguments.get("permissions", PERMISSIONS[0])))
        own = cast("list[str]", self.arguments.get("command")) or image.command
        return replace(image, command=(*_PLAYS_ACP, *model, *answers, "--", *own))


def name_agents(
    references: Sequence[str | AgentConfig], model: str | None = None
) -> tuple[NamedAgent, ...]:
    """Resolve agent references.

    Args:
        references: built-in names, ``module:Class``, folders, images, or ``acp:`` and a recipe,
            folder or image, each optionally as ``LABEL=REFERENCE``. A class and an ACP agent may
            have arguments: ``module:Class{"name": value}``.
        model: model that scaffolds among them call.

    Returns:
        One agent per reference, in the same order.

    Raises:
        InputError: a reference cannot be resolved, or two agents have the same label.
    """
    agents = tuple(_resolve(reference, model) for reference in references)
    labels = [agent.label for agent in agents]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(
                f"two agents have the label {label!r}: rename one, for example other={label}"
            )
    return agents


def is_scaffold(agent: NamedAgent) -> bool:
    """Return whether the agent is a built-in scaffold, which calls a model."""
    return agent.source.kind is AgentKind.BUILTIN and agent.source.name in WITH_MODEL


def identity_of(agent: NamedAgent, models: ModelsConfig | None) -> JsonObject:
    """Return the scaffold, model and changed model parameters of an agent, or the protocol that it
    speaks; empty for others."""
    if agent.speaks_acp:
        return {"protocol": "acp", **({"model": agent.model} if agent.model else {})}
    if not is_scaffold(agent):
        return {}
    parameters = models.parameters_of(str(agent.model)).changed() if models else {}
    return {"scaffold": agent.source.name, "model": agent.model, "model_parameters": parameters}


def is_builtin(agent: NamedAgent, name: str) -> bool:
    """Return whether the agent is the built-in agent ``name``."""
    return agent.source.kind is AgentKind.BUILTIN and agent.source.name == name


def code_differences(one: JsonObject, other: JsonObject) -> list[str]:
    """Return the labels of agents whose code differs between two ``run.json``.

    An agent that is an image is compared by the digest of the image. Where one of them states no
    digest, as runs of earlier versions, nothing is compared.
    """
    proofs, others = _proofs(one), _proofs(other)
    return sorted(
        key[1]
        for key in proofs.keys() & others.keys()
        if proofs[key] and others[key] and proofs[key] != others[key]
    )


def _proofs(manifest: JsonObject) -> dict[tuple[str, str, object, object], object]:
    """Return the digest of the code of each agent and counterpart."""
    return {
        (name, str(agent["label"]), agent["name"], agent.get("seat")): agent.get(
            _PROOFS[str(agent["kind"])]
        )
        for name in ("agents", "counterparts")
        for agent in cast("list[JsonObject]", manifest.get(name, []))
    }


class Participants:
    """The tested agents of a run and the counterparts at the other seats."""

    def __init__(self, config: RunConfig, suite: Suite) -> None:
        """Resolve every agent of the run.

        Raises:
            InputError: an agent cannot be resolved, or ``config.seats`` names an unknown seat.
        """
        _check_seats(config, suite)
        self.agents = name_agents(config.agents, config.model)
        """The tested agents, in the order of the configuration."""
        self._by_seat = {
            seat: name_agents([choice.agent], choice.model or config.model)[0]
            for seat, choice in config.seats.items()
        }
        names = {
            name
            for case in suite.cases
            for seat, name in case.task.counterparts.items()
            if seat not in config.seats
        }
        self._defaults = {name: name_agents([name], config.model)[0] for name in sorted(names)}
        self._model = config.model

    def all(self) -> tuple[NamedAgent, ...]:
        """Return every agent that needs an image, once per source."""
        by_source = {
            agent.source: agent
            for agent in (*self.agents, *self._by_seat.values(), *self._defaults.values())
        }
        return tuple(by_source.values())

    def counterparts_of_run(self) -> Mapping[str, NamedAgent]:
        """Return the counterparts that the run names and that are not built-in, by seat."""
        return {
            seat: agent
            for seat, agent in self._by_seat.items()
            if agent.source.kind is not AgentKind.BUILTIN
        }

    def models(self) -> frozenset[str]:
        """Return the models that the run configuration names."""
        models = (self._model, *(agent.model for agent in self._by_seat.values()))
        return frozenset(model for model in models if model)

    def scaffolds(self) -> Iterator[tuple[str, str | None]]:
        """Yield how messages refer to each scaffold and its model; None if no model is named."""
        for agent in self.agents:
            if is_scaffold(agent):
                yield agent.label, agent.model
        for seat, agent in self._by_seat.items():
            if is_scaffold(agent):
                yield f"the seat {seat}", agent.model

    def with_models(self) -> tuple[NamedAgent, ...]:
        """Return the scaffolds of all seats, each with its model."""
        agents = (*self.agents, *self._by_seat.values(), *self._defaults.values())
        return tuple(agent for agent in agents if is_scaffold(agent))

    def check_model(self, models: ModelsConfig | None) -> None:
        """Reject a model of the run that none of its agents can call.

        Args:
            models: section ``models`` of the configuration; with it, an agent that is not built-in
                may call the model.

        Raises:
            InputError: nothing calls the model.
        """
        calls = any(agent.model == self._model for agent in self.with_models())
        own = any(agent.source.kind is not AgentKind.BUILTIN for agent in self.all())
        if self._model and not calls and not (own and models):
            raise InputError(
                f"no agent of the run calls the model {self._model}: remove --model (the setting "
                "`model`), or name a scaffold, such as --agent react"
            )

    def tested(self, label: str) -> NamedAgent:
        """Return the tested agent with a label."""
        return next(agent for agent in self.agents if agent.label == label)

    def counterparts(self, task: Task, tested: NamedAgent) -> Mapping[str, NamedAgent]:
        """Return the agents of the seats after the first; the tested agent takes the others.

        The oracle takes all seats, and each of its boxes replays the calls of one seat.
        """
        if is_builtin(tested, ORACLE):
            return {seat.name: tested for seat in task.seats[1:]}
        chosen = {seat.name: self._counterpart(task, seat.name) for seat in task.seats[1:]}
        return {seat: agent for seat, agent in chosen.items() if agent is not None}

    def _counterpart(self, task: Task, seat: str) -> NamedAgent | None:
        name = task.counterparts.get(seat)
        return self._by_seat.get(seat) or (self._defaults[name] if name else None)


def _check_seats(config: RunConfig, suite: Suite) -> None:
    # The first seat always belongs to the tested agent.
    known = {seat.name for case in suite.cases for seat in case.task.seats[1:]}
    for name in config.seats:
        if name not in known:
            hint = (
                f"counterparts have the seats {', '.join(sorted(known))}"
                if known
                else "its tasks have only the seat of the tested agent"
            )
            raise InputError(f"seats: {suite.name} has no seat {name!r}; {hint}")


def _resolve(given: str | AgentConfig, model: str | None) -> NamedAgent:
    config = given if isinstance(given, AgentConfig) else _config_of(given)
    labelled = _LABELLED.fullmatch(config.agent)
    label, reference = labelled.groups() if labelled else (None, config.agent)
    speaks_acp = reference.startswith(ACP)
    reference = reference.removeprefix(ACP)
    if speaks_acp:
        source = _acp_source(reference, config.arguments)
    else:
        source = _source(reference)
        if config.arguments and source.kind is not AgentKind.MODULE:
            raise InputError(f"{reference} takes no arguments: only an agent module:Class does")
    is_path = source.name.startswith("/")
    default = Path(source.name).name.removesuffix(".tar") if is_path else reference
    name = config.label or label or default
    return NamedAgent(name, source, model, config.arguments, speaks_acp)


def _acp_source(reference: str, arguments: JsonObject) -> AgentSource:
    """Return the source of an ACP agent, and check its settings."""
    for name, value in arguments.items():
        match name, value:
            case "permissions", str() if value in PERMISSIONS:
                pass
            case "command", [_, *_] if all(isinstance(word, str) for word in value):
                pass
            case _:
                raise InputError(
                    f"{ACP}{reference} takes the settings `permissions` "
                    f"({' or '.join(PERMISSIONS)}) and `command` (a list of words)"
                )
    if reference in RECIPES:
        return AgentSource(AgentKind.RECIPE, reference)
    if reference and (source := _source(reference)).kind in IN_IMAGES:
        return source
    missing = "" if reference else " lacks the name of an agent"
    raise InputError(
        f"{ACP}{reference}{missing}: name a recipe ({', '.join(RECIPES)}), a folder with a "
        f"Dockerfile, or an image, such as {ACP}{next(iter(RECIPES))}, {ACP}FOLDER or {ACP}IMAGE"
    )


def _config_of(text: str) -> AgentConfig:
    """Return the agent and its arguments, which are a JSON object after its name."""
    reference, brace, arguments = text.partition("{")
    if not brace:
        return AgentConfig(agent=text)
    try:
        return AgentConfig(agent=reference, arguments=json.loads(brace + arguments))
    except ValueError:
        raise InputError(
            f'{text}: the arguments must be a JSON object, such as {reference}{{"patience": 3}}'
        ) from None


def _source(reference: str) -> AgentSource:
    if not reference:
        # As a path, it would mean the current folder.
        raise InputError("the name of an agent is empty: name one, such as policy_aware")
    if reference in BUILTIN or reference in WITH_MODEL:
        return AgentSource(AgentKind.BUILTIN, reference)
    folder = Path(reference)
    if (folder / "oci-layout").is_file() or (folder.suffix == ".tar" and folder.is_file()):
        return AgentSource(AgentKind.IMAGE, str(folder.resolve()))
    if folder.is_dir():
        if not (folder / "Dockerfile").is_file():
            raise InputError(f"the folder {reference} is not an agent: it has no Dockerfile")
        return AgentSource(AgentKind.FOLDER, str(folder.resolve()))
    if _MODULE.fullmatch(reference) and _is_module(reference):
        return AgentSource(AgentKind.MODULE, reference)
    if file := _PYTHON_FILE.fullmatch(reference):
        example = f"{file[1].replace('/', '.')}:{file[2] or 'Agent'}"
        raise InputError(f"{reference} is a file: name a module and its class, such as {example}")
    if reference.startswith((".", "/")):
        raise InputError(f"there is no folder {reference}")
    if Path(f"{reference}.py").is_file():
        raise InputError(f"{reference} is a module: name a class of it, such as {reference}:Agent")
    near = difflib.get_close_matches(reference, (*BUILTIN, *WITH_MODEL), n=1, cutoff=0.8)
    if near:
        raise InputError(
            f"there is no agent {reference!r}; did you mean {near[0]!r}? "
            f"For an image of this name use {reference}:latest"
        )
    return AgentSource(AgentKind.IMAGE, reference)


def _is_module(reference: str) -> bool:
    """Return whether the reference is ``module:Class`` and not ``image:tag``.

    The class is capitalised, or the module is a file below the working directory.
    """
    module, _, name = reference.partition(":")
    path = Path(*module.split("."))
    return (
        name[0].isupper() or path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
    )
