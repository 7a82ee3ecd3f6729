"""Opens thousands of connections to its own socket, from many processes, and holds them."""

from __future__ import annotations

import os
import socket
import time

from attempts import SOCKET, say
from frames import PREFACE, SETTINGS, frame

PROCESSES = 16
EACH = 200
HOLD_S = 2


def connect(number: int) -> list[socket.socket]:
    held = []
    try:
        for _ in range(number):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(1)
            connection.connect(SOCKET)
            connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
            held.append(connection)
    except OSError:
        pass
    return held


say("tried thousands of connections: begun")
for _ in range(PROCESSES):
    if os.fork() == 0:
        held = connect(EACH)
        say(f"tried {EACH} connections: {len(held)} were taken at first")
        time.sleep(HOLD_S)
        os._exit(0)
time.sleep(HOLD_S + 1)
