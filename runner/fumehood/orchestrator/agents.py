"""From what the user calls an agent to where its code is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.engines.engine import AgentKind, AgentSource
from fumehood_agent.builtin import BUILTIN
from fumehood_agent.scaffolds.table import WITH_MODEL

_LABELLED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,63})=(.+)", re.DOTALL)
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class NamedAgent:
    """An agent of a run."""

    label: str
    """Unique within the run; what tables call it."""
    source: AgentSource


def name_agents(given: Sequence[str]) -> tuple[NamedAgent, ...]:
    """Return the agents of a run.

    Args:
        given: built-in names, ``module:Class``, folders or images, each optionally as ``LABEL=…``.

    Raises:
        InputError: one is nothing of that, or two share a label.
    """
    agents = tuple(_name(text) for text in given)
    labels = [agent.label for agent in agents]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(
                f"two agents are called {label!r}: give one a name, such as other={label}"
            )
    return agents


def is_scaffold(agent: NamedAgent) -> bool:
    """Tell whether an agent asks a model that the run names."""
    return agent.source.kind is AgentKind.BUILTIN and agent.source.name in WITH_MODEL


def _name(text: str) -> NamedAgent:
    labelled = _LABELLED.fullmatch(text)
    label, what = labelled.groups() if labelled else (None, text)
    source = _source(what)
    plain = Path(source.name).name if source.kind is AgentKind.FOLDER else what
    return NamedAgent(label or plain, source)


def _source(what: str) -> AgentSource:
    if what in BUILTIN or what in WITH_MODEL:
        return AgentSource(AgentKind.BUILTIN, what)
    folder = Path(what)
    if folder.is_dir():
        if not (folder / "Dockerfile").is_file():
            raise InputError(f"the folder {what} has no Dockerfile, so it is no agent")
        return AgentSource(AgentKind.FOLDER, str(folder.resolve()))
    if _MODULE.fullmatch(what) and _looks_like_module(what):
        return AgentSource(AgentKind.MODULE, what)
    if what.startswith((".", "/")):
        raise InputError(f"there is no folder {what}")
    near = difflib.get_close_matches(what, (*BUILTIN, *WITH_MODEL), n=1, cutoff=0.8)
    if near:
        raise InputError(
            f"no agent is called {what!r}; did you mean {near[0]}? (an image: {what}:latest)"
        )
    return AgentSource(AgentKind.IMAGE, what)


def _looks_like_module(what: str) -> bool:
    """Tell ``module:Class`` from ``image:tag``: a class is capitalised, or its module is a file from here."""
    module, _, name = what.partition(":")
    path = Path(*module.split("."))
    return (
        name[0].isupper() or path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
    )
