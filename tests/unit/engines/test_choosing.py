"""The choice of an engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.engines.engine import AgentKind, AgentSource, EngineOptions, Limits
from fumehood.engines.registry import ENGINES, choose_engine


@pytest.fixture
def no_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/missing.sock")


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.docker
def test_auto_chooses_docker_first() -> None:
    chosen = choose_engine("auto")
    assert chosen.engine.name == "docker"
    assert chosen.reason.startswith("docker (Docker ")
    chosen.engine.close()


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.usefixtures("no_docker")
def test_auto_chooses_bubblewrap_second_and_gives_the_reason() -> None:
    chosen = choose_engine("auto")
    assert chosen.engine.name == "bubblewrap"
    assert "docker is not ready" in chosen.reason
    assert "\n" not in chosen.reason
    chosen.engine.close()


@pytest.mark.usefixtures("no_docker", "no_tools")
def test_auto_never_chooses_the_process_engine() -> None:
    with pytest.raises(InputError) as caught:
        choose_engine("auto")
    assert "apt-get install docker.io" in str(caught.value)
    assert "apt-get install bubblewrap" in str(caught.value)


@pytest.mark.usefixtures("no_docker", "no_tools")
def test_built_in_agents_play_inline_where_no_engine_makes_boxes() -> None:
    chosen = choose_engine("auto", EngineOptions(builtin_only=True))
    assert chosen.engine.name == "inline"
    assert chosen.reason.startswith("inline (no isolation: built-in agents run inside")
    assert "apt-get install docker.io" in chosen.reason
    assert "apt-get install bubblewrap" in chosen.reason
    assert "\n" not in chosen.reason


@pytest.mark.parametrize("kind", [AgentKind.MODULE, AgentKind.FOLDER, AgentKind.IMAGE])
def test_the_inline_engine_refuses_agents_of_users(kind: AgentKind) -> None:
    with pytest.raises(InputError, match=r"only, not 'mine:Agent'; .*`fumehood list agents`"):
        choose_engine("inline").engine.prepare(AgentSource(kind, "mine:Agent"))


@pytest.mark.usefixtures("no_docker")
def test_auto_with_a_runtime_needs_docker() -> None:
    with pytest.raises(InputError, match="docker is not ready"):
        choose_engine("auto", EngineOptions(runtime="runsc"))


def test_the_process_engine_can_be_requested() -> None:
    chosen = choose_engine("process")
    assert chosen.reason.startswith("process (no isolation")
    chosen.engine.close()


def test_an_unknown_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match="did you mean 'bubblewrap'"):
        choose_engine("bublewrap")


def test_every_engine_lists_unenforced_limits_by_their_names() -> None:
    for name in ENGINES:
        assert set(ENGINES.load(name)().unenforced) <= set(Limits.__dataclass_fields__)


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "bubblewrap"])
def test_a_refusal_of_forked_starts_needs_an_engine_that_has_them(name: str) -> None:
    with pytest.raises(InputError, match=f"the {name} engine forks no agents"):
        choose_engine(name, EngineOptions(forked_starts=False))


@pytest.mark.parametrize("name", ["bubblewrap", "process", "inline"])
def test_a_runtime_is_rejected_by_engines_without_runtimes(name: str) -> None:
    with pytest.raises(InputError, match="remove --runtime or use --engine docker or oci"):
        choose_engine(name, EngineOptions(runtime="runsc"))


@pytest.mark.oci
@pytest.mark.usefixtures("no_docker")
def test_auto_chooses_oci_for_image_archives() -> None:
    chosen = choose_engine("auto", EngineOptions(archives=True))
    assert chosen.engine.name == "oci"
    assert chosen.reason.endswith("; only oci starts image archives")
    chosen.engine.close()


AS_ORDINARY_USER = """
import os, sys
from fumehood.engines.engine import EngineOptions
from fumehood.engines.oci.engine import OciEngine
os.setuid(1234)
engine = OciEngine(EngineOptions(runtime=sys.argv[1]))
readiness = engine.check()
print(readiness.ready, readiness.detail)
"""


@pytest.mark.oci
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user")
@pytest.mark.parametrize("runtime", ["runc", "runsc"])
def test_oci_refuses_an_ordinary_user_a_runtime_that_needs_root(runtime: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_ORDINARY_USER, runtime],
        check=True,
        capture_output=True,
        text=True,
    )

    ready, _, detail = done.stdout.strip().partition(" ")
    assert ready == "False"
    assert detail == (
        f"an ordinary user cannot use the runtime {runtime}: use crun, or run fumehood as root"
    )
