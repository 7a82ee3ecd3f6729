"""The oci engine starts image archives without docker, and keeps unpacked images while they are
used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InputError
from fumehood.engines.engine import AgentKind, AgentSource, BoxSpec, EngineOptions, OrphanKind
from fumehood.engines.oci.engine import OciEngine
from fumehood.engines.ownership import owner_is_alive
from tests.parts.image_archives import config_of, file, folder, layer, link, write_layout

pytestmark = pytest.mark.oci
PATIENCE_MS = 60_000
Write = Callable[..., AgentSource]


@pytest.fixture(autouse=True)
def without_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write an image whose program is an init program, because that needs no libraries."""
    program = Path(shutil.which("docker-init") or shutil.which("tini-static") or "").read_bytes()
    content = layer(
        folder("tools"),
        file("tools/tool", program, mode=0o755),
        link("place", "/tools"),
        file("etc/passwd", b"root:x:0:0::/:/bin/sh\n"),
    )

    def write_image(name: str = "layout", **settings: Any) -> AgentSource:
        place = write_layout(tmp_path / name, [content], config_of([content], **settings))
        return AgentSource(AgentKind.IMAGE, str(place))

    return write_image


@pytest.fixture
def engine() -> Iterator[OciEngine]:
    with closing(OciEngine()) as made:
        yield made


def says(engine: OciEngine, source: AgentSource, socket_dir: Path) -> str:
    box = engine.start(BoxSpec(image=engine.prepare(source), socket_dir=socket_dir))
    try:
        ended = box.wait(PATIENCE_MS)
    finally:
        output = box.close()
    assert ended is not None
    assert ended.code == 0, output.stderr
    return output.stdout.decode()


@pytest.mark.parametrize(
    "settings",
    [
        {"Volumes": {"/etc/passwd": {}}},
        {"Volumes": {"/tools/tool/below": {}}},
        {"Volumes": {"/.init": {}}},
    ],
)
def test_an_image_that_cannot_start_is_an_error_of_the_user_before_the_first_episode(
    settings: dict[str, Any], engine: OciEngine, write: Write
) -> None:
    with pytest.raises(InputError, match="cannot start; correct its settings"):
        engine.prepare(write(Cmd=["/tools/tool"], **settings))


@pytest.mark.parametrize("setting", ["WorkingDir", "Volumes"])
def test_a_path_that_is_too_long_is_an_error_of_the_user(
    setting: str, engine: OciEngine, write: Write
) -> None:
    path = "/" + "x" * 300
    value = {path: {}} if setting == "Volumes" else path
    with pytest.raises(InputError, match="File name too long"):
        engine.prepare(write(Cmd=["/tools/tool"], **{setting: value}))


@pytest.mark.parametrize(
    "settings",
    [
        {"Cmd": ["/tools/tool", "--version"]},
        {"Entrypoint": ["./tool"], "Cmd": ["--version"], "WorkingDir": "/place"},
        {"Cmd": ["tool", "--version"], "Env": ["PATH=/nowhere:/place"]},
    ],
)
def test_an_archive_starts_with_the_settings_of_its_image(
    settings: dict[str, Any], engine: OciEngine, write: Write, socket_dir: Path
) -> None:
    assert says(engine, write(**settings), socket_dir).startswith("tini version")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "has no command"),
        ({"Cmd": ["tool"], "WorkingDir": "/missing"}, "WORKDIR '/missing' is no folder"),
        ({"Cmd": ["tool"], "WorkingDir": "/proc/self/fd/9"}, "is no folder"),
        ({"Cmd": ["tool"], "Volumes": {"/fumehood": {}}}, "every box needs"),
    ],
)
def test_settings_that_keep_a_box_from_starting_are_input_errors(
    settings: dict[str, Any], message: str, engine: OciEngine, write: Write
) -> None:
    with pytest.raises(InputError, match=message):
        engine.prepare(write(**settings))


def test_an_image_is_unpacked_once(
    engine: OciEngine, write: Write, socket_dir: Path, tmp_path: Path
) -> None:
    source = write(Cmd=["/tools/tool", "--version"])
    says(engine, source, socket_dir)
    (root,) = (tmp_path / "a cache").glob("fumehood/oci/*/rootfs")
    before = root.stat().st_ino
    assert root.parent.parent.stat().st_mode & 0o077 == 0
    with closing(OciEngine()) as another:
        says(another, source, socket_dir)
    assert root.stat().st_ino == before


def test_an_image_without_its_source_is_removed_when_no_engine_uses_it(
    engine: OciEngine, write: Write, tmp_path: Path
) -> None:
    kept, gone = write(Cmd=["/tools/tool"]), write("gone", Cmd=["/tools/tool", "-h"])
    engine.prepare(kept)
    with closing(OciEngine()) as user:
        user.prepare(gone)
        assert not list(engine.orphans(owner_is_alive, images=True))
        shutil.rmtree(gone.name)
        (orphan,) = engine.orphans(owner_is_alive, images=True)
        assert orphan.kind is OrphanKind.IMAGE
        assert not engine.remove(orphan), "another engine uses it"
    assert engine.remove(orphan)
    assert not os.path.exists(orphan.name)
    assert not list(engine.orphans(owner_is_alive, images=True))
    assert len(list((tmp_path / "a cache").glob("fumehood/oci/*/rootfs"))) == 1


def test_what_a_killed_unpacking_left_is_removed(
    engine: OciEngine, write: Write, tmp_path: Path
) -> None:
    left = tmp_path / "a cache/fumehood/oci/.unfinished-x"
    left.mkdir(parents=True, mode=0o755)
    (left / "file").touch()
    engine.prepare(write(Cmd=["/tools/tool"]))
    assert not left.exists()


def test_an_unknown_runtime_is_named() -> None:
    with closing(OciEngine(EngineOptions(runtime="kata"))) as made:
        assert made.check().detail.startswith("the engine oci has no runtime 'kata'")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts workspaces of oci")
def test_a_workspace_needs_docker_to_build_its_image(engine: OciEngine, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM debian:bookworm\n", "utf-8")
    with pytest.raises(InputError, match="needs docker for the images of workspaces"):
        engine.prepare_workspace(tmp_path)


@pytest.mark.parametrize("kind", [AgentKind.BUILTIN, AgentKind.MODULE, AgentKind.IMAGE])
def test_an_agent_that_is_no_archive_needs_docker(engine: OciEngine, kind: AgentKind) -> None:
    needs = "needs docker for the image of the agent named, which is no image archive"
    with pytest.raises(InputError, match=f"{needs}.* engine answers at .*install and start one"):
        engine.prepare(AgentSource(kind, "named"))
