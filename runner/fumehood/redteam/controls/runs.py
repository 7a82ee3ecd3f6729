"""Runs the controls of attacks, each once, in the settings that they declare."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Self

from fumehood.core.errors import FumehoodError, InputError
from fumehood.engines.bubblewrap.engine import BubblewrapEngine
from fumehood.engines.engine import AGENT_FOLDER, BoxSpec, EngineOptions
from fumehood.engines.process import ProcessEngine
from fumehood.engines.subprocess_box import ChildBox
from fumehood.redteam.attacks import Attack, Result
from fumehood.redteam.controls.declared import (
    Control,
    ControlOutcome,
    ControlResult,
    Setting,
)
from fumehood.redteam.controls.service_control import run_against_naive_service
from fumehood.redteam.probe import MIB, Probe, Removed

PYTHON = "/usr/bin/python3"
"""A Python that all users can execute, unlike one in root's home folder."""
_CLOUD = Path(__file__).with_name("fake_cloud.py")

LOW = Removed(cpus=0.01)
"""Nothing enforces it outside a box; a plain process exceeds it even on a loaded machine."""
ATTEMPTS = 2
"""Runs of a control until it counts as failed: some rely on timing, and machines are loaded."""


class ControlRuns:
    """Runs controls on demand, and keeps their results. A context manager."""

    def __init__(self) -> None:
        self._to_close = ExitStack()
        self._probes: dict[Setting, Probe] = {}
        self._results: dict[str, ControlResult] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._to_close.close()

    def run(self, attack: Attack) -> ControlResult:
        """Return the result of an attack's control; run it if it has not been run."""
        if attack.name not in self._results:
            assert attack.control is not None
            self._results[attack.name] = self._run(attack, attack.control)
        return self._results[attack.name]

    def _run(self, attack: Attack, control: Control) -> ControlResult:
        setting = control.setting
        detail = ""
        for _ in range(ATTEMPTS):
            try:
                detail = self._attempt(attack, setting)
            except FumehoodError as error:
                return ControlResult(setting, ControlOutcome.NOT_POSSIBLE, str(error))
            if shown := control.shown_in(detail):
                return ControlResult(setting, ControlOutcome.SUCCEEDED, shown)
        observed = detail or "it had no effect"
        return ControlResult(
            setting, ControlOutcome.FAILED, f"expected {control.shows!r}: {observed}"
        )

    def _attempt(self, attack: Attack, setting: Setting) -> str:
        """Run a control once and return what was seen."""
        if setting is Setting.NAIVE_SERVICE:
            return "; ".join(run_against_naive_service(attack))
        verdict = self._probe(setting).attack(attack)
        if verdict.result is Result.NOT_APPLICABLE:
            raise InputError(verdict.detail)
        return verdict.detail

    def _probe(self, setting: Setting) -> Probe:
        if setting not in self._probes:
            self._probes[setting] = _SETTINGS[setting](self._to_close)
        return self._probes[setting]


def _no_box(stack: ExitStack, removed: Removed = LOW) -> Probe:
    engine = stack.enter_context(closing(ProcessEngine(EngineOptions(trust=True))))
    return stack.enter_context(Probe(engine, removed))


def _as_root(stack: ExitStack) -> Probe:
    if os.geteuid() != 0:
        raise InputError("the control needs root: repeat the command as root")
    return _no_box(stack)


def _open_box(stack: ExitStack) -> Probe:
    with closing(BubblewrapEngine(EngineOptions(forked_starts=False))) as engine:
        readiness = engine.check()
    if not readiness.ready:
        raise InputError(f"the control needs bubblewrap: {readiness.detail}")
    if not Path(PYTHON).exists():
        raise InputError(f"the control needs {PYTHON}: install python3 of this distribution")
    return stack.enter_context(Probe(stack.enter_context(closing(OpenBoxes())), interference=False))


_SETTINGS: dict[Setting, Callable[[ExitStack], Probe]] = {
    Setting.NO_BOX: _no_box,
    Setting.ROOT: _as_root,
    Setting.OPEN_BOX: _open_box,
    Setting.NO_OUTPUT_LIMIT: lambda stack: _no_box(stack, Removed(kept_output_bytes=64 * MIB)),
    Setting.NO_REFUSAL_LIMIT: lambda stack: _no_box(
        stack, Removed(service_limits={"refusals": 100_000})
    ),
    Setting.CARELESS_JUDGE: lambda stack: _no_box(stack, Removed(careless_judge=True)),
    Setting.PLAIN_READER: lambda stack: _no_box(stack, Removed(plain_reader=True)),
}


class OpenBoxes(ProcessEngine):
    """An engine that stops no attack on the kernel of its namespaces.

    The agent is root inside, with every capability and without a system call filter. User
    namespaces still protect the host, because root of the box is a user without rights there.
    """

    def __init__(self) -> None:
        super().__init__(EngineOptions(trust=True))

    def start(self, spec: BoxSpec) -> ChildBox:
        """Start the agent as root in new namespaces, with a metadata service and a name server."""
        (agents,) = (mount.source for mount in spec.image.mounts if mount.target == AGENT_FOLDER)
        program = tuple(PYTHON if word == sys.executable else word for word in spec.image.command)
        shutil.copy(_CLOUD, agents)
        canaries = next(
            Path(word[5:]).parent for word in spec.arguments if word.startswith("gold=")
        )
        cloud = (PYTHON, f"{agents}/{_CLOUD.name}")
        command = (*_unprivileged(), *_namespaces(agents, canaries), *cloud, *program)
        return super().start(replace(spec, image=replace(spec.image, command=command)))


def _unprivileged() -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ()
    return ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")


def _namespaces(agents: Path, canaries: Path) -> tuple[str, ...]:
    root = "bwrap --unshare-all --die-with-parent --uid 0 --gid 0 --cap-add ALL"
    view = "--ro-bind / / --dev-bind /dev /dev --tmpfs /dev/shm --proc /proc --tmpfs /run"
    shown = ("--ro-bind", str(agents), str(agents), "--bind", str(canaries), str(canaries))
    return (*f"{root} {view} --tmpfs /tmp".split(), *shown, "--")
