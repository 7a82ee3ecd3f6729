"""One command at a time writes a run folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fumehood.core.errors import InputError


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Keep other commands from writing a run folder; the kernel forgets it when this process is gone.

    Raises:
        InputError: one is at it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(f"another command is writing {folder}; wait until it has ended") from None
    finally:
        os.close(descriptor)
