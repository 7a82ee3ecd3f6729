"""Compiles the conformance agents in TypeScript and C++."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from pathlib import Path

from fumehood.engines.images.agent_node import built_sdk, lay_out_node_modules
from tests.architecture.project import ROOT

FOLDER = Path(__file__).parent
TIMEOUT_S = 300


def lay_out_typescript(target: Path) -> None:
    """Compile the agent in TypeScript, with the SDK in ``node_modules``."""
    lay_out_node_modules(target / "node_modules", compiler=False)
    (target / "package.json").write_text(json.dumps({"type": "module"}))
    shutil.copy(FOLDER / "typescript" / "agent.ts", target)
    shutil.copy(FOLDER / "typescript" / "tsconfig.json", target)
    _run(built_sdk() / "node_modules" / ".bin" / "tsc", "--project", str(target), folder=target)


def lay_out_cpp(target: Path) -> None:
    """Compile the agent in C++ once, and copy the program."""
    built = FOLDER / "cpp" / ".cache"
    built.mkdir(exist_ok=True)
    with (built / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run("make", f"OUT={built}", f"PROTO={ROOT / 'proto'}", folder=FOLDER / "cpp")
    shutil.copy(built / "agent", target)


def _run(*words: str | Path, folder: Path) -> None:
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
