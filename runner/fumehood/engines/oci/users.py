"""What differs between boxes that root starts and boxes that an ordinary user starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fumehood.core.errors import InfraError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.box_files import HeldByBox, give_sockets
from fumehood.engines.bubblewrap.cgroups import hierarchies
from fumehood.engines.engine import BOX_UID, Limits
from fumehood.engines.oci.box_root import BoxRoot, BoxRoots, new_root
from fumehood.engines.oci.rootless import start_command, subordinate_ids
from fumehood.engines.oci.runtimes import RUNTIMES, Runtime
from fumehood.engines.subprocess_box import Command, ProcessLauncher

_UPPER_BYTES = 16 << 20
"""Of the files that a runtime makes in a root, such as targets of mounts."""


class RootUser:
    """Root, who makes the control group and the mounts of a box."""

    users = reserved = BOX_UIDS
    """The users of boxes on the host, and the IDs of which each box holds one."""
    inside: int | None = None
    """The user inside a box; None for the one that it holds."""
    sees_devices = False
    """Whether boxes see devices of the host."""
    workspace_problem = ""
    """Why this user cannot start workspaces; empty if it can."""
    missing = ""
    """What boxes of this user lack on this machine; empty for nothing."""

    def __init__(self, launcher: ProcessLauncher) -> None:
        """Make nothing yet; the mounts will be those of the thread of ``launcher``."""
        self._launcher = launcher
        self._roots = BoxRoots()

    def problem(self, runtime: Runtime) -> str:
        """Return why this user cannot start boxes with a runtime here; empty if it can."""
        if hierarchies() is None:
            return "no control groups can be made here, with memory, cpu and pids; use bubblewrap"
        return ""

    def give_sockets(self, folder: Path, held: HeldByBox) -> None:
        """Let only the user of a box connect to the sockets in a folder.

        Raises:
            InfraError: a socket cannot be changed.
        """
        give_sockets(folder, held.user())

    def root(self, image: Path | None, init: Path, held: HeldByBox, disk: Path | None) -> BoxRoot:
        """Return the root of a box, mounted until the box is gone.

        Args:
            image: the unpacked image; None for an empty one.
            init: the program that is the first process of the box.
            held: by the box.
            disk: an empty folder for what the box writes; None to have it in memory.

        Raises:
            InfraError: the kernel refuses the mounts.
        """
        root = new_root(disk)
        try:
            self._launcher.call(lambda: self._roots.make(root, image, init, _UPPER_BYTES))
        except OSError as error:
            where = f", with changes in {disk}" if disk else ""
            raise InfraError(f"cannot mount the root of a box{where}: {error.strerror}") from error
        held.on_release(lambda: self._launcher.call(lambda: self._roots.drop(root)))
        return root

    def adapted(self, config: dict[str, Any], limits: Limits, *, has_group: bool) -> dict[str, Any]:
        """Return the configuration of a box as the runtime of this user needs it.

        Args:
            config: of a box that root starts.
            limits: of the box.
            has_group: whether a control group limits the box.
        """
        return config

    def command(
        self, held: HeldByBox, root: BoxRoot, image: Path | None, init: Path, line: Sequence[str]
    ) -> Command:
        """Return the process that becomes the runtime of a box.

        Args:
            held: by the box.
            root: of the box.
            image: the unpacked image; None for an empty one.
            init: the program that is the first process of the box.
            line: the command of the runtime.
        """
        return Command(arguments=line, environment={}, stdin=root.null)


class OrdinaryUser:
    """An ordinary user, whose boxes are in user namespaces: see :mod:`.rootless`. The methods are
    those of :class:`RootUser`."""

    inside: int | None = BOX_UID
    sees_devices = True
    workspace_problem = (
        "the engine oci starts workspaces only for root: run fumehood as root, or use --engine "
        "docker"
    )

    def __init__(self) -> None:
        """Read which subordinate users this user has."""
        self._ids = ids = subordinate_ids()
        self.users = ids.users if ids else range(os.geteuid(), os.geteuid() + 1)
        self.reserved = ids.users if ids else BOX_UIDS
        self.missing = (
            ""
            if ids
            else "all boxes have your user, because /etc/subuid and /etc/subgid grant you none, or "
            "newuidmap is missing (Debian: apt-get install uidmap)"
        )

    def problem(self, runtime: Runtime) -> str:
        """Return why this user cannot start boxes with a runtime; empty if it can."""
        if runtime.is_rootless:
            return ""
        usable = ", ".join(known.name for known in RUNTIMES.values() if known.is_rootless)
        return (
            f"an ordinary user cannot use the runtime {runtime.name}: use {usable}, or "
            "run fumehood as root"
        )

    def give_sockets(self, folder: Path, held: HeldByBox) -> None:
        """Do nothing: only root can give a file to another user."""

    def root(self, image: Path | None, init: Path, held: HeldByBox, disk: Path | None) -> BoxRoot:
        """Return the root of a box, which the process of :meth:`command` mounts."""
        return new_root(disk)

    def adapted(self, config: dict[str, Any], limits: Limits, *, has_group: bool) -> dict[str, Any]:
        """Limit each process of a box without a control group, and add a user namespace if the box
        has the user of this process."""
        process, linux = config["process"], config["linux"]
        if not has_group:
            for name, value in (("NPROC", limits.processes), ("DATA", limits.memory_bytes)):
                limit = {"type": f"RLIMIT_{name}", "soft": value, "hard": value}
                process = process | {"rlimits": [*process["rlimits"], limit]}
        if self._ids is not None:
            return config | {"process": process}
        mapping = [{"containerID": BOX_UID, "hostID": 0, "size": 1}]
        namespaces = [*linux["namespaces"], {"type": "user"}]
        linux = linux | {"namespaces": namespaces, "uidMappings": mapping, "gidMappings": mapping}
        mounts = [
            # The user of the box owns it.
            each | {"options": [*each["options"], "ro"]} if each["destination"] == "/dev" else each
            for each in config["mounts"]
        ]
        return config | {"process": process, "linux": linux, "mounts": mounts}

    def command(
        self, held: HeldByBox, root: BoxRoot, image: Path | None, init: Path, line: Sequence[str]
    ) -> Command:
        """Return the process that mounts the root of a box and becomes its runtime."""
        arguments, environment = start_command(
            held, root, image, init, _UPPER_BYTES, self._ids, line
        )
        return Command(arguments=arguments, environment=environment)


StartingUser = RootUser | OrdinaryUser


def starting_user(launcher: ProcessLauncher) -> StartingUser:
    """Return the user of this process, whose boxes ``launcher`` starts."""
    return RootUser(launcher) if os.geteuid() == 0 else OrdinaryUser()
