"""A workspace without a box: the helper runs in a folder of the test."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InfraError
from fumehood.core.json_values import JsonObject
from fumehood.engines.images.helper import build_helper
from fumehood.worlds.workspace import SOCKET_NAME, Workspace, WorkspaceOutside


class _Direct:
    """Asks without a service between."""

    def __init__(self, outside: WorkspaceOutside) -> None:
        self._outside = outside

    def ask(self, question: JsonObject) -> JsonObject:
        reply: Any = json.loads(self._outside.answer(json.dumps(question).encode()))
        answer: JsonObject = reply["answer"]
        return answer


def helper() -> Path:
    """Return the helper; skip the test where it cannot run."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    try:
        binary = build_helper(lambda line: None)
    except InfraError as error:
        pytest.skip(str(error))
    if binary is None:
        pytest.skip("no C compiler is installed")
    return binary


@contextmanager
def workspace_in(folder: Path, state: JsonObject) -> Iterator[Workspace]:
    """Start a helper that watches a folder and works in it; end it afterwards."""
    binary, sockets = helper(), folder.with_name(f"{folder.name}.sockets")
    sockets.mkdir()
    outside = WorkspaceOutside(sockets)
    command = [str(binary), "workspace", str(sockets / SOCKET_NAME), "."]
    process = subprocess.Popen(command, cwd=folder)
    try:
        yield Workspace(state, _Direct(outside))
    finally:
        outside.close()
        process.wait(timeout=30)


def write_steps(folder: Path, steps: Mapping[str, Mapping[str, str]], settings: str) -> None:
    """Replace the tests and the solution of a Harbor task by steps.

    Args:
        folder: of the task.
        steps: name → path in the folder of the step → content.
        settings: to add to ``task.toml``.
    """
    for name in ("instruction.md", "tests", "solution"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, files in steps.items():
        for place, content in {"instruction.md": f"Do {name}.", **files}.items():
            file = folder / "steps" / name / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
            file.chmod(0o755)
    with (folder / "task.toml").open("a", encoding="utf-8") as config:
        config.write(settings)
