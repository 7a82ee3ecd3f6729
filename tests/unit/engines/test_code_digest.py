"""A digest of an agent's code changes with what a box gets of it, and with nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.engines.box_files import BoxFiles
from fumehood.engines.code_digest import code_digest, ignored_files
from fumehood.engines.engine import AgentKind, AgentSource, Mount
from fumehood.engines.images.folder import references
from fumehood.engines.ownership import owner_labels
from fumehood.orchestrator.agents import code_differences

PACKAGE = AgentSource(AgentKind.MODULE, "team.agent:Agent")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "team"
    (package / "parts").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "agent.py").write_text("class Agent: ...\n")
    (package / "parts" / "data.txt").write_text("data")
    (package / "link").symlink_to("parts")
    return package


def edit(package: Path) -> None:
    (package / "parts" / "data.txt").write_text("more")


def add(package: Path) -> None:
    (package / "parts" / "new.py").touch()


def add_an_empty_folder(package: Path) -> None:
    (package / "namespace").mkdir()


def remove(package: Path) -> None:
    (package / "parts" / "data.txt").unlink()


def rename(package: Path) -> None:
    (package / "parts" / "data.txt").rename(package / "parts" / "datum.txt")


def point_elsewhere(package: Path) -> None:
    (package / "link").unlink()
    (package / "link").symlink_to("agent.py")


def make_executable(package: Path) -> None:
    (package / "agent.py").chmod(0o755)


@pytest.mark.parametrize(
    "change",
    [edit, add, add_an_empty_folder, remove, rename, point_elsewhere, make_executable],
)
def test_a_change_of_what_a_box_gets_changes_the_digest(
    change: Callable[[Path], None], package: Path
) -> None:
    before = code_digest(PACKAGE)
    change(package)
    assert code_digest(PACKAGE) != before


def compile_it(package: Path) -> None:
    (package / "parts" / "__pycache__").mkdir()
    (package / "parts" / "__pycache__" / "new.pyc").touch()


def restrict_it(package: Path) -> None:
    (package / "agent.py").chmod(0o600)


def change_a_neighbour(package: Path) -> None:
    package.with_name("neighbour.py").touch()


@pytest.mark.parametrize("change", [compile_it, restrict_it, change_a_neighbour])
def test_other_changes_do_not(change: Callable[[Path], None], package: Path) -> None:
    before = code_digest(PACKAGE)
    change(package)
    assert code_digest(PACKAGE) == before


def test_a_box_gets_no_compiled_code_that_the_digest_does_not_cover(package: Path) -> None:
    compile_it(package)
    files = BoxFiles(owner_labels(""))
    try:
        (copy,) = files.copies([Mount(package, "/agent/team")])
        names = {path.name for path in copy.source.rglob("*")}
    finally:
        files.remove()
    assert names == {"__init__.py", "agent.py", "parts", "data.txt", "link"}


def test_a_folder_without_compiled_code_has_the_same_digest_and_image(package: Path) -> None:
    (package / "Dockerfile").write_text("FROM scratch\n")
    source = AgentSource(AgentKind.FOLDER, str(package))
    before = code_digest(source), references(package, ())
    compile_it(package)
    assert (code_digest(source), references(package, ())) == before
    (package / "tool.pyc").touch()
    assert code_digest(source) != before[0]
    assert references(package, ()) != before[1]


def test_a_linked_module_has_the_digest_of_its_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "elsewhere.py"
    target.write_text("class Agent: ...\n")
    (tmp_path / "mine.py").symlink_to(target)
    source = AgentSource(AgentKind.MODULE, "mine:Agent")
    before = code_digest(source)
    target.write_text("class Agent: pass\n")
    assert code_digest(source) != before


def manifest(field: str, **facts: str) -> JsonObject:
    return {"agents": [], field: [{"label": "a", "name": "my:A", "kind": "module", **facts}]}


@pytest.mark.parametrize("field", ["agents", "counterparts"])
def test_the_code_of_agents_and_counterparts_is_compared(field: str) -> None:
    one, other, without = manifest(field, code="1"), manifest(field, code="2"), manifest(field)
    assert code_differences(one, other) == ["a"]
    assert code_differences(one, one) == []
    assert code_differences(one, without) == []
    images = [manifest(field, kind="image", digest=digest) for digest in "12"]
    assert code_differences(*images) == ["a"]


def _link(place: Path) -> None:
    place.symlink_to("/dev/zero")


def _pipe(place: Path) -> None:
    os.mkfifo(place)


def _large(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(2 << 20)


@pytest.mark.parametrize("make", [_link, _pipe, _large, Path.mkdir])
def test_a_dockerignore_that_is_no_small_file_is_refused(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / ".dockerignore")
    with pytest.raises(InputError, match=r"\.dockerignore"):
        ignored_files(tmp_path)


def test_the_patterns_of_a_dockerignore_are_read(tmp_path: Path) -> None:
    assert ignored_files(tmp_path) == []
    (tmp_path / ".dockerignore").write_text("# comment\n\n *.log \n")
    assert ignored_files(tmp_path) == ["*.log"]
