"""How often a process searches for values that only refer to each other."""

from __future__ import annotations

import gc

CONTAINERS = 50_000
"""Number of new containers after which Python searches."""


def collect_rarely() -> None:
    """Let this process search rarely.

    A process that reads large runs has millions of containers, which refer to no container that
    refers to them. With Python's default of 700, it spends a tenth of its time on the search.
    """
    gc.set_threshold(CONTAINERS)
