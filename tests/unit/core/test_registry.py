"""Tables of extensions: readable, imported on use, open to others, clear about what there is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.core.registry import Registry

TABLE = {"plain": "json:dumps", "broken": "runner.no_such_module:Thing"}


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[None]:
    """Another distribution with entries."""
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    entries = "[fumehood.trinkets]\ntheirs = json:loads\nplain = json:loads\nlost = json:no_such\n"
    (info / "entry_points.txt").write_text(entries)
    sys.path.insert(0, str(tmp_path))
    yield
    sys.path.remove(str(tmp_path))


def test_a_name_loads_its_entry() -> None:
    import json

    assert Registry("trinket", TABLE).load("plain") is json.dumps


def test_modules_are_imported_on_demand() -> None:
    assert list(Registry("trinket", TABLE)) == ["plain", "broken"]


def test_the_nearest_name_is_suggested_or_all_are_listed() -> None:
    with pytest.raises(InputError, match="no trinket is called 'plian'; did you mean 'plain'"):
        Registry("trinket", TABLE).load("plian")
    with pytest.raises(InputError, match="no trinket is called 'zzz'; there are: broken, plain"):
        Registry("trinket", TABLE).load("zzz")


@pytest.mark.usefixtures("installed")
def test_other_packages_add_entries_but_cannot_replace_built_in_ones() -> None:
    import json

    registry: Registry[object] = Registry("trinket", TABLE)
    assert registry.load("theirs") is json.loads
    assert registry.load("plain") is json.dumps
    with pytest.raises(InputError, match="did you mean 'theirs'"):
        registry.load("their")


@pytest.mark.usefixtures("installed")
def test_installed_names_follow_the_built_in_ones() -> None:
    registry: Registry[object] = Registry("trinket", TABLE)
    assert list(registry) == ["plain", "broken", "lost", "theirs"]
    assert "theirs" in registry


@pytest.mark.usefixtures("installed")
def test_an_installed_entry_that_cannot_be_imported_is_an_input_error() -> None:
    with pytest.raises(InputError, match="registers the trinket 'lost' as json:no_such"):
        Registry[object]("trinket", TABLE).load("lost")


def test_an_installed_entry_that_ends_the_process_is_an_input_error(
    tmp_path: Path, installed: None
) -> None:
    info = tmp_path / "other-1.0.dist-info" / "entry_points.txt"
    info.write_text("[fumehood.trinkets]\nleaves = ends_the_process:Thing\n")
    (tmp_path / "ends_the_process.py").write_text("raise SystemExit(0)\n")
    with pytest.raises(InputError, match=r"other 1.0 registers .* \(SystemExit: 0\): repair"):
        Registry[object]("trinket", TABLE).load("leaves")


@pytest.mark.usefixtures("installed")
def test_all_modules_can_be_imported_before_imports_are_disabled() -> None:
    import json

    registry = Registry[object]("trinket", {"plain": "json:dumps"})
    registry.load_all()
    assert registry._loaded == {"plain": json.dumps, "theirs": json.loads}


def test_all_registries_of_a_process_read_the_installed_packages_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = list[object]()

    class CountsReads(MetaPathFinder):
        def find_distributions(self, context: object) -> list[object]:
            reads.append(context)
            return []

    monkeypatch.setattr(sys, "meta_path", [CountsReads(), *sys.meta_path])
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    for kind in ("trinket", "toy"):
        registry = Registry[object](kind, {"plain": "json:dumps"})
        registry.load_all()
        with pytest.raises(InputError):
            registry.load("plian")
    assert len(reads) == 1


def test_load_all_fails_for_a_broken_built_in_entry_and_skips_a_broken_installed_one(
    installed: None,
) -> None:
    with pytest.raises(ImportError):
        Registry("trinket", TABLE).load_all()
