"""Boxes that are all doors: their agent is root in them, with every capability and no list of system calls.

The kernel holds it to namespaces of its own and to what user "nobody" may do, so that no host comes to harm.
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
"""Python where everybody may enter, which that of a project under root's home is not."""
CLOUD = Path(__file__).with_name("fake_cloud.py")


class OpenBoxes(ProcessEngine):
    """An engine that any attack on the kernel gets through."""

    def __init__(self) -> None:
        super().__init__(EngineOptions(trust=True))

    def start(self, spec: BoxSpec) -> ChildBox:
        """Start the agent as root of a small world, with a cloud in reach."""
        (kit,) = (mount.source for mount in spec.image.mounts if mount.target == AGENT_FOLDER)
        program = tuple(PYTHON if word == sys.executable else word for word in spec.image.command)
        shutil.copy(CLOUD, kit)
        baits = next(Path(word[5:]).parent for word in spec.arguments if word.startswith("gold="))
        command = (*_as_nobody(), *_doors(kit, baits), PYTHON, f"{kit}/{CLOUD.name}", *program)
        return super().start(replace(spec, image=replace(spec.image, command=command)))


def _as_nobody() -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ()
    return ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")


def _doors(kit: Path, baits: Path) -> tuple[str, ...]:
    return (
        *(
            "bwrap",
            "--unshare-all",
            "--die-with-parent",
            "--uid",
            "0",
            "--gid",
            "0",
            "--cap-add",
            "ALL",
        ),
        *("--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--tmpfs", "/dev/shm"),
        *("--proc", "/proc", "--tmpfs", "/run"),
        *(
            "--tmpfs",
            "/tmp",
            "--ro-bind",
            str(kit),
            str(kit),
            "--bind",
            str(baits),
            str(baits),
            "--",
        ),
    )
