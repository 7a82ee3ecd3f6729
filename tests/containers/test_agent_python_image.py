"""The image for agents in Python."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from docker import APIClient

from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import AgentKind, AgentSource, BoxSpec, Image
from fumehood.engines.images.agent_python import NAME, build_agent_python

pytestmark = [pytest.mark.docker, pytest.mark.image]

MIB = 1024 * 1024
WORDS = ("episode", "harness", "orchestrat", "toolmisuse", "control_pb2", "trace_pb2")
"""Words that no path in the image may contain."""


@pytest.fixture
def image(docker_engine: DockerEngine) -> Image:
    return docker_engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))


@pytest.fixture
def names(daemon: APIClient, image: Image) -> Iterator[list[str]]:
    """Every path in the image."""
    container = daemon.create_container(image.digest, ["none"])["Id"]
    try:
        with TemporaryFile() as archive:
            for piece in daemon.export(container):
                archive.write(piece)
            archive.seek(0)
            with tarfile.open(fileobj=archive) as files:
                yield files.getnames()
    finally:
        daemon.remove_container(container, v=True)


@pytest.mark.slow
def test_an_unchanged_image_is_not_built_again(image: Image) -> None:
    said: list[str] = []
    assert build_agent_python(said.append) == image.reference
    assert said == []


@pytest.mark.slow
def test_the_current_image_is_tagged_latest(
    docker_engine: DockerEngine, daemon: APIClient, image: Image
) -> None:
    daemon.remove_image(f"{NAME}:latest")
    assert docker_engine.prepare(AgentSource(AgentKind.BUILTIN, "noop")) == image
    assert daemon.inspect_image(f"{NAME}:latest")["Id"] == image.digest  # type: ignore[no-untyped-call]


def test_the_command_of_the_image_is_python(image: Image) -> None:
    assert image.command == ("python3", "-m", "fumehood_agent", "run", "builtin:noop")


def test_the_image_is_small(daemon: APIClient, image: Image) -> None:
    size = daemon.inspect_image(image.digest)["Size"]  # type: ignore[no-untyped-call]
    assert size < 200 * MIB


@pytest.mark.slow
def test_no_path_reveals_the_harness(names: list[str]) -> None:
    assert [name for name in names for word in WORDS if word in name.lower()] == []


@pytest.mark.slow
def test_all_modules_are_compiled(names: list[str]) -> None:
    sources = [
        Path(name) for name in names if name.endswith(".py") and "/python3.11/" in f"/{name}"
    ]
    imported = [
        one for one in sources if not {"test", "tests", "site-packages", "config"} & set(one.parts)
    ]
    compiled = {name for name in names if name.endswith(".cpython-311.pyc")}
    missing = [
        one
        for one in imported
        if f"{one.parent}/__pycache__/{one.stem}.cpython-311.pyc" not in compiled
    ]
    assert len(imported) > 500
    assert missing == []


@pytest.mark.slow
def test_importing_compiles_nothing(
    docker_engine: DockerEngine, image: Image, socket_dir: Path
) -> None:
    code = "import sys; import fumehood_agent; print(sys.version_info[:2], flush=True)"
    command = ("python3", "-v", "-c", code)
    box = docker_engine.start(BoxSpec(image=replace(image, command=command), socket_dir=socket_dir))
    assert box.wait(60_000) is not None
    output = box.close()
    assert output.stdout == b"(3, 11)\n"
    assert len(re.findall(rb"# code object from '/\S+\.pyc'", output.stderr)) > 50
    assert re.findall(rb"# code object from '/\S+\.py'", output.stderr) == []
