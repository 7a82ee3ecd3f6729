"""Starts a box and waits to be killed; run as a program by the tests of reaping."""

from __future__ import annotations

import secrets
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from fumehood.engines.engine import AgentKind, AgentSource, EngineOptions
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import ENGINES
from tests.conformance.boxes import SOCKET, Boxes

STUBBORN = (
    "import os, socket, sys, time; os.fork(); "
    "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); time.sleep(600)"
)


def main(engine_name: str, runtime: str, socket_dir: str, code: str = STUBBORN) -> None:
    engine = ENGINES.load(engine_name)(EngineOptions(runtime=runtime or None))
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    boxes = Boxes(engine, image, Path(socket_dir), owner_labels(secrets.token_hex(4)), ExitStack())
    boxes.start(code, SOCKET)
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
