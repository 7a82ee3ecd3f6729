"""Executes a command that cannot reserve space on a disk. Arguments: the command.

gVisor handles the system calls of a workspace, so the filter of other runtimes does not apply to
its programs. It reserves space for them with a call to the host, which this filter refuses.
"""

from __future__ import annotations

import os
import sys

from fumehood.supervised.libseccomp import (
    ALLOW,
    MASKED_EQUAL,
    UNSUPPORTED,
    Comparison,
    Rule,
    build_program,
)
from fumehood.supervised.system_calls import install_filter

_PUNCH_HOLE = 2
"""FALLOC_FL_PUNCH_HOLE, with which gVisor frees memory. Source: fallocate(2)."""


def main() -> None:
    """Install the filter, if libseccomp is installed, and execute the command."""
    reserves = Rule("fallocate", (Comparison(1, MASKED_EQUAL, _PUNCH_HOLE, 0),))
    program = build_program(ALLOW, UNSUPPORTED, [reserves])
    if program is not None:
        install_filter(program)
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
