"""The grants of a run are read from its manifest."""

from __future__ import annotations

import pytest

from fumehood.core.json_values import JsonObject
from fumehood.records.grants import model_grants


@pytest.mark.parametrize(
    "manifest", [{}, {"config": None}, {"config": {"models": None}}, {"config": {"models": {}}}]
)
def test_a_run_without_grants_has_none(manifest: JsonObject) -> None:
    assert model_grants(manifest) == ()


def test_grants_are_returned_in_order() -> None:
    manifest: JsonObject = {"config": {"models": {"grants": ["web_search", "field:top_k"]}}}
    assert model_grants(manifest) == ("web_search", "field:top_k")
