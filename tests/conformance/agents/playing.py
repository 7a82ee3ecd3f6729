"""One conformance agent in a box, one vector: what it said and did beside what has to come of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.agents.vector import Vector
from runner.core.episode_spec import ONLY_SEAT
from runner.core.evidence import Evidence, read_evidence
from runner.core.outcome import Finished, outcome_name
from runner.engines.docker_daemon import Daemon
from runner.engines.engine import (
    AGENT_FOLDER,
    AgentKind,
    AgentSource,
    Engine,
    EngineOptions,
    Image,
    Limits,
    Mount,
)
from runner.engines.images.agent_python import build_agent_python
from runner.engines.images.helper import build_helper
from runner.engines.ownership import owner_labels
from runner.engines.table import choose_engine
from runner.orchestrator.attempt import Attempt, BoxPlan, attempt_episode
from runner.orchestrator.service_pool import HttpOffer, ServicePool
from tests.conformance.agents.languages import Language

WALL_MS = 60_000
LABELS = owner_labels("conformance")


class Stage:
    """An engine, and a service behind it."""

    def __init__(self, engine: Engine, pool: ServicePool, folder: Path) -> None:
        self._engine = engine
        self._pool = pool
        self._folder = folder
        self._images: dict[str, Image] = {}

    def play(self, language: Language, vector: Vector) -> list[str]:
        """Let an agent carry out a vector; return what was not as it has to be."""
        if language.name not in self._images:
            self._images[language.name] = self._image(language)
        plan = BoxPlan(image=self._images[language.name], limits=Limits(), labels=LABELS)
        return list(
            differences(vector, attempt_episode(vector.spec(WALL_MS), self._engine, plan, self._pool))
        )

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


def words_of(engine: str) -> tuple[str, str | None]:
    """Return the name of an engine and that of a runtime, out of a text such as ``docker/runsc``."""
    name, _, runtime = engine.partition("/")
    return name, runtime or None


@contextmanager
def stage(engine: str) -> Iterator[Stage]:
    """Make boxes with an engine such as ``docker/runsc``, at seats that have every door."""
    name, runtime = words_of(engine)
    with ExitStack() as stack:
        chosen = choose_engine(name, EngineOptions(runtime=runtime, trust=True)).engine
        stack.callback(chosen.close)
        pool = stack.enter_context(ServicePool(1, HttpOffer(build_helper(lambda _: None))))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="")))
        folder.chmod(0o755)
        yield Stage(chosen, pool, folder)


def differences(vector: Vector, attempt: Attempt) -> Iterator[str]:
    """Yield what an attempt at a vector shows that it must not, or does not show that it must."""
    if attempt.infra is not None:
        yield f"our side failed: {attempt.infra}"
        return
    assert attempt.output is not None
    said = attempt.output.stdout.decode(errors="replace")
    if attempt.exit is None or attempt.exit.code != 0:
        yield f"it ended with {attempt.exit}: {attempt.output.stderr.decode(errors='replace')[-2000:]}"
    yield from _of_observations(vector, said)
    evidence = read_evidence(json.loads(record.event_json) for record in attempt.records)
    yield from _of_the_trace(vector, evidence)


def _of_observations(vector: Vector, said: str) -> Iterator[str]:
    try:
        observed = json.loads(said)
    except ValueError:
        yield f"it printed no JSON: {said[:500]!r}"
        return
    if said.count("\n") != 1 or not isinstance(observed, list):
        yield f"it printed more than one line, or no list: {said[:500]!r}"
        return
    if len(observed) != len(vector.observations):
        yield f"it made {len(observed)} observations of {len(vector.observations)}"
    for number, (seen, expected) in enumerate(zip(observed, vector.observations, strict=False), 1):
        if _written(seen) != _written(expected):
            yield f"observation {number} is {_written(seen)[:500]}, not {_written(expected)[:500]}"


def _of_the_trace(vector: Vector, evidence: Evidence) -> Iterator[str]:
    if len(evidence.exchanges) != vector.calls:
        yield f"{len(evidence.exchanges)} calls were carried out, not {vector.calls}"
    refused = [seen for seen in vector.observations if seen.get("refusal") not in (None, "ended")]
    if list(evidence.refusals) != [seen["refusal"] for seen in refused]:
        yield f"refused were {evidence.refusals}"
    end = evidence.ends.get(ONLY_SEAT)
    outcome = outcome_name(end).partition("(")[0] if end else "nothing"
    if outcome != vector.outcome:
        yield f"the work ended as {outcome}, not {vector.outcome}"
    if isinstance(end, Finished) and not vector.ends_itself:
        answers = (*evidence.turn_answers.get(ONLY_SEAT, ()), end.answer)
        if [seen for answer in answers for seen in _list(answer)] != list(vector.observations):
            yield f"it did not submit what it observed: {answers!r:.500}"


def _list(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def _written(value: Any) -> str:
    """Return JSON in which equal values, and no others, are equal texts."""
    return json.dumps(value, sort_keys=True)
