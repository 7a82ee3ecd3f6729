"""Opens thousands of connections to its own socket, from many processes, and holds them."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from attempts import say
from frames import Connection

PROCESSES = 16
EACH = 200
HOLD_S = 2


def connect(number: int) -> list[Connection]:
    held: list[Connection] = []
    with suppress(OSError):
        while len(held) < number:
            held.append(Connection())
    return held


say("tried thousands of connections: begun")
for _ in range(PROCESSES):
    if os.fork() == 0:
        held = connect(EACH)
        say(f"tried {EACH} connections: {len(held)} were taken at first")
        time.sleep(HOLD_S)
        os._exit(0)
time.sleep(HOLD_S + 1)
