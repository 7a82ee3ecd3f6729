"""Limits the time of a service that code of agents can use with messages that are slow to parse.

A parser of JSON holds the interpreter's lock until it has parsed the whole text. If many threads
parse at once, every other thread waits for all of them each time it needs the lock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

SMALL_BYTES = 16 * 1024
"""A smaller message is parsed in about a millisecond."""
SHORT_S = 0.01
"""Processor time of a message after which no pause follows. Batches of usual events take less."""
PAUSE_S_MAX = 0.2
"""Opening an episode takes a fraction of this."""
_turn = Lock()


@contextmanager
def parsing(size_bytes: int) -> Iterator[None]:
    """Parse a message of a process that an agent may have taken over.

    Only one thread of this process at a time parses a message that is not small. If that took long,
    a pause follows, in which other threads continue.

    Args:
        size_bytes: of the message.
    """
    if size_bytes <= SMALL_BYTES:
        yield
        return
    with _turn:
        began_s = time.thread_time()
        try:
            yield
        finally:
            took_s = time.thread_time() - began_s
            if took_s > SHORT_S:
                time.sleep(min(took_s, PAUSE_S_MAX))
