"""The built wheels, installed outside the checkout: they run the sample and build every image."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.project import ROOT
from tests.parts.folder_images import remove_images_from
from tests.parts.npm import require_npm
from tests.parts.shared_folders import made_once

pytestmark = pytest.mark.slow

TIMEOUT_S = 600

LIST_OWNERS = """
import importlib.metadata as m, json
folders = {}
for d in m.distributions(path=[PATH]):
    for f in d.files or ():
        if not f.parts[0].endswith(('.dist-info', '.pth')) and f.parts[0] != '..':
            folders.setdefault(f.parts[0], set()).add(d.name)
print(json.dumps({folder: sorted(names) for folder, names in folders.items()}))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment and an empty folder to work in."""

    folder: Path

    @property
    def packages(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "venv" / "lib" / version / "site-packages"

    def run(self, *arguments: str) -> str:
        """Run a command of the environment; it must succeed."""
        done = self.attempt(*arguments)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command, *rest = arguments
        program = self.folder / "venv" / "bin" / command
        return subprocess.run(
            [str(program), *rest],
            cwd=self.folder / "work",
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            | {"XDG_CACHE_HOME": str(self.folder / "cache")},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


def make_environment(folder: Path, *wheels: Path) -> Environment:
    """Install wheels into a new environment that borrows their dependencies from this one."""
    (folder / "work").mkdir(parents=True)
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    environment = Environment(folder)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps")
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", *options, *map(str, wheels)],
        check=True,
        timeout=TIMEOUT_S,
    )
    # A folder named in a .pth file is searched, but its own .pth files (this checkout) are not
    # read.
    third_party = sysconfig.get_path("platlib")
    (environment.packages / "dependencies.pth").write_text(third_party + "\n", "utf-8")
    return environment


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    def build(folder: Path) -> None:
        subprocess.run([ROOT / "scripts" / "wheels", folder], check=True, timeout=TIMEOUT_S)

    folder = made_once(tmp_path_factory, "wheels", build)
    return {file.name.partition("-")[0]: file for file in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def both(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = made_once(
        tmp_path_factory, "both", lambda folder: make_environment(folder, *wheels.values())
    )
    return Environment(folder)


def test_the_sdk_alone_contains_no_part_of_the_runner(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    alone = make_environment(tmp_path, wheels["fumehood_sdk"])
    alone.run("python", "-c", "import fumehood_agent, fumehood_agent.aio")
    alone.run("python", "-m", "fumehood_agent", "--help")
    failed = alone.attempt("python", "-c", "import fumehood.cli")
    assert "No module named 'fumehood" in failed.stderr


def test_each_import_package_belongs_to_one_distribution(both: Environment) -> None:
    code = LIST_OWNERS.replace("PATH", repr(str(both.packages)))
    assert json.loads(both.run("python", "-c", code)) == {
        "fumehood": ["fumehood"],
        "fumehood_snapshots": ["fumehood"],
        "fumehood_agent": ["fumehood-sdk"],
    }


@pytest.mark.parametrize("name", ["runner", "snapshots", "tests"])
def test_folders_of_the_checkout_cannot_be_imported(both: Environment, name: str) -> None:
    assert f"No module named {name!r}" in both.attempt("python", "-c", f"import {name}").stderr


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
def test_the_sample_runs(both: Environment, engine: str) -> None:
    report = json.loads(
        both.run("fumehood", "run", "sample", "-a", "schema_repair", "--engine", engine, "--json")
    )
    assert report["episodes"] == report["planned"] == 40
    assert report["infra"] == 0


def test_the_in_box_command_is_compiled_into_the_cache(both: Environment) -> None:
    if not (shutil.which("musl-gcc") or shutil.which("cc")):
        pytest.skip("needs a C compiler")
    code = "from fumehood.engines.images.helper import build_helper as b; print(b(print))"
    binary = Path(both.run("python", "-c", code).splitlines()[-1])
    assert binary.is_relative_to(both.folder / "cache")
    assert (
        "fumehood task"
        in subprocess.run(
            [binary, "--help"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    )


def test_the_typescript_sdk_is_built_in_the_cache(both: Environment) -> None:
    require_npm()
    code = "from fumehood.engines.images.agent_node import built_sdk; print(built_sdk())"
    folder = Path(both.run("python", "-c", code).strip())
    assert folder.is_relative_to(both.folder / "cache")
    assert (folder / "dist" / "index.js").is_file()


@pytest.mark.docker
@pytest.mark.image
@pytest.mark.parametrize("name", ["agent_node", "agent_python", "agent_shell"])
def test_images_are_the_same_as_those_of_the_checkout(both: Environment, name: str) -> None:
    code = (
        "import sys\n"
        "from fumehood.engines.docker.daemon import Daemon\n"
        f"from fumehood.engines.images.{name} import build_{name} as build\n"
        "print(build(lambda line: print(line, file=sys.stderr), Daemon()))"
    )
    here = subprocess.run(
        [sys.executable, "-c", code],
        cwd=both.folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    ).stdout
    assert both.run("python", "-c", code) == here


@pytest.mark.parametrize("language", ["cpp", "mcp", "python", "shell", "typescript"])
def test_every_template_is_complete(both: Environment, language: str, tmp_path: Path) -> None:
    both.run("fumehood", "agent", "init", str(tmp_path), "--language", language)
    template = ROOT / "runner" / "fumehood" / "agent_check" / "templates" / language
    for file in template.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            copy = tmp_path / file.relative_to(template)
            assert copy.read_bytes() == file.read_bytes()
            assert not copy.is_symlink()


@pytest.mark.release
@pytest.mark.docker
@pytest.mark.image
@pytest.mark.parametrize(
    ("language", "tools"),
    [("python", []), ("shell", ["mmdebstrap"]), ("typescript", ["npm", "mmdebstrap"])],
)
def test_a_folder_agent_is_built_and_checked(
    both: Environment, language: str, tools: list[str], tmp_path: Path
) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs {missing[0]}")
    folder = tmp_path / "agent"
    both.run("fumehood", "agent", "init", str(folder), "--language", language)
    try:
        both.run("fumehood", "agent", "check", str(folder), "--only", "plain")
    finally:
        remove_images_from(folder)
