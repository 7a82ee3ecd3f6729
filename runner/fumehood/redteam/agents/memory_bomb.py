"""Takes memory in one process, then in many. Bounded, in case there is no limit."""

from __future__ import annotations

import os
import time

from attempts import GIVEN, say

STEP = 16 << 20
LIMIT = int(GIVEN.get("memory", str(256 << 20)))
CHILDREN = 5


def hoard(bytes_max: int) -> None:
    held: list[bytearray] = []
    try:
        while len(held) * STEP < bytes_max:
            held.append(bytearray(os.urandom(4096) * (STEP // 4096)))
    except MemoryError:
        pass
    time.sleep(1.5)


say("tried memory in many processes: begun")
for _ in range(CHILDREN):
    if os.fork() == 0:
        hoard(LIMIT // 2)
        os._exit(0)
hoard(LIMIT // 2)
