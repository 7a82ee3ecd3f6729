"""Prints hundreds of megabytes without a line break, then through a non-blocking pipe."""

from __future__ import annotations

import os
import sys

from attempts import say

CHUNK = b"\x1b[2J" * (256 * 1024)
MIB = 200

say("tried a line without end: begun")
sys.stdout.flush()
for _ in range(MIB):
    os.write(1, CHUNK)
os.set_blocking(2, False)
for _ in range(1000):
    try:
        os.write(2, CHUNK)
    except BlockingIOError:
        continue
