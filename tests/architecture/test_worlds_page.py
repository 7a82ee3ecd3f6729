"""The page of worlds names every tool with all that it takes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fumehood.core.tools import ToolSpec
from fumehood.worlds.registry import WORLDS
from tests.architecture.project import ROOT

PAGE = (ROOT / "docs" / "worlds.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## `(\w+)`[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


OF_PACKAGES = {"sql_mariadb", "tau2_telecom"} | {
    name for name in WORLDS.table if hasattr(WORLDS.load(name), "checks_itself")
}
"""Worlds whose tools are those of somebody else's package, which describes them, or of another world."""
OURS = [world for world in WORLDS.table if world not in OF_PACKAGES]


def _tools() -> list[Any]:
    return [
        pytest.param(world, spec, id=f"{world}.{spec.name}")
        for world in OURS
        for spec in WORLDS.load(world)({}).list_tools()
    ]


def test_there_is_a_section_for_every_world_of_ours() -> None:
    assert set(OURS) <= set(SECTIONS) <= set(WORLDS.table)


@pytest.mark.parametrize(("world", "spec"), _tools())
def test_a_tool_is_there_with_all_its_arguments(world: str, spec: ToolSpec) -> None:
    (takes,) = re.findall(rf"^\| `{spec.name}` \| ([^|]*) \|", SECTIONS[world], re.MULTILINE)
    properties = spec.parameters["properties"]
    assert isinstance(properties, dict)
    assert re.findall(r"`(\w+)`", takes) == list(properties)
