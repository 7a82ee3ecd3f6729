"""Boxes without restrictions: the agent is root inside, with every capability and without a system
call filter.

User namespaces still protect the host, because root of the box is a user without rights there.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from fumehood.engines.engine import AGENT_FOLDER, BoxSpec, EngineOptions
from fumehood.engines.process import ProcessEngine
from fumehood.engines.subprocess_box import ChildBox

PYTHON = "/usr/bin/python3"
"""A Python that all users can execute, unlike one in root's home folder."""
_CLOUD = Path(__file__).with_name("fake_cloud.py")


class OpenBoxes(ProcessEngine):
    """An engine that stops no attack on the kernel of its namespaces."""

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
