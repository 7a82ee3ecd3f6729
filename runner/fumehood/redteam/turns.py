"""One attack at a time on a machine: what an attack of another probe reaches would be laid at ours."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ANYBODY = 0o666
"""Whoever probes next may be another user."""


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait until no other process attacks, and keep the others waiting meanwhile."""
    path = Path(tempfile.gettempdir()) / "fumehood-probe.lock"
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, ANYBODY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
