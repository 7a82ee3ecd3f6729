"""Every input of the fuzz corpus is handled without an undocumented error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
INPUTS = sorted(path for path in CORPUS.rglob("*") if path.is_file())


def test_every_target_has_a_corpus_and_every_corpus_a_target() -> None:
    assert {path.parent.name for path in INPUTS} == set(TARGETS)


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_kept_input_is_read_without_a_surprise(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_and_noise_are_read_too(name: str) -> None:
    for data in (b"", b"\0", b"{}", b"[]", b"\xff" * 40, bytes(range(256))):
        TARGETS[name](data)
