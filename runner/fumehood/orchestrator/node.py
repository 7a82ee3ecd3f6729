"""A node: plays episodes on one machine for a run that another machine scores and writes.

Every argument and result is bytes with JSON, and no exception leaves a node, because a cluster
would transport it as an object with code.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256

from fumehood.core.episode_spec import monitor_spec_from_json
from fumehood.core.errors import InfraError, InputError
from fumehood.core.trace import ModelExchange
from fumehood.engines.code_digest import code_digest
from fumehood.engines.engine import Mount
from fumehood.engines.ownership import owner_labels
from fumehood.engines.records import owned_folder
from fumehood.orchestrator.agents import NamedAgent
from fumehood.orchestrator.box_plans import engine_limits
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.episode_runner import (
    BoxPlan,
    InlinePlan,
    attempt_episode,
    attempt_inline,
)
from fumehood.orchestrator.machine import Machine, Needs, prepared_machine
from fumehood.orchestrator.models import HELD_BYTES_MAX, gateway_settings
from fumehood.orchestrator.node_messages import (
    Object,
    Reply,
    reply_to_bytes,
    request_from_bytes,
    source_name,
    source_of,
    to_bytes,
)
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.records.redaction import Redaction
from fumehood.version import __version__

INPUT, INFRA = "input", "infra"
"""Kinds of errors in an answer."""


class _HeldExchanges:
    """Model requests with their responses until the node sends them; none if they are too large.

    An agent chooses their size, and a node that has no memory left is lost with all its episodes.
    """

    def __init__(self) -> None:
        self.exchanges: list[ModelExchange] = []
        self._left_bytes = HELD_BYTES_MAX

    def add(self, exchange: ModelExchange) -> None:
        self._left_bytes -= len(exchange.request) + len(exchange.response)
        if self._left_bytes < 0:
            self.exchanges.clear()
        else:
            self.exchanges.append(exchange)


class Node:
    """Plays episodes on this machine. Safe to use from several threads after :meth:`start`."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._machine: Machine | None = None
        self._pool: ServicePool | None = None
        self._redaction = Redaction(())

    def start(self, settings: bytes) -> bytes:
        """Choose the engine, prepare the images and start the services.

        Args:
            settings: of :func:`~fumehood.orchestrator.nodes.node_settings`.

        Returns:
            The version, the host, the engine and the images of this node, or an error.
        """
        return self._answer(lambda: self._start(json.loads(settings)))

    def play(self, request: bytes) -> bytes:
        """Play the episodes of a request; answer with their attempts, or with an error."""
        return self._answer(lambda: self._play(request))

    def ping(self) -> bytes:
        """Show that this process answers."""
        return b""

    def abandon(self) -> None:
        """Fail every running episode at once."""
        if self._pool is not None:
            self._pool.abandon()

    def close(self) -> None:
        """End the services and remove every box."""
        self._stack.close()

    def _start(self, settings: Object) -> bytes:
        if settings["version"] != __version__:
            raise InputError(
                f"it has Fumehood {__version__}, and the run {settings['version']}: "
                "install the same version"
            )
        try:
            os.chdir(settings["folder"])
        except OSError as error:
            raise InputError(
                f"{settings['folder']}: {error.strerror}: use the same folder on all machines"
            ) from None
        config = run_config({"suite": "any", "agents": ("any",), **settings["config"]})
        gateway = None
        if config.models is not None:
            gateway = gateway_settings(
                config.models,
                settings["models"],
                config.service_workers,
                settings["judge"],
                settings["shares"],
            )
        agents = []
        for name, (code, speaks_acp) in settings["agents"].items():
            source = source_of(name)
            if code_digest(source) != code:
                raise InputError(
                    f"its code of {source.name} differs from that of the run: "
                    "copy the code to all machines"
                )
            agents.append(NamedAgent(source.name, source, speaks_acp=speaks_acp))
        needs = Needs(
            config=config,
            agents=agents,
            boxes=settings["boxes"],
            worlds=settings["worlds"],
            monitors=tuple(map(monitor_spec_from_json, settings["monitors"])),
            gateway=gateway,
        )
        self._redaction = Redaction(needs.secrets())
        self._machine = machine = self._stack.enter_context(prepared_machine(needs, lambda _: None))
        labels = owner_labels("node")
        folder = self._stack.enter_context(owned_folder(labels))
        folder.chmod(0o755)
        self._files, self._labels = folder, labels
        self._redaction = Redaction(machine.secrets())
        self._pool = self._stack.enter_context(machine.services(labels))
        return to_bytes(
            {
                "facts": machine.facts(),
                "reason": machine.chosen.reason,
                "host": {
                    "system": platform.system(),
                    "kernel": platform.release(),
                    "machine": platform.machine(),
                },
                "images": {
                    source_name(source): [image.reference, image.digest]
                    for source, image in machine.images.items()
                },
            }
        )

    def _play(self, request: bytes) -> bytes:
        pool = self._pool
        if pool is None:
            raise InfraError("the node was not started")
        episodes, recorded = request_from_bytes(request, self._new_box, self._new_mount)
        inline = [(spec, plan) for spec, plan in episodes if isinstance(plan, InlinePlan)]
        if len(inline) == len(episodes) > 1:
            return reply_to_bytes(Reply(attempt_inline(inline, pool), []))
        held = _HeldExchanges()
        attempts = [
            attempt_episode(spec, plan, pool, recorded, held.add) for spec, plan in episodes
        ]
        attempts = [
            replace(attempt, infra=self._redaction.outcome(attempt.infra)) for attempt in attempts
        ]
        return reply_to_bytes(Reply(attempts, list(map(self._redaction.exchange, held.exchanges))))

    def _new_box(self, agent: str) -> BoxPlan:
        assert self._machine is not None
        return BoxPlan(
            engine=self._machine.chosen.engine,
            image=self._machine.images[source_of(agent)],
            limits=engine_limits(self._machine.needs.config.limits),
            labels=self._labels,
        )

    def _new_mount(self, target: str, text: str) -> Mount:
        path = self._files / f"{sha256(text.encode()).hexdigest()}.json"
        if not path.exists():
            unfinished = self._files / secrets.token_hex(8)
            unfinished.write_text(text, encoding="ascii")
            unfinished.chmod(0o644)
            unfinished.replace(path)
        return Mount(path, target)

    def _answer(self, work: Callable[[], bytes]) -> bytes:
        """Return what ``work`` returns, or its error without the keys of this machine."""
        try:
            return work()
        except InputError as error:
            kind, text = INPUT, str(error)
        except InfraError as error:
            kind, text = INFRA, str(error)
        except BaseException:
            kind, text = INFRA, traceback.format_exc()
        redacted = self._redaction.redacted(text.encode("utf-8", "replace"))
        return to_bytes({"error": [kind, redacted.decode()]})
