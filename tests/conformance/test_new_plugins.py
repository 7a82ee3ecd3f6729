"""A package that ``fumehood plugin init`` writes installs, passes its tests, and runs in a box."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import venv
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from fumehood.cli.plugin import KINDS
from tests.parts.commands import fumehood, fumehood_json, run_fumehood

LOADED = (
    () if entry_points(group="pytest11", name="fumehood") else ("-p", "fumehood.api.pytest_plugin")
)


def _run(*words: object, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of an environment that sees the packages of this one."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False)
    (own,) = folder.glob("lib/python*/site-packages")
    lines = (f"import site; site.addsitedir({path!r})" for path in site.getsitepackages())
    (own / "packages_of_this_one.pth").write_text("\n".join(lines))
    return folder / "bin" / "python"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        pytest.param("benchmark", "inline"),
        *(
            pytest.param(kind, "inline", marks=pytest.mark.release)
            for kind in KINDS
            if kind != "benchmark"
        ),
        pytest.param("world", "bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
def test_a_new_package_installs_and_passes_its_tests(
    tmp_path: Path, python: Path, kind: str, engine: str
) -> None:
    package = tmp_path / "my package"
    fumehood("plugin", "init", "guest_house", "--kind", kind, "--out", str(package))
    offline = ("--no-deps", "--no-build-isolation", "--no-index")
    pip = (sys.executable, "-m", "pip")
    _run(*pip, "wheel", "--quiet", *offline, "--wheel-dir", tmp_path, package, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    _run(*pip, "--python", python, "install", "--quiet", *offline, wheel, cwd=tmp_path)
    shown = _run(python, "-m", "pytest", "-q", *LOADED, f"--fumehood-engine={engine}", cwd=package)
    assert " passed" in shown
    listed = json.loads(_run(python, "-m", "fumehood", "list", "--json", cwd=tmp_path))
    mine = [each for rows in listed.values() for each in rows if each["name"] == "guest_house"]
    assert [each["distribution"] for each in mine] == ["fumehood-guest-house 0.1.0"]
    assert mine[0]["problem"] == ""


def test_a_new_package_has_its_files_and_the_next_commands(tmp_path: Path) -> None:
    written = fumehood_json(
        "plugin", "init", "hotel", "--kind", "world", "--out", str(tmp_path / "hotel"), "--json"
    )
    assert written["next"][0] == 'pip install --editable ".[test]"'
    assert sorted(written["files"]) == sorted(
        str(path.relative_to(tmp_path / "hotel"))
        for path in (tmp_path / "hotel").rglob("*")
        if path.is_file()
    )
    texts = "".join((tmp_path / "hotel" / name).read_text() for name in written["files"])
    assert "@" not in texts.replace("@pytest", "")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("crud", "there is a built-in world 'crud': choose another name"),
        ("My-World", "'My-World' cannot be a name: use lowercase letters, digits and _"),
        ("import", "'import' cannot be a name"),
    ],
)
def test_an_unusable_name_is_refused(tmp_path: Path, name: str, message: str) -> None:
    words = ("plugin", "init", name, "--kind", "world", "--out", str(tmp_path / "new"))
    done = run_fumehood(*words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_a_folder_with_files_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    words = ("plugin", "init", "hotel", "--kind", "world", "--out", str(tmp_path))
    done = run_fumehood(*words)
    assert done.returncode == 2
    assert "is not empty: choose a new folder" in done.stderr
