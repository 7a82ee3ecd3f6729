"""Packages are pinned by version and by digest, and no file names a registry."""

from __future__ import annotations

import json
import re
import runpy
import tomllib

import pytest

from tests.architecture.project import ROOT, committed_files

LOCKS = [path for path in committed_files() if path.name == "package-lock.json"]
PINNED = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)==(?P<version>\S+) --hash=sha256:[0-9a-f]{64}( .*)?")


def _lines(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="ascii").splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_every_tested_version_has_a_digest() -> None:
    matches = [PINNED.fullmatch(line) for line in _lines("constraints.hashes.txt")]
    assert all(matches)
    pinned = {
        f"{one['name']}=={one['version']}".lower().replace("_", "-") for one in matches if one
    }
    tested = {line.lower().replace("_", "-") for line in _lines("constraints.txt")}
    assert tested <= pinned


@pytest.mark.parametrize("name", ["constraints.txt", "constraints.hashes.txt"])
def test_no_pinned_package_has_an_address(name: str) -> None:
    assert "://" not in "".join(_lines(name))


def test_every_npm_package_is_locked_with_a_digest_and_without_an_address() -> None:
    manifests = [path for path in committed_files() if path.name == "package.json"]
    # The template of an agent has no dependency outside the SDK.
    unlocked = [path for path in manifests if path.with_name("package-lock.json") not in LOCKS]
    assert [path.parent.name for path in unlocked if "templates" not in path.parts] == []
    for path in LOCKS:
        packages = json.loads(path.read_text(encoding="utf-8"))["packages"]
        for name, package in packages.items():
            assert "resolved" not in package, f"{path}: {name}"
            assert not name or package.get("link") or "integrity" in package, f"{path}: {name}"


def test_every_package_that_the_project_needs_is_pinned() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "pin-versions"), run_name="tested")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = {
        name
        for one in ("fumehood-sdk", "fumehood", *(f"fumehood[{extra}]" for extra in extras))
        for name in script["needed"](one)
    }
    pinned = {script["canonical"](line.split("==")[0]) for line in _lines("constraints.hashes.txt")}
    assert needed - pinned == set()
