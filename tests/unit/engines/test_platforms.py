"""Systems on which no box starts are named, with a remedy."""

from __future__ import annotations

import pytest

from fumehood.engines.platforms import platform_problem


@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_a_system_without_namespaces_is_refused(system: str) -> None:
    problem = platform_problem(system)
    assert f"need Linux, not {system}" in problem
    assert "virtual machine" in problem


def test_linux_is_not_refused() -> None:
    assert platform_problem("Linux") == ""
