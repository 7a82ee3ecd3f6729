"""Platforms and daemons on which no box starts are named, with a remedy."""

from __future__ import annotations

import pytest

from fumehood.engines.docker.container import daemon_problem
from fumehood.engines.platforms import platform_problem


@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_a_system_without_namespaces_is_refused(system: str) -> None:
    problem = platform_problem(system)
    assert f"need Linux, not {system}" in problem
    assert "virtual machine" in problem


def test_linux_is_not_refused() -> None:
    assert platform_problem("Linux") == ""


def test_podman_is_not_taken_for_docker() -> None:
    problem = daemon_problem({"ServerVersion": "4.3.1", "BuildahVersion": "1.28.2"})
    assert "Podman 4.3.1" in problem
    assert "DOCKER_HOST" in problem
    assert daemon_problem({"ServerVersion": "20.10.24"}) == ""
