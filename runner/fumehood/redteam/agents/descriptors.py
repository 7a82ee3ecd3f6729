"""Opens files, pipes and watches until an error, and enlarges pipes. Bounded."""

from __future__ import annotations

import fcntl
import os
import resource

from attempts import GIVEN, attempt, say

LIMIT = int(GIVEN.get("open_files", "256"))
PIPE_BYTES = 64 << 20


def open_all() -> int:
    held: list[int] = []
    try:
        while len(held) < 4 * LIMIT:
            held.append(os.dup(0))
    except OSError as error:
        say(f"tried one more descriptor: {error.strerror}")
    for descriptor in held:
        os.close(descriptor)
    return len(held)


def raise_limit() -> str:
    resource.setrlimit(resource.RLIMIT_NOFILE, (16 * LIMIT, 16 * LIMIT))
    return "raised"


def huge_pipe() -> str:
    _, inlet = os.pipe()
    fcntl.fcntl(inlet, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return "grown"


opened = open_all()
say(f"{'got' if opened > LIMIT else 'tried'} descriptors: {opened} of {LIMIT}")
attempt("a higher limit", raise_limit)
attempt("a pipe of 64 MiB", huge_pipe)
