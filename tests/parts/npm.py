"""npm, and what a folder's package-lock.json names."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TYPESCRIPT_SDK = ROOT / "agent_sdk" / "typescript"
TIMEOUT_S = 240


def require_npm() -> None:
    """Leave a test out where there is no npm, which CI does not allow."""
    if shutil.which("npm") is None:
        message = "there is no npm (Debian: apt-get install npm)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@cache
def typescript_sdk() -> Path:
    """Return the folder of the TypeScript SDK, with all that it needs."""
    require_npm()
    run(ROOT / "scripts" / "npm-packages", "agent_sdk/typescript", folder=ROOT)
    return TYPESCRIPT_SDK


def run(*words: str | Path, folder: Path, env: dict[str, str] | None = None) -> str:
    """Run a command in a folder; it must succeed."""
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout
