"""The registry of attacks, the folder of agents and the page agree."""

from __future__ import annotations

import ast
import re

import pytest

from fumehood.core.errors import InputError
from fumehood.redteam.agent_folder import AGENTS
from fumehood.redteam.attacks import (
    ATTACKS,
    ONLY_IN_WORKSPACES,
    WORKSPACE_ATTACKS,
    Attack,
    Boundary,
    Result,
    Verdict,
)
from fumehood.redteam.page import (
    BEGIN,
    END,
    WORKSPACES_BEGIN,
    WORKSPACES_END,
    attack_cells,
    attack_table,
    replace_table,
)
from tests.architecture.project import ROOT

HELPERS = {
    "quiet.py",
    "attempts.py",
    "calls.py",
    "frames.py",
    "speak_http.py",
    "try.h",
    "ruff.toml",
}
LIMITS = {"processes", "memory_bytes", "tmp_bytes", "open_files", "cpus"}


def test_every_agent_is_listed_once() -> None:
    files = {file.name for file in AGENTS.iterdir() if file.is_file()} - HELPERS
    assert {attack.file for attack in (*ATTACKS, *ONLY_IN_WORKSPACES)} == files
    chosen = [(attack.file, attack.variant, attack.pair) for attack in ATTACKS]
    assert len(set(chosen)) == len(chosen)


def test_names_are_unique_and_match_the_files() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names)
    for attack in ATTACKS:
        assert attack.variant or attack.file.rpartition(".")[0] in (
            attack.name.replace("-", "_"),
            attack.name[:-3].replace("-", "_"),
        )


def test_every_boundary_has_attacks() -> None:
    assert {attack.boundary for attack in ATTACKS} == set(Boundary)


def test_every_limit_of_a_box_has_an_attack() -> None:
    assert {attack.limit for attack in ATTACKS} - {""} == LIMITS


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_agent_starts_with_a_description(attack: Attack) -> None:
    text = (AGENTS / attack.file).read_text(encoding="utf-8")
    if attack.file.endswith(".py"):
        assert ast.get_docstring(ast.parse(text))
    else:
        assert text.startswith(("/* ", "#!/bin/sh\n# "))


def test_the_page_has_a_row_for_every_attack_and_no_other() -> None:
    page = (ROOT / "docs/containment.md").read_text(encoding="utf-8")
    table = page.partition(BEGIN)[2].partition(END)[0]
    rows = [
        tuple(re.split(r" \| ", line.strip("| ")))
        for line in table.splitlines()
        if line.startswith("| [")
    ]
    assert [row[:3] for row in rows] == [attack_cells(attack) for attack in ATTACKS]
    assert all(len(row) == 3 + 4 for row in rows), "docker, docker/runsc, oci, bubblewrap"


def test_the_page_has_a_row_for_every_attack_from_a_workspace() -> None:
    page = (ROOT / "docs/containment.md").read_text(encoding="utf-8")
    table = page.partition(WORKSPACES_BEGIN)[2].partition(WORKSPACES_END)[0]
    rows = [
        tuple(re.split(r" \| ", line.strip("| ")))[:3]
        for line in table.splitlines()
        if line.startswith("| [")
    ]
    assert rows == [attack_cells(attack) for attack in WORKSPACE_ATTACKS]


def test_the_table_lists_the_details_of_results() -> None:
    attack = ATTACKS[0]
    table = attack_table(
        {
            "one": [Verdict(attack, Result.STOPPED, "", 1, 1)],
            "two": [Verdict(attack, Result.NOT_STOPPED, "it got <out>\nand more", 1, 1)],
        }
    )
    assert "| stopped | **not stopped** |" in table
    assert f"* two, {attack.name}: it got &lt;out> and more\n" in table


def test_a_new_table_replaces_the_old_one() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert replace_table(page, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_a_page_without_marks_is_an_input_error() -> None:
    with pytest.raises(InputError, match="which enclose the table"):
        replace_table("a page", "new")
