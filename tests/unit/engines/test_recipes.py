"""Recipes of third-party agents: pinned packages, fetched into the user's cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.engines.code_digest import code_digest
from fumehood.engines.engine import AgentKind, AgentSource
from fumehood.engines.images.recipe import RECIPES, fetched_recipe, recipe_digest
from fumehood.engines.images.sources import source_folder


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_pins_the_digests_of_its_packages(name: str) -> None:
    lock = json.loads((source_folder(RECIPES[name]) / "package-lock.json").read_text())
    packages = [package for path, package in lock["packages"].items() if path]
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages)
    assert code_digest(AgentSource(AgentKind.RECIPE, name)) == recipe_digest(name)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_without_npm_is_an_input_error_and_leaves_nothing_that_is_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    said: list[str] = []
    for _ in range(2):
        with pytest.raises(InputError, match=f"the agent {name} needs npm; install it"):
            fetched_recipe(name, said.append)
    assert said == [f"fetching the packages of {name} from npm"] * 2
