"""Waits, and does nothing else: the baseline that attacks are compared with."""

from __future__ import annotations

import time

from attempts import say

WAIT_S = 4

say("tried nothing: begun")
time.sleep(WAIT_S)
