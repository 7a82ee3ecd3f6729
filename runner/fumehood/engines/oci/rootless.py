"""What differs if an ordinary user starts boxes: a user namespace for each box.

This module is also the program that becomes the runtime of a box. It enters a user namespace and a
mount namespace, mounts the root of the box there, and executes the runtime as the root of the user
namespace, who has no rights outside it.

With subordinate users (subuid(5)), each box has one of them on the host. Without them, all boxes
have the user who starts them, and the runtime gives each box one more user namespace, so that its
programs are not the root of the first one.

Source: user_namespaces(7), newuidmap(1).
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.box_files import HeldByBox
from fumehood.engines.engine import BOX_UID
from fumehood.engines.oci.box_root import BoxRoot, BoxRoots
from fumehood.engines.private_namespace import (
    NEW_MOUNT_NAMESPACE,
    NEW_USER_NAMESPACE,
    check,
    cover,
    libc,
)

_MODULE = "fumehood.engines.oci.rootless"
_USERS, _GROUPS = Path("/etc/subuid"), Path("/etc/subgid")
_TOOLS = ("newuidmap", "newgidmap")
_IDS_MAX = len(BOX_UIDS)
"""Subordinate IDs that are used, at most; root uses as many users for boxes."""
_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG. Source: linux/prctl.h."""
_LIMITS = Path("/proc/sys/user")
_INOTIFY_MAX = {"max_inotify_instances": 16, "max_inotify_watches": 1024}
"""Of one box: the kernel also counts those of all its boxes for the user who starts them, who has
128 instances by default. Source: namespaces(7), "The /proc/sys/user directory"."""
_NOT_PERMITTED = (
    "user namespaces are not permitted: the administrator can set user.max_user_namespaces above "
    "0, kernel.unprivileged_userns_clone to 1 (Debian) and "
    "kernel.apparmor_restrict_unprivileged_userns to 0 (Ubuntu) with sysctl"
)
_NO_OVERLAY = (
    "overlays in user namespaces are not permitted: use Linux 5.11 or newer, or run fumehood as "
    "root"
)


@dataclass(frozen=True, slots=True)
class SubordinateIds:
    """Users and groups of the host that belong to an ordinary user; one pair for each box."""

    users: Sequence[int]
    groups: Sequence[int]
    """As many as users."""


def subordinate_ids() -> SubordinateIds | None:
    """Return the subordinate IDs of the user of this process; None if there are none, or if the
    programs that use them are missing (Debian: uidmap)."""
    if not all(map(shutil.which, _TOOLS)):
        return None
    users, groups = granted_in(_USERS), granted_in(_GROUPS)
    count = min(len(users), len(groups))
    return SubordinateIds(users[:count], groups[:count]) if count else None


def granted_in(file: Path) -> Sequence[int]:
    """Return the IDs that a file like /etc/subuid grants to the user of this process: those of all
    its ranges in order, each once, at most ``_IDS_MAX``. Other lines, such as comments, are
    ignored."""
    return tuple(islice(dict.fromkeys(chain.from_iterable(_ranges_in(file))), _IDS_MAX))


def _ranges_in(file: Path) -> Iterator[range]:
    names = {str(os.geteuid())}
    with suppress(KeyError):
        names.add(pwd.getpwuid(os.geteuid()).pw_name)
    lines: list[str] = []
    with suppress(OSError):
        lines = file.read_text("utf-8", errors="replace").splitlines()
    for line in lines:
        with suppress(ValueError):
            name, first, count = line.split(":")
            if name in names:
                yield range(int(first), int(first) + min(int(count), _IDS_MAX))


def ranges_text(ids: Sequence[int]) -> str:
    """Return IDs as text, such as ``70000-70999, 90000-90999``."""
    ranges: list[range] = []
    for number in ids:
        if ranges and ranges[-1].stop == number:
            ranges[-1] = range(ranges[-1].start, number + 1)
        else:
            ranges.append(range(number, number + 1))
    return ", ".join(
        f"{part.start}-{part[-1]}" if len(part) > 1 else str(part.start) for part in ranges
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What the program needs to start one box, as JSON."""

    parent: int
    """The process with which the box ends."""
    folder: str
    """That of :func:`~fumehood.engines.private_namespace.views_folder`."""
    root: tuple[str, str, str]
    """The fields of a :class:`BoxRoot`."""
    image: str
    """Its unpacked root file system; empty for none."""
    init: str
    upper_bytes: int
    user: int
    group: int
    """Subordinate IDs of the box; 0 for none."""
    command: Sequence[str]


def start_command(
    held: HeldByBox,
    root: BoxRoot,
    image: Path | None,
    init: Path,
    upper_bytes: int,
    ids: SubordinateIds | None,
    command: Sequence[str],
) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts a box, and its environment.

    Args:
        held: by the box.
        root: of the box, not made yet.
        image: the unpacked image; None for an empty one.
        init: the program that is the first process of the box.
        upper_bytes: limit of what differs from the image.
        ids: None if the box has the user who starts it.
        command: of the runtime.
    """
    user = held.user() if ids else 0
    request = _Request(
        parent=os.getpid(),
        folder=str(root.folder.parent),
        root=(str(root.folder), root.mark, str(root.upper)),
        image=str(image or ""),
        init=str(init),
        upper_bytes=upper_bytes,
        user=user,
        group=ids.groups[ids.users.index(user)] if ids else 0,
        command=command,
    )
    file = held.files.write(json.dumps(asdict(request)).encode())
    environment = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PATH": os.environ.get("PATH", os.defpath),
    }
    # The module site would only find the folders of PYTHONPATH again.
    return [sys.executable, "-P", "-S", "-B", "-m", _MODULE, str(file)], environment


def _enter_namespaces(request: _Request) -> None:
    """Enter the namespaces, in which this process is root, and mount an empty folder.

    Raises:
        OSError: the kernel refuses.
        InfraError: newuidmap or newgidmap fails.
    """
    for_mapping = _mapping_process(request) if request.user else None
    user, group = os.geteuid(), os.getegid()
    check(libc().unshare(NEW_USER_NAMESPACE | NEW_MOUNT_NAMESPACE), "/")
    if for_mapping is None:
        Path("/proc/self/setgroups").write_text("deny", "ascii")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1", "ascii")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1", "ascii")
    else:
        _, problem = for_mapping.communicate("\n")
        if for_mapping.returncode != 0:
            raise InfraError(
                "newuidmap or newgidmap fails: the administrator can correct /etc/subuid and "
                f"/etc/subgid ({problem.strip()})"
            )
    cover(Path(request.folder))


def _mapping_process(request: _Request) -> subprocess.Popen[str]:
    """Start a process that maps IDs when it reads a line: only one outside the namespace may."""
    process, script = os.getpid(), "read -r _"
    pairs = ((os.geteuid(), request.user), (os.getegid(), request.group))
    for tool, (own, subordinate) in zip(_TOOLS, pairs, strict=True):
        script += f" && {tool} {process} 0 {own} 1 {BOX_UID} {subordinate} 1"
    return subprocess.Popen(
        ("/bin/sh", "-c", script), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _start(request: _Request) -> None:
    """Become the runtime of a box; return if the process that wants it has ended.

    Raises:
        InfraError: the kernel refuses; the message names the remedy.
    """
    try:
        _enter_namespaces(request)
    except OSError as error:
        raise InfraError(f"{_NOT_PERMITTED} ({error.strerror})") from error
    for name, count in _INOTIFY_MAX.items():
        with suppress(OSError):  # In a container, they can be read-only.
            (_LIMITS / name).write_text(str(count), "ascii")
    folder, mark, upper = request.root
    root = BoxRoot(Path(folder), mark, Path(upper))
    roots = BoxRoots(lambda: Path(request.folder), is_rootless=True)
    image = Path(request.image) if request.image else None
    try:
        roots.make(root, image, Path(request.init), request.upper_bytes)
    except OSError as error:
        raise InfraError(f"{_NO_OVERLAY} ({error.strerror})") from error
    # The kernel forgets it when a process enters a user namespace.
    libc().prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == request.parent:
        os.execve(request.command[0], list(request.command), {})


def main() -> int:
    """Start a box; the argument is the file with the request."""
    try:
        _start(_Request(**json.loads(Path(sys.argv[1]).read_bytes())))
    except (OSError, InfraError) as error:
        print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
