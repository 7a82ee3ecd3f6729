"""The OCI runtimes that the engine drives, and their command lines."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fumehood.engines.oci.box_root import BoxRoot

_TIMEOUT_S = 10.0
_WITHOUT_RESERVING = "fumehood.engines.oci.without_reserving"


@dataclass(frozen=True, slots=True)
class Runtime:
    """One runtime."""

    name: str
    package: str
    """How to install it."""
    flags: tuple[str, ...] = ()
    tasks: int = 2
    """Processes and threads in the control group of a box, in addition to those of the agent: the
    runtime and the init program."""
    own_kernel: bool = False
    """Whether it brings a kernel, which handles the system calls and whose threads are tasks of the
    box."""
    shares_null: bool = False
    """Whether it masks files with the null device of the host, on which boxes would share locks."""
    run_flags: tuple[str, ...] = ()
    is_rootless: bool = False
    """Whether an ordinary user can start boxes with it."""
    makes_groups: bool = False
    """Whether it puts a container into a control group itself. Otherwise the runtime is in the
    group of the box, and so are all its children."""

    def problem(self) -> str:
        """Return why it cannot be used, with the remedy; empty if it can."""
        if shutil.which(self.name) is None:
            return f"{self.name} is missing; install it ({self.package})"
        return ""

    def version(self) -> str:
        """Return the first line that it prints about its version."""
        command = [self.name, "--version"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        return done.stdout.partition("\n")[0]

    def command(
        self, root: BoxRoot, bundle: Path, pid_file: Path, *, is_workspace: bool
    ) -> list[str]:
        """Return the command that runs a container and ends with its exit status.

        Args:
            root: of the container.
            bundle: folder with its configuration.
            pid_file: which the runtime writes.
            is_workspace: whether the container writes to the disk of the host.
        """
        # The start of Python takes 0.1 s, and one of a runtime with its own kernel about a second.
        filtered = is_workspace and self.own_kernel
        return [
            *((sys.executable, "-P", "-m", _WITHOUT_RESERVING) if filtered else ()),
            *(shutil.which(self.name) or self.name, "--root", str(root.state), *self.flags),
            *(
                "run",
                *self.run_flags,
                "--bundle",
                str(bundle),
                "--pid-file",
                str(pid_file),
                root.folder.name,
            ),
        ]

    def execution(self, root: BoxRoot, process_file: Path, pid_file: Path) -> list[str]:
        """Return the command that runs a further process in a container.

        Args:
            root: of the container.
            process_file: the part ``process`` of a configuration, with the command.
            pid_file: which the runtime writes when the process runs.
        """
        return [
            *(shutil.which(self.name) or self.name, "--root", str(root.state), *self.flags),
            *(
                "exec",
                "--process",
                str(process_file),
                "--pid-file",
                str(pid_file),
                root.folder.name,
            ),
        ]


RUNTIMES = {
    runtime.name: runtime
    for runtime in (
        Runtime(
            "crun",
            "Debian: apt-get install crun",
            ("--cgroup-manager=disabled",),
            shares_null=True,
            is_rootless=True,
        ),
        Runtime(
            "runc",
            "Debian: apt-get install runc",
            tasks=1,
            run_flags=("--keep",),
            makes_groups=True,
        ),
        Runtime(
            "runsc",
            "see gvisor.dev",
            # Newer versions keep what a box writes in their own overlay instead.
            ("--network=none", "--host-uds=open", "--ignore-cgroups", "--overlay2=none"),
            # A busy kernel has many threads; with fewer it crashes, and the box with it.
            tasks=256,
            own_kernel=True,
        ),
    )
}
"""By name; the first one is the default."""
