"""Runs npm, which fetches and builds packages."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from fumehood.core.errors import InfraError

_TIMEOUT_S = 600


def run_npm(command: Sequence[str], folder: Path, work: str) -> None:
    """Run a command of npm.

    Args:
        command: program and arguments.
        folder: in which it runs.
        work: what it does, for errors, such as ``build the TypeScript SDK``.

    Raises:
        InfraError: it fails; the last line that it printed is the reason.
    """
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT_S, text=True
        )
    except subprocess.CalledProcessError as error:
        lines = [line for line in (error.stdout + error.stderr).splitlines() if line.strip()]
        reason = lines[-1] if lines else "no error message"
        raise InfraError(f"npm could not {work}: {reason}") from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"npm did not {work} within {_TIMEOUT_S} s") from error
