"""Raises limits that all programs of one user share, so that no workspace reaches them.

Programs of a workspace are root and can change to every user of the machine. The kernel counts the
entries of epoll and the pages of pipes per user. Without a higher limit, one workspace could take
all of them, and programs of that user would fail outside. With it, the workspace reaches its limit
of memory first, because these objects count as its memory.

Source: Linux, fs/eventpoll.c and fs/pipe.c; proc_sys_fs(5).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_SETTINGS = Path("/proc/sys")


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit of the kernel on the objects of one kind that a user has."""

    setting: str
    """Name in the notation of sysctl(8)."""
    bytes_each: int
    """Least memory of a box that one object uses."""
    unlimited: int | None = None
    """The value that removes the limit."""

    @property
    def file(self) -> str:
        """Path of the setting below /proc/sys."""
        return self.setting.replace(".", "/")


QUOTAS = (
    # The size of struct epitem.
    Quota("fs.epoll.max_user_watches", 128),
    # The size of struct pipe_buffer; the kernel also counts pages of a pipe that are not used.
    Quota("fs.pipe-user-pages-soft", 40, unlimited=0),
)


@cache
def raise_user_quotas(
    progress: Callable[[str], None] | None = None, settings: Path = _SETTINGS
) -> None:
    """Raise each limit to the number of objects for which this machine has memory, if it is lower.

    The values stay until the machine restarts. Only root can set them. The second call with the
    same arguments has no effect.

    Args:
        progress: receives one line for each limit that changes or cannot be changed.
        settings: the folder of the kernel's settings.
    """
    report = progress or (lambda line: None)
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for quota in QUOTAS:
        needed = memory_bytes // quota.bytes_each
        file = settings / quota.file
        try:
            current = int(file.read_text("ascii"))
            if current >= needed or current == quota.unlimited:
                continue
            file.write_text(str(needed), "ascii")
        except OSError as error:
            report(
                f"cannot raise {quota.setting}, which workspaces can exhaust ({error.strerror}): "
                f"run `sysctl -w {quota.setting}={needed}` as root"
            )
        else:
            report(
                f"raised {quota.setting} from {current} to {needed}, so that no workspace can "
                "exhaust it"
            )
