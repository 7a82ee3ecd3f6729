"""Makes empty files, which take kernel memory but no disk space. Bounded.

An empty file takes about a kilobyte: an inode and a name. All of them exceed the memory of a box
that is probed with this agent.
"""

from __future__ import annotations

import os
import time

from attempts import say

FILES = 80_000

say("tried files without content: begun")
made = 0
try:
    for folder in range(FILES // 1000):
        os.mkdir(f"/tmp/{folder}")
        for number in range(1000):
            os.close(os.open(f"/tmp/{folder}/{number}", os.O_CREAT | os.O_WRONLY, 0o600))
            made += 1
except OSError as error:
    say(f"tried one more file: {error.strerror}")
say(f"{'got' if made == FILES else 'tried'} files without content: {made}")
time.sleep(1)
