"""The folder with the SDK that boxes of bubblewrap see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.engines.images.sdk_folder import installed_sdk


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of-the-user"))
    installed_sdk.cache_clear()
    yield tmp_path / "of-the-user"
    installed_sdk.cache_clear()


def test_compiled_files_contain_no_path_of_the_host(cache: Path) -> None:
    folder = installed_sdk()
    assert folder.is_relative_to(cache)
    compiled = list(folder.rglob("*.pyc"))
    assert compiled
    assert not [path for path in compiled if cache.name.encode() in path.read_bytes()]
