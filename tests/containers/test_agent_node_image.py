"""The image for agents in TypeScript, and a folder that is based on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import APIClient

from fumehood.core.errors import InputError
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import AgentKind, AgentSource, BoxSpec
from fumehood.engines.images.agent_node import NAME, build_agent_node
from tests.parts.folder_images import remove_images_from
from tests.parts.npm import require_npm

pytestmark = pytest.mark.docker

MIB = 1024 * 1024
AGENT = """\
import { RawJson } from "@fumehood/sdk";
const one: RawJson = new RawJson("1.0");
console.log(one.text);
"""
DOCKERFILE = f"""\
FROM {NAME}
COPY package.json tsconfig.json agent.ts /agent/
RUN ["node", "/node_modules/typescript/bin/tsc", "--project", "/agent"]
CMD ["node", "/agent/agent.js"]
"""
TSCONFIG = '{"compilerOptions": {"strict": true, "module": "nodenext", "target": "es2022"}}'


@pytest.fixture(scope="module")
def reference() -> str:
    require_npm()
    daemon = Daemon()
    try:
        return build_agent_node(lambda _: None, daemon)
    finally:
        daemon.close()


def test_it_is_built_once_and_tagged_latest(reference: str, daemon: APIClient) -> None:
    said: list[str] = []
    connection = Daemon()
    daemon.remove_image(f"{NAME}:latest")
    assert build_agent_node(said.append, connection) == reference
    connection.close()
    assert said == []
    latest, built = (daemon.inspect_image(name) for name in (f"{NAME}:latest", reference))  # type: ignore[no-untyped-call]
    assert latest["Id"] == built["Id"]
    assert built["Size"] < 160 * MIB


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "agent.ts").write_text(AGENT)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(TSCONFIG)
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    yield tmp_path
    remove_images_from(tmp_path)


@pytest.mark.slow
def test_a_folder_compiles_and_runs_without_a_network(
    reference: str, docker_engine: DockerEngine, folder: Path, socket_dir: Path
) -> None:
    image = docker_engine.prepare(AgentSource(AgentKind.FOLDER, str(folder)))
    box = docker_engine.start(BoxSpec(image=image, socket_dir=socket_dir))
    try:
        ended = box.wait(20_000)
        assert ended is not None
        output = box.close()
        assert (ended.code, output.stdout, output.stderr) == (0, b"1.0\n", b"")
    finally:
        box.close()


@pytest.mark.slow
def test_a_type_error_is_reported_with_its_line(
    reference: str, docker_engine: DockerEngine, folder: Path
) -> None:
    (folder / "agent.ts").write_text(AGENT.replace('"1.0"', "1.0"))
    with pytest.raises(InputError, match=r"docker build: .*agent.ts\(2,34\): error TS2345: "):
        docker_engine.prepare(AgentSource(AgentKind.FOLDER, str(folder)))
    (folder / "agent.ts").unlink()
    with pytest.raises(
        InputError, match=r"^docker build: COPY failed: .*agent\.ts: file does not exist$"
    ):
        docker_engine.prepare(AgentSource(AgentKind.FOLDER, str(folder)))
