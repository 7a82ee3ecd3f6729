"""Runs a conformance agent in a box on one protocol case."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from fumehood.agent_check.cases import ProtocolCase
from fumehood.agent_check.check import Check, Verdict
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.engine import (
    AGENT_FOLDER,
    AgentKind,
    AgentSource,
    Engine,
    EngineOptions,
    Image,
    Mount,
)
from fumehood.engines.images.agent_python import build_agent_python
from fumehood.engines.images.helper import build_helper
from fumehood.engines.registry import choose_engine
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from tests.conformance.agents.languages import Language

WALL_MS = 240_000
"""Long, because boxes yield the processors to the other tests."""


class Stage:
    """An engine with a service."""

    def __init__(self, engine: Engine, pool: ServicePool, folder: Path) -> None:
        self._engine = engine
        self._pool = pool
        self._folder = folder
        self._images: dict[str, Image] = {}

    def play(self, language: Language, case: ProtocolCase) -> list[str]:
        """Run an agent on a case; return the problems."""
        if language.name not in self._images:
            self._images[language.name] = self._image(language)
        check = Check(self._engine, self._images[language.name], self._pool, WALL_MS)
        return [
            finding.detail
            for finding in check.protocol([case.name])
            if finding.verdict is not Verdict.HOLDS
        ]

    def _image(self, language: Language) -> Image:
        folder = self._folder / language.name.replace(" ", "-")
        folder.mkdir()
        language.lay_out(folder)
        for path in (folder, *folder.rglob("*")):
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
        image = self._engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
        if self._engine.name == "docker" and language.base is not build_agent_python:
            image = Image(_built(language), "", ("python3",))
        python, *_ = image.command
        command = tuple(python if word == "python3" else word for word in language.command)
        return replace(image, command=command, mounts=(*image.mounts, Mount(folder, AGENT_FOLDER)))


def _built(language: Language) -> str:
    daemon = Daemon()
    try:
        return language.base(lambda _: None, daemon)
    finally:
        daemon.close()


def engine_and_runtime(engine: str) -> tuple[str, str | None]:
    """Split a text such as ``docker/runsc`` into engine and runtime."""
    name, _, runtime = engine.partition("/")
    return name, runtime or None


@contextmanager
def stage(engine: str) -> Iterator[Stage]:
    """Prepare an engine such as ``docker/runsc``, with seats that offer every interface."""
    name, runtime = engine_and_runtime(engine)
    with ExitStack() as stack:
        chosen = choose_engine(name, EngineOptions(runtime=runtime, trust=True)).engine
        stack.callback(chosen.close)
        pool = stack.enter_context(
            ServicePool(1, ServiceOptions(http=HttpOffer(build_helper(lambda _: None))))
        )
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="")))
        folder.chmod(0o755)
        yield Stage(chosen, pool, folder)
