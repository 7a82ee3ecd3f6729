"""Fixtures: a docker engine and a folder for sockets."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from docker import APIClient

from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import EngineOptions
from fumehood.engines.ownership import owner_labels


@pytest.fixture
def docker_engine() -> Iterator[DockerEngine]:
    with closing(DockerEngine(EngineOptions())) as engine:
        yield engine


@pytest.fixture
def daemon() -> Iterator[APIClient]:
    """The same daemon through the Docker SDK."""
    with closing(APIClient(version="auto")) as client:
        yield client


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def labels() -> dict[str, str]:
    """Labels of a run that only this test uses."""
    return owner_labels(secrets.token_hex(8))
