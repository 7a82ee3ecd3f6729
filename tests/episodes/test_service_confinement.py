"""The service has no privileges on the host."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.core.user_ids import SERVICE_UID
from fumehood.gateway.settings import GatewaySettings, Provider
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.wire.ports import Opened
from fumehood_agent.session import Session
from tests.chaos.commands import children_of
from tests.parts.listening import listening
from tests.parts.specs import episode_spec

pytestmark = pytest.mark.slow

AS_ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not AS_ROOT, reason="only root has a user to give up")


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServicePool]:
    monkeypatch.setenv("AN_API_KEY", "not for the service")
    with ServicePool(1) as running:
        yield running


def _status(pool: ServicePool) -> dict[str, str]:
    lines = Path(f"/proc/{pool.workers()[0].pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_the_service_is_unprivileged_and_cannot_gain_privileges(pool: ServicePool) -> None:
    status = _status(pool)
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    expected = SERVICE_UID if AS_ROOT else os.getuid()
    assert {int(word) for word in status["Uid"].split()} == {expected}


@only_root
def test_a_service_started_by_root_has_no_groups_of_root(pool: ServicePool) -> None:
    assert _status(pool)["Groups"] == ""
    assert set(_status(pool)["Gid"].split()) == {str(SERVICE_UID)}


def test_the_service_gets_only_variables_that_python_needs(pool: ServicePool) -> None:
    environment = Path(f"/proc/{pool.workers()[0].pid}/environ").read_bytes()
    assert b"PATH=" in environment
    assert b"AN_API_KEY" not in environment


def test_the_service_writes_no_core_files_and_may_open_many_files(pool: ServicePool) -> None:
    text = Path(f"/proc/{pool.workers()[0].pid}/limits").read_text(encoding="utf-8")
    limits = {line[:26].strip(): line[26:].split()[:2] for line in text.splitlines()}
    assert limits["Max core file size"] == ["0", "0"]
    soft, hard = limits["Max open files"]
    assert soft == hard


def test_other_users_cannot_reach_the_sockets_of_the_service(pool: ServicePool) -> None:
    client = pool.workers()[0].client
    messages = client.open_episode(
        episode_spec(episode_id="confined", world="files", state={"files": {}})
    )
    opened = next(messages)
    assert isinstance(opened, Opened)
    folder = Path(opened.seats[0].directory)
    modes = [oct(above.stat().st_mode & 0o777) for above in folder.parents[:3]]
    # 0o711: may be entered but not listed; 0o750: by the process of the episode only
    episode, service = ("0o750", "0o711") if AS_ROOT else ("0o700", "0o700")
    assert modes == [episode, service, "0o711"]
    with Session(folder / "grpc.sock") as session:
        assert session.call("list_dir", {"path": "/"})
    client.close_episode("confined", timed_out=False)


@pytest.mark.parametrize("inline", [False, True])
def test_a_service_imports_nothing_from_the_current_folder(
    inline: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("traceback", "grpc", "fumehood", "fumehood_agent"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    with ServicePool(1, ServiceOptions(inline=inline)) as running:
        assert running.workers()[0].usable
    assert not (tmp_path / "ran").exists()


@only_root
def test_only_the_service_has_the_key_of_a_provider_in_its_memory() -> None:
    key = f"sk-{secrets.token_hex(16)}"
    provider = Provider(name="models", address="http://127.0.0.1:9", key=key)
    with ServicePool(
        1, ServiceOptions(http=HttpOffer(None, GatewaySettings(providers=(provider,))))
    ) as running:
        service = running.workers()[0].pid
        with listening(running.workers()[0].client, episode_spec()):
            (fork_server,) = children_of(service)
            episodes = children_of(fork_server.pid)
            assert episodes
            assert _has_in_memory(service, key)
            assert not _has_in_memory(fork_server.pid, key)
            assert not any(_has_in_memory(episode.pid, key) for episode in episodes)


def _has_in_memory(pid: int, text: str) -> bool:
    regions = [
        [int(address, 16) for address in line.split()[0].split("-")]
        for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
        if line.split()[1].startswith("rw")
    ]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for begin, end in regions:
            memory.seek(begin)
            if text.encode() in memory.read(end - begin):
                return True
    return False


@only_root
def test_a_folder_that_the_service_user_cannot_enter_is_refused() -> None:
    with tempfile.TemporaryDirectory() as closed:
        started = subprocess.run(
            [sys.executable, "-m", "fumehood", "serve", f"{closed}/sockets"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert started.returncode == 2
    assert f"cannot enter {closed}" in started.stderr
    assert len(started.stderr.splitlines()) == 1


@only_root
def test_a_runtime_folder_that_the_service_user_cannot_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with ServicePool(1) as running:
        assert running.workers()[0].usable
