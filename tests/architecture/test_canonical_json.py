"""The published examples of canonical JSON."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any

import pytest

from fumehood.core.json_values import canonical_json, digest_json
from tests.architecture.project import ROOT

PAGE = (ROOT / "docs" / "canonical_json.md").read_text(encoding="utf-8")
VECTORS = [json.loads(line) for line in re.findall(r"^\{.*\}$", PAGE, re.MULTILINE)]


def test_there_are_vectors() -> None:
    assert len(VECTORS) > 30


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["json"])
def test_a_vector_holds(vector: dict[str, Any]) -> None:
    value = json.loads(vector["json"])
    assert canonical_json(value) == vector["canonical"]
    assert (
        digest_json(value)
        == vector["sha256"]
        == sha256(vector["canonical"].encode("ascii")).hexdigest()
    )


def test_numbers_that_are_written_apart_are_apart() -> None:
    texts = {canonical_json(value) for value in (1, 1.0, True, "1")}
    assert len(texts) == 4
