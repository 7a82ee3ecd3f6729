"""Ignores every signal, in separate sessions, and outlives its wall time."""

from __future__ import annotations

import os
import signal
import time

from attempts import say

for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
say("tried to stay: every signal is ignored")
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
        break
time.sleep(120)
