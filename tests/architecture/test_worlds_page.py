"""docs/worlds.md lists every tool with its arguments."""

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
"""Worlds whose tools are defined by a third-party package or another world."""
GENERAL = [world for world in WORLDS.table if world not in OF_PACKAGES]


def _tools() -> list[Any]:
    return [
        pytest.param(world, spec, id=f"{world}.{spec.name}")
        for world in GENERAL
        for spec in WORLDS.load(world)({}).list_tools()
    ]


def test_every_general_world_has_a_section() -> None:
    assert set(GENERAL) <= set(SECTIONS) <= set(WORLDS.table)


@pytest.mark.parametrize(("world", "spec"), _tools())
def test_a_tool_is_there_with_all_its_arguments(world: str, spec: ToolSpec) -> None:
    (takes,) = re.findall(rf"^\| `{spec.name}` \| ([^|]*) \|", SECTIONS[world], re.MULTILINE)
    properties = spec.parameters["properties"]
    assert isinstance(properties, dict)
    assert re.findall(r"`(\w+)`", takes) == list(properties)
