"""Drops the privileges of the service before it receives the first message from a box.

The service parses messages of untrusted code. It gives up root, cannot gain privileges, and writes
no core files, which would contain data that agents must not see. It raises its limit of open files.
It asks the kernel to kill it before the orchestrator when memory runs out, because its episodes can
be repeated.
"""

from __future__ import annotations

import ctypes
import os
import resource
import stat
from contextlib import suppress
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.core.user_ids import SERVICE_UID
from fumehood.harness_modes.registry import load_all
from fumehood.supervised.late_imports import import_late

_FIRST_TO_GO = "500"
"""From -1000 to 1000. Source: proc(5), oom_score_adj."""
_NICE = -5
"""Gives three times the processor time of another program. Source: sched(7)."""
_PR_SET_NO_NEW_PRIVS = 38
_ENCODINGS_OF_PAGES = (
    *(f"cp{number}" for number in (866, 874, 932, 949, *range(1250, 1259))),
    *(f"iso8859_{part}" for part in (*range(1, 12), *range(13, 17))),
    *("big5", "big5hkscs", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso2022_jp"),
    *("koi8_r", "koi8_u", "latin_1", "mac_cyrillic", "mac_roman", "shift_jis"),
    *("utf_16_be", "utf_16_le", "utf_8_sig"),
)
"""Codecs of live pages. Source: WHATWG Encoding Standard, section 4.2."""


def prefer_to_boxes() -> None:
    """Run this process and its children before others, if root starts it.

    Otherwise boxes that keep the processors busy delay the calls of other boxes. The process of an
    episode keeps the priority while it is not busy (``supervised/preference.py``).
    """
    with suppress(OSError):  # Only root may; a container may forbid it.
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        # With automatic groups of sessions, only the value of the group counts. It may be missing.
        Path("/proc/self/autogroup").write_text(str(_NICE), encoding="ascii")


def confine(directory: Path) -> None:
    """Drop privileges. The main thread must call this before it starts other threads.

    The user of this process then owns the directory of the sockets.

    Raises:
        InputError: that user cannot reach the directory.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with suppress(OSError):  # Not every kernel permits this.
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    if os.geteuid() == 0:
        _give_up_root(directory)
    ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _give_up_root(directory: Path) -> None:
    closed = [folder for folder in directory.parents if not folder.stat().st_mode & stat.S_IXOTH]
    if closed:
        raise InputError(
            f"the service runs as user {SERVICE_UID}, who cannot enter {closed[0]}; "
            "choose a directory that other users can enter"
        )
    import_modules_early()
    os.chown(directory, SERVICE_UID, SERVICE_UID)
    os.setgroups([])
    os.setresgid(SERVICE_UID, SERVICE_UID, SERVICE_UID)
    os.setresuid(SERVICE_UID, SERVICE_UID, SERVICE_UID)


def import_modules_early() -> None:
    """Import what Python imports at first use, when a process may no longer read it."""
    load_all()
    import_late(*(f"encodings.{codec}" for codec in _ENCODINGS_OF_PAGES))
