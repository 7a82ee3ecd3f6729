"""The table of attacks, the folder of agents and the page say the same."""

from __future__ import annotations

import ast
import re

import pytest

from fumehood.core.errors import InputError
from fumehood.redteam.attack import Attack, Result, Verdict, Wall
from fumehood.redteam.kit import AGENTS
from fumehood.redteam.page import BEGIN, END, attack_cells, attack_table, replace_table
from fumehood.redteam.table import ATTACKS
from tests.architecture.project import ROOT

HELPERS = {"attempts.py", "calls.py", "frames.py", "speak_http.py", "try.h", "ruff.toml"}
LIMITS = {"processes", "memory_bytes", "tmp_bytes", "open_files", "cpus"}


def test_every_agent_is_listed_once() -> None:
    files = {file.name for file in AGENTS.iterdir() if file.is_file()} - HELPERS
    assert sorted(attack.file for attack in ATTACKS) == sorted(files)


def test_names_are_unique_and_say_what_the_file_is() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names)
    for attack in ATTACKS:
        assert attack.file.rpartition(".")[0] in (
            attack.name.replace("-", "_"),
            attack.name[:-3].replace("-", "_"),
        )


def test_every_wall_has_something_to_stop() -> None:
    assert {attack.wall for attack in ATTACKS} == set(Wall)


def test_every_limit_of_a_box_is_run_against() -> None:
    assert {attack.limit for attack in ATTACKS} - {""} == LIMITS


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_agent_says_first_what_it_is(attack: Attack) -> None:
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
    assert [row[:4] for row in rows] == [attack_cells(attack) for attack in ATTACKS]
    assert all(len(row) == 4 + 3 for row in rows), "docker, docker/runsc and bubblewrap"


def test_the_table_tells_what_was_not_plainly_stopped() -> None:
    attack = ATTACKS[0]
    table = attack_table(
        {
            "one": [Verdict(attack, Result.STOPPED, "", 1, 1)],
            "two": [Verdict(attack, Result.NOT_STOPPED, "it got <out>\nand more", 1, 1)],
        }
    )
    assert "| stopped | **not stopped** |" in table
    assert table.endswith(f"* two, {attack.name}: it got &lt;out> and more")


def test_a_table_takes_the_place_of_the_one_before() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert replace_table(page, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_a_page_without_a_place_is_the_users_to_mend() -> None:
    with pytest.raises(InputError, match="no place for the table"):
        replace_table("a page", "new")
