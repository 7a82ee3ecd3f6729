"""What a machine needs to play episodes: an engine, prepared images and services."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from fumehood.core.episode_spec import MonitorSpec
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.engines.engine import AgentKind, AgentSource, Engine, EngineOptions, Image, Isolation
from fumehood.engines.orphans import reap, reap_local
from fumehood.engines.ownership import owner_is_alive
from fumehood.engines.registry import INLINE, ChosenEngine, choose_engine
from fumehood.gateway.settings import GatewaySettings
from fumehood.orchestrator.agents import NamedAgent, is_scaffold
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.monitors import check_models
from fumehood.orchestrator.person import Person
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool, http_offer
from fumehood.orchestrator.stop_signals import deferred_stop_signals
from fumehood.orchestrator.workspaces.plans import is_inside
from fumehood.records.caches import last_probe
from fumehood.records.redaction import secrets_in

FILES_OF_A_BOX = 16
"""Open files of this process for one box, such as pipes; bubblewrap needs twelve."""
OTHER_FILES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What the episodes of a run need from a machine."""

    config: RunConfig
    """Only the settings of the execution, of models and of limits count."""
    agents: Collection[NamedAgent]
    """All participants, once per source."""
    boxes: int
    """Boxes that run at once, at most."""
    worlds: Sequence[str]
    monitors: Sequence[MonitorSpec]
    gateway: GatewaySettings | None
    """Settings of the model gateway, keys included; None if the run has no models."""

    def secrets(self) -> set[str]:
        """Return keys of providers, and values of variables and settings that are named like
        keys."""
        gateway = self.gateway
        secret = {provider.key for provider in gateway.providers} if gateway else set()
        for values in (os.environ, self.config.model_dump()):
            secret.update(secrets_in(values))
        return secret


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine whose engine is ready and whose images are prepared."""

    needs: Needs
    chosen: ChosenEngine
    images: Mapping[AgentSource, Image]
    http: HttpOffer | None

    @property
    def is_inline(self) -> bool:
        """Whether agents play inside the services."""
        return self.chosen.engine.isolation is Isolation.INLINE

    def facts(self) -> JsonObject:
        """Return the fields of ``run.json`` that state how this machine separates agents."""
        engine = self.chosen.engine
        return {
            "engine": engine.name,
            "isolation": engine.isolation.value,
            "isolation_facts": {
                **asdict(engine.isolation_facts()),
                "unenforced": list(engine.unenforced),
                **({"prepared": self.needs.config.prepare} if self.needs.config.prepare else {}),
            },
            "containment": last_probe(engine.name, engine.check().detail),
        }

    def services(self, labels: Mapping[str, str], person: Person | None = None) -> ServicePool:
        """Start the services.

        Args:
            labels: owner of processes and sockets.
            person: answers the monitor ``person``; None for no person.

        Raises:
            InfraError: a service does not start.
            InputError: a service cannot run on this machine.
        """
        config = self.needs.config
        return ServicePool(
            config.service_workers,
            ServiceOptions(
                http=self.http,
                labels=labels,
                worlds=self.needs.worlds,
                limits=config.messages.changed(),
                inline=self.is_inline,
                monitors=self.needs.monitors,
                person=person,
            ),
        )

    def secrets(self) -> set[str]:
        """Return the secrets of :meth:`Needs.secrets` and of the images."""
        secret = self.needs.secrets()
        for image in self.images.values():
            secret.update(secrets_in(image.environment))
        return secret


@contextmanager
def prepared_machine(needs: Needs, progress: Callable[[str], None]) -> Iterator[Machine]:
    """Choose the engine, prepare the images of all participants, and close it at the end.

    Args:
        needs: of the run.
        progress: called with one line when a step takes long.

    Raises:
        InputError: the engine or an agent cannot be used on this machine.
        InfraError: the engine does not answer.
    """
    config, agents = needs.config, needs.agents
    scaffolds = [agent.label for agent in agents if is_scaffold(agent)]
    if config.engine == INLINE and scaffolds:
        raise InputError(
            f"the inline engine does not run agents that call a model, such as {scaffolds[0]!r}: "
            "use --engine docker or bubblewrap"
        )
    allow_open_files(needs.boxes)
    all_builtin = all(agent.source.kind is AgentKind.BUILTIN for agent in agents)
    options = EngineOptions(
        runtime=config.runtime,
        forked_starts=config.forked_starts,
        trust=config.i_trust_this_agent,
        builtin_only=all_builtin and not scaffolds,
        archives=any(agent.source.is_archive for agent in agents),
        progress=progress,
    )
    with ExitStack() as stack:
        with deferred_stop_signals():  # An engine starts a box as a trial, which is removed.
            chosen = choose_engine(config.engine, options)
            engine = chosen.engine
            stack.callback(_close, engine)
            if config.prepare and engine.isolation.is_none:
                raise InputError(
                    f"prepare: {config.prepare}: the engine {engine.name} starts no boxes in "
                    "advance: use --engine docker, oci or bubblewrap, or --prepare 0"
                )
            reap_local(owner_is_alive)
            reap(engine, owner_is_alive)
        is_inline = engine.isolation is Isolation.INLINE
        check_models(needs.monitors, needs.gateway, is_inline=is_inline)
        images = {
            agent.source: engine.prepare(agent.source)
            for agent in agents
            if not is_inside(agent.source)
        }
        yield Machine(needs, chosen, images, http_offer(agents, needs.gateway, progress))


def _close(engine: Engine) -> None:
    with deferred_stop_signals():
        engine.close()


def allow_open_files(boxes: int) -> None:
    """Let this process and the services that it starts open as many files as ``boxes`` boxes need.

    Raises:
        InputError: this user may not open as many.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = OTHER_FILES + FILES_OF_A_BOX * boxes
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    unlimited = hard == resource.RLIM_INFINITY
    try:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (needed, hard if unlimited else max(hard, needed))
        )
    except (OSError, ValueError):  # Only root may raise the second limit.
        raise InputError(
            f"{boxes} concurrent boxes need {needed} open files, but this user may open {hard}: "
            f"use --concurrency {max(1, (hard - OTHER_FILES) // FILES_OF_A_BOX)} and --prepare 0, "
            f"or raise the limit with: ulimit -Hn {needed}"
        ) from None
