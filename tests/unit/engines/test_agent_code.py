"""Checks of an agent's module, which read its text and run nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.engines.agent_code import CODE_BYTES_MAX, FOLDERS_MAX, agent_mounts, require_name
from fumehood.engines.engine import AgentKind, AgentSource

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


def _mount(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    (mount,) = agent_mounts(AgentSource(AgentKind.MODULE, f"{name}:Agent"), as_other_user=False)
    return mount.target


@pytest.mark.parametrize("file", ["mine/__init__.py", "mine/data"])
def test_a_sparse_file_in_a_package_is_refused_before_it_is_read(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/__init__.py").write_text("class Agent: ...\n")
    assert _mount(tmp_path, "mine", monkeypatch) == "/agent/mine"
    with (tmp_path / file).open("ab") as sparse:
        sparse.truncate(CODE_BYTES_MAX + 1)
    with pytest.raises(InputError, match="more than 256 MiB"):
        _mount(tmp_path, "mine", monkeypatch)


def test_a_package_of_deeply_nested_folders_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine" / "/".join(["a"] * (FOLDERS_MAX + 2))).mkdir(parents=True)
    (tmp_path / "mine/__init__.py").write_text("class Agent: ...\n")
    with pytest.raises(InputError, match="100 nested"):
        _mount(tmp_path, "mine", monkeypatch)
