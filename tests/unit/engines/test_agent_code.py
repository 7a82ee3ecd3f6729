"""Checks of an agent's module, which read its text and run nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.engines.agent_code import require_name

MINE = """
raise SystemExit("never run")
class Agent: ...
Other = Agent
from elsewhere import Third as Imported
try:
    import fast
except ImportError:
    class Slow: ...
if True:
    First, Second = 1, 2
"""


@pytest.mark.parametrize("name", ["Agent", "Other", "Imported", "fast", "Slow", "Second"])
def test_every_name_that_a_module_defines_is_accepted(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    require_name(tmp_path, "mine", name)


@pytest.mark.parametrize("text", ["from elsewhere import *\n", "def __getattr__(name): ...\n"])
def test_a_module_with_dynamic_names_accepts_every_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    require_name(tmp_path, "mine", "Agent")


def test_a_module_of_a_package_is_found(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("class Top: ...\n")
    (tmp_path / "pack" / "inner.py").write_text("class Inner: ...\n")
    require_name(tmp_path, "pack", "Top")
    require_name(tmp_path, "pack.inner", "Inner")
    with pytest.raises(InputError, match=r"no module 'pack\.outer'"):
        require_name(tmp_path, "pack.outer", "Inner")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINE, r"mine\.py does not define 'Agnt'; did you mean mine:Agent\?"),
        ("class Wholly: ...\n", r"does not define 'Agnt'; its classes: Wholly"),
        ("", r"does not define 'Agnt'; its classes: none"),
        ("x = 1\nclass Agnt(:\n", r"mine\.py:2: invalid syntax"),
        ("x = '\0'\n", r"mine\.py"),
    ],
)
def test_errors_give_the_line_or_the_nearest_name(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match=message):
        require_name(tmp_path, "mine", "Agnt")
