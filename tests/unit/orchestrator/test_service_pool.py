"""Services are started with the right options, lent evenly, and replaced when they die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.orphans import Machine, reap_local
from fumehood.engines.ownership import owner_is_alive
from fumehood.gateway.settings import GatewaySettings
from fumehood.orchestrator.service_pool import (
    HttpOffer,
    ServiceOptions,
    ServicePool,
    ServiceWorker,
)
from fumehood.wire.ports import InlineAgent
from tests.parts.folders import short_folder
from tests.parts.listening import wait_until
from tests.parts.specs import episode_spec


@pytest.fixture(scope="module")
def pool() -> Iterator[ServicePool]:
    with ServicePool(2) as services:
        yield services


def test_the_arguments_of_a_service_name_what_differs_from_the_defaults() -> None:
    assert ServiceOptions().arguments() == ()
    options = ServiceOptions(
        http=HttpOffer(Path("/h"), GatewaySettings(providers=())),
        worlds=("crud", "files"),
        limits={"refusals": 3},
        inline=True,
    )
    assert options.arguments() == (
        *("--http", "--helper", "/h", "--models"),
        *("--worlds", "crud,files"),
        *("--limits", '{"refusals": 3}'),
        "--inline",
    )


def test_a_service_reads_a_first_line_only_for_models() -> None:
    assert HttpOffer().first_line() == b""
    assert HttpOffer(None, GatewaySettings(providers=())).first_line().endswith(b"\n")


@pytest.mark.slow
def test_leases_are_spread_over_the_services(pool: ServicePool) -> None:
    first, second = pool.workers()
    with pool.lease() as one, pool.lease() as other:
        assert {one, other} == {first.client, second.client}
        assert (first.episodes, second.episodes) == (1, 1)
    assert (first.episodes, second.episodes) == (0, 0)


def test_a_lease_ends_when_its_user_raises(pool: ServicePool) -> None:
    with pytest.raises(ValueError, match="stop"), pool.lease():
        raise ValueError("stop")
    assert [worker.episodes for worker in pool.workers()] == [0, 0]


@pytest.mark.slow
def test_a_service_that_died_is_replaced_when_it_is_lent() -> None:
    with ServicePool(1) as pool:
        (worker,) = pool.workers()
        os.kill(worker.pid, signal.SIGKILL)
        os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
        with pool.lease() as client:
            assert client.health().episodes_open == 0
        (replacement,) = pool.workers()
        assert replacement.pid != worker.pid
        assert replacement.usable


@pytest.mark.slow
def test_a_service_whose_inline_agent_exceeds_its_deadline_is_replaced() -> None:
    episode = (episode_spec(), [InlineAgent("agent", "noop", "")])
    with ServicePool(1, ServiceOptions(inline=True)) as pool:
        (worker,) = pool.workers()
        # A stopped process cannot answer, however fast the machine is.
        os.kill(worker.pid, signal.SIGSTOP)
        with pytest.raises(InfraError, match="DEADLINE_EXCEEDED"), pool.lease() as client:
            client.play_inline([episode], timeout_s=0.1)
        with pool.lease() as client:
            first, second = client.play_inline([episode, episode], timeout_s=60)
            assert first.records[-1].hash == second.records[-1].hash
        assert pool.workers()[0].pid != worker.pid


@pytest.mark.slow
def test_a_service_does_not_get_the_keys_of_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", "secret")
    with short_folder() as folder:
        worker = ServiceWorker(Path(folder) / "w")
        environment = Path(f"/proc/{worker.pid}/environ").read_bytes()
        worker.stop()
    assert b"PATH=" in environment
    assert b"secret" not in environment


@pytest.mark.slow
def test_a_stopped_service_leaves_no_folder() -> None:
    with short_folder() as folder:
        worker = ServiceWorker(Path(folder) / "w")
        assert (Path(folder) / "w").is_dir()
        worker.stop()
        assert not worker.alive
        assert not (Path(folder) / "w").exists()


RUN_WITH_A_SERVICE = """
import sys
from fumehood.orchestrator.service_pool import ServicePool
pool = ServicePool(1)
print(pool.workers()[0].pid, flush=True)
sys.stdin.read()
pool.stop()
"""


def temporary_folder_of(process_id: int) -> Path:
    variables = Path(f"/proc/{process_id}/environ").read_bytes().split(b"\0")
    (value,) = (each for each in variables if each.startswith(b"TMPDIR="))
    return Path(os.fsdecode(value.removeprefix(b"TMPDIR=")))


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
def test_temporary_files_of_a_service_are_removed_after_the_run_or_found_after_a_kill(
    monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    with short_folder() as folder:
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
            monkeypatch.setenv(name, folder)
        command = [sys.executable, "-c", RUN_WITH_A_SERVICE]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            service = int(run.stdout.readline())
            temporary = temporary_folder_of(service)
            assert temporary.stat().st_uid == Path(f"/proc/{service}").stat().st_uid
            (temporary / "database").write_bytes(b"rows")
            if is_killed:
                run.kill()
        assert wait_until(lambda: not Path(f"/proc/{service}").exists())
        assert temporary.is_dir() == is_killed
        with Machine(owner_is_alive) as machine:
            found = [orphan.name for orphan in machine.orphans(images=False)]
        assert (str(temporary.parent) in found) == is_killed
        reap_local(owner_is_alive)
        assert not temporary.parent.exists()


@pytest.mark.slow
def test_options_that_a_service_rejects_are_an_input_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with (
        short_folder() as folder,
        pytest.raises(InputError, match="the line above gives the remedy"),
    ):
        ServiceWorker(Path(folder) / "w", ServiceOptions(limits={"no_such_limit": 1}))
    assert "no_such_limit" in capfd.readouterr().err


@pytest.mark.slow
def test_a_service_that_ends_at_its_start_is_an_infrastructure_failure() -> None:
    with (
        short_folder() as folder,
        pytest.raises(InfraError, match="ended with status 1 before it answered"),
    ):
        ServiceWorker(Path(folder) / ("w" * 200))
