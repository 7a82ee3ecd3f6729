"""Importing has no side effects: it writes no file, starts no thread or process, prints nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.project import PACKAGES, modules

IMPORT_AND_WATCH = """
import sys, threading
from importlib import import_module

WATCHED = {
    "os.chmod", "os.fork", "os.mkdir", "os.remove", "os.rename", "os.system", "signal.signal",
    "socket.connect", "subprocess.Popen",
}

def watch(event, arguments):
    mode = arguments[1] if event == "open" else None
    opened_to_write = isinstance(mode, str) and set(mode) & set("wax+")
    if opened_to_write or event in WATCHED:
        print(event, *arguments)

sys.addaudithook(watch)
for name in sys.argv[1:]:
    import_module(name)
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        print("a thread runs:", thread.name)
"""


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_importing_every_module_does_nothing(package: str, tmp_path: Path) -> None:
    watched = subprocess.run(
        [sys.executable, "-B", "-c", IMPORT_AND_WATCH, *modules(package)],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (watched.returncode, watched.stdout, watched.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_commands_that_read_runs_import_no_engine_no_client_of_models_and_no_scipy() -> None:
    code = (
        "import sys; import fumehood.cli.attribute, fumehood.cli.leaderboard, fumehood.cli.report,"
        " fumehood.cli.score, fumehood.cli.show, fumehood.report.sections.registry;"
        " print(sorted({'docker', 'httpx2', 'scipy', 'fumehood.orchestrator.setup',"
        " 'fumehood.orchestrator.episode_runner'} & {*sys.modules}))"
    )
    imported = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert imported.stdout == "[]\n"
