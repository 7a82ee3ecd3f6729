"""Processes of a fork server are confined, limited and reported when they end."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError, InputError
from fumehood.core.user_ids import EPISODE_UIDS
from fumehood.supervised import confinement
from fumehood.supervised.fork_server import ForkServer
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.supervised.limits import Access, End, EndReason, Limits
from tests.parts import supervised_entries

MODULE = supervised_entries.__name__
REPOSITORY = Path(__file__).parents[3]
NAMES = (
    "answer",
    "fail",
    "hang",
    "sleep",
    "allocate",
    "die",
    "abort",
    "attempt",
    "reach",
    "leave_message",
    "share",
    "echo",
    "listen",
    "nest",
    "wait_for_channel",
    "lower_limit",
    "replace_seat",
)
ENTRIES = {name: f"{MODULE}:{name}" for name in NAMES}
LIMITS = Limits(deadline_s=60)
DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def variables() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        patch.setenv("AN_API_KEY", "secret")
        yield patch


@pytest.fixture(scope="module")
def server(variables: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        running = ForkServer(ENTRIES, prepare=(f"{MODULE}:prepare", {"number": 7}), folder=folder)
        yield running
        running.close()


def _end(server: ForkServer, entry: str, limits: Limits = LIMITS, **question: int) -> End:
    end = server.ask(entry, dict(question), limits)
    assert isinstance(end, End), end
    return end


def _becomes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + DEADLINE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_each_answer_comes_from_a_new_process_of_the_same_prepared_state(
    server: ForkServer,
) -> None:
    first, second = (server.ask("answer", {"number": number}, LIMITS) for number in (1, 2))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["question"] == {"number": 1}
    assert first["prepared"] == second["prepared"] == [{"number": 7}]
    assert first["pid"] != second["pid"]


def test_an_exception_is_reported_with_its_text(server: ForkServer) -> None:
    end = _end(server, "fail", number=3)
    assert end.reason is EndReason.FAILED
    assert "cannot use {'number': 3}" in str(end)
    assert end.is_own_fault


@pytest.mark.slow
def test_a_computation_that_hangs_is_killed_at_its_processor_time(server: ForkServer) -> None:
    end = _end(server, "hang", Limits(cpu_s=1))
    assert end.reason is EndReason.CPU
    assert end.is_own_fault
    # The kernel checks the limit in steps of a clock tick and counts start-up apart.
    assert 0.5 < end.cpu_s < 3


def test_a_process_that_only_waits_is_killed_at_its_deadline(server: ForkServer) -> None:
    began = time.monotonic()
    end = _end(server, "sleep", Limits(deadline_s=0.3))
    assert end.reason is EndReason.DEADLINE
    assert time.monotonic() - began < DEADLINE_S


def test_memory_beyond_the_limit_is_not_allocated(server: ForkServer) -> None:
    end = _end(server, "allocate", Limits(memory_bytes=1 << 29, deadline_s=60))
    assert end.reason is EndReason.MEMORY
    assert end.peak_bytes < 1 << 29


def test_a_process_takes_no_memory_that_its_limit_does_not_count(server: ForkServer) -> None:
    shared = server.ask("share", {}, LIMITS)
    assert isinstance(shared, dict)
    assert all(supervised_entries.share({}).values()), "the control without confinement"
    assert not shared["mapping of 512 GiB"]
    if confinement.SYSTEM_CALLS in server.holds:
        assert not shared["file in memory"]
        assert not shared["shared mapping"]
        assert not shared["growing mapping"]
    if confinement.FILES in server.holds:
        assert not shared["mapping of /dev/zero"]


def test_a_crash_is_the_own_fault_but_an_outsiders_kill_is_not(server: ForkServer) -> None:
    crashed = _end(server, "die")
    child = server.start("wait_for_channel", {}, LIMITS)
    os.kill(child.pid, signal.SIGKILL)
    killed = child.wait(DEADLINE_S)
    child.channel.close()
    assert killed is not None
    assert (crashed.reason, crashed.status) == (EndReason.SIGNAL, signal.SIGSEGV)
    assert crashed.is_own_fault
    assert (killed.reason, killed.status) == (EndReason.SIGNAL, signal.SIGKILL)
    assert not killed.is_own_fault


def test_an_error_that_native_code_finds_is_the_own_fault(server: ForkServer) -> None:
    """Although the process may not send itself the signal."""
    aborted = _end(server, "abort")
    assert aborted.reason is EndReason.SIGNAL
    assert aborted.is_own_fault


@pytest.mark.slow
def test_a_process_that_lowers_its_limit_to_be_killed_exceeded_it(server: ForkServer) -> None:
    child = server.start("lower_limit", {}, LIMITS)
    end = child.wait(DEADLINE_S)
    child.channel.close()
    assert end is not None
    assert end.reason is EndReason.CPU
    assert end.is_own_fault


def test_a_process_cannot_change_its_sealed_folder(server: ForkServer) -> None:
    child = server.start("replace_seat", {}, LIMITS, Access(folder=True))
    assert receive_frame(child.channel) == b"created"
    child.seal_folder()
    send_frame(child.channel, b"replace it")
    reply = receive_frame(child.channel)
    assert reply is not None
    could = json.loads(reply)
    if confinement.USER in server.holds:
        assert could == dict.fromkeys(could, False)
        assert child.folder is not None
        assert child.folder.stat().st_uid == 0
    if confinement.SYSTEM_CALLS in server.holds:
        assert not could["links"]
        assert not could["renames"]
    child.channel.close()
    assert child.wait(DEADLINE_S) is not None
    assert _becomes_true(partial(_is_missing, child.folder or Path("/")))


@pytest.mark.slow
def test_processes_that_hang_do_not_delay_others(server: ForkServer) -> None:
    with ThreadPoolExecutor(4) as threads:
        late = [threads.submit(_end, server, "sleep", Limits(deadline_s=2)) for _ in range(3)]
        answers = [server.ask("answer", {"number": number}, LIMITS) for number in range(5)]
        assert not any(one.done() for one in late)
    assert all(isinstance(answer, dict) for answer in answers)
    assert [one.result().reason for one in late] == [EndReason.DEADLINE] * 3


def test_a_process_reaches_nothing_but_its_own_folder(server: ForkServer, tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("gold", encoding="utf-8")
    tmp_path.chmod(0o777)
    could = server.ask("attempt", {"outside": str(outside)}, LIMITS)
    assert isinstance(could, dict)
    if confinement.FILES in server.holds:
        assert not could["reads"]
        assert not could["lists"]
        assert not could["writes"]
        assert not could["signals its parent"]
    if confinement.SYSTEM_CALLS in server.holds:
        assert not could["network"]
        assert not could["starts a program"]
        assert not could["forks"]
        assert not could["traces"]
        assert not could["makes a later call"]
        assert not could["limits its parent"]
        assert not could["slows its parent"]
        assert not could["slows its group"]
        assert not could["slows its user"]
        assert not could["stops itself"]
        assert not could["kills itself"]
        assert not could["signals a process of its user"]
        assert not could["chooses a signal of a file"]
        assert not could["chooses a signal with unused bits"]
        assert not could["gets the signals of a socket"]
        assert not could["slows itself"]
    assert could["starts a thread"]
    assert could["core"] == 0
    assert could["files"] == 5, "standard streams, the channel, and the list itself"
    assert not (tmp_path / "written").exists()


def test_a_process_reaches_no_socket_of_another_program(server: ForkServer) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        socket.socket(socket.AF_UNIX) as stream,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_sender,
    ):
        paths = {"stream": f"{name}/stream", "any": f"{name}/any"}
        os.chmod(name, 0o711)
        for listening, path in zip((stream, any_sender), paths.values(), strict=True):
            listening.bind(path)
            os.chmod(path, 0o777)
        stream.listen()
        assert all(supervised_entries.reach({**paths}).values()), "the control without confinement"
        if confinement.SYSTEM_CALLS in server.holds:
            assert server.ask("reach", {**paths}, LIMITS) == {"connects": False, "sends": False}


def test_a_process_leaves_no_message_on_a_file_that_all_processes_share(
    server: ForkServer,
) -> None:
    without = supervised_entries.leave_message({})
    assert all(without.values()), "the control without confinement"
    if confinement.SYSTEM_CALLS in server.holds:
        left = server.ask("leave_message", {}, LIMITS)
        assert left == dict.fromkeys(without, False)


def test_a_process_has_no_terminal_of_its_owner() -> None:
    terminal, end = os.openpty()
    script = (
        "from fumehood.supervised.fork_server import ForkServer\n"
        "from fumehood.supervised.limits import Limits\n"
        f"server = ForkServer({{'attempt': '{MODULE}:attempt'}})\n"
        "print(server.ask('attempt', {'outside': '/none'}, Limits())['is at a terminal'])\n"
        "server.close()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        stdin=end,
        stdout=subprocess.PIPE,
        stderr=end,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=True,
    )
    os.close(end)
    os.close(terminal)
    assert ended.stdout == b"False\n"


def test_this_machine_supports_every_part_that_its_kernel_has(server: ForkServer) -> None:
    assert confinement.NO_NEW_PRIVS in server.holds
    assert (confinement.USER in server.holds) == (os.geteuid() == 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")
def test_each_process_has_its_own_user(server: ForkServer, tmp_path: Path) -> None:
    children = [server.start("echo", {}, LIMITS) for _ in range(3)]
    users = set()
    for child in children:
        assert _becomes_true(partial(_is_not_root, child.pid))
        status = Path(f"/proc/{child.pid}/status").read_text(encoding="ascii")
        users |= {int(line.split()[1]) for line in status.splitlines() if line[:4] == "Uid:"}
        assert "CapEff:\t0000000000000000" in status
    assert len(users) == 3
    assert users <= set(EPISODE_UIDS)
    for child in children:
        child.channel.close()
        assert child.wait(DEADLINE_S) is not None


def test_the_own_folder_is_private_and_goes_with_the_process(server: ForkServer) -> None:
    child = server.start("echo", {}, LIMITS, Access(folder=True))
    send_frame(child.channel, b"hello")
    assert receive_frame(child.channel) == b"hello"
    assert child.folder is not None
    assert (child.folder / "mine").read_text(encoding="utf-8") == "kept"
    assert child.folder.stat().st_mode & 0o077 == 0
    child.channel.close()
    end = child.wait(DEADLINE_S)
    assert end is not None
    assert end.reason is EndReason.EXITED
    assert not child.folder.exists()


def test_a_process_does_not_see_the_sockets_of_another_one(server: ForkServer) -> None:
    """Processes of an ordinary user could connect to them."""
    if confinement.NETWORK not in server.holds:
        pytest.skip("this machine does not let a process leave the network")
    first, second = (server.start("listen", {}, LIMITS, Access(folder=True)) for _ in range(2))
    for child in (first, second):
        seen = receive_frame(child.channel)
        assert seen is not None
        assert len(seen.splitlines()) <= 1
        assert child.folder is not None
        assert str(child.folder).encode() in seen or not seen
    for child in (first, second):
        child.channel.close()
        assert child.wait(DEADLINE_S) is not None


@pytest.mark.slow
def test_a_folder_that_is_too_deep_for_python_costs_no_other_process(server: ForkServer) -> None:
    child = server.start("nest", {}, LIMITS, Access(folder=True))
    end = child.wait(DEADLINE_S)
    assert end is not None
    assert end.reason is EndReason.EXITED
    child.channel.close()
    assert isinstance(server.ask("answer", {}, LIMITS), dict)
    assert child.folder is not None
    assert _becomes_true(partial(_is_missing, child.folder))


def _open_files(server: ForkServer) -> set[int]:
    return {int(name) for name in os.listdir(f"/proc/{server.pid}/fd")}


def test_a_process_that_cannot_be_forked_keeps_no_user_and_no_folder(
    variables: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tmp_path.chmod(0o711)
    server = ForkServer(ENTRIES, folder=tmp_path)
    before = _open_files(server)
    free = [number for number in range(max(before) + 8) if number not in before]
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    # One descriptor for the channel of the process, then none, one or two for the rest.
    for descriptors in (1, 2, 3):
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (free[descriptors], limits[1]))
        with ExitStack() as stack:
            for _ in range(3):  # The last of these cannot be forked, also without root.
                child = server.start("work_on_request", {}, LIMITS, Access(folder=True), wait=False)
                stack.callback(child.channel.close)
            with pytest.raises(InfraError, match="Too many open files"):
                child.wait_until_started()
        assert _becomes_true(lambda: _open_files(server) == before)
        assert not [*tmp_path.iterdir()]
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
    assert server.ask("answer", {}, LIMITS, Access(folder=True))
    server.close()


def test_the_owner_can_kill_a_process(server: ForkServer) -> None:
    child = server.start("wait_for_channel", {}, LIMITS)
    assert receive_frame(child.channel) == b"started"
    assert child.wait(0) is None
    child.kill()
    end = child.wait(DEADLINE_S)
    assert end is not None
    assert end.reason is EndReason.REQUESTED
    assert not end.is_own_fault
    child.channel.close()


def test_the_server_holds_no_secret_of_its_owner(server: ForkServer) -> None:
    assert b"AN_API_KEY" not in Path(f"/proc/{server.pid}/environ").read_bytes()
    assert len(os.listdir(f"/proc/{server.pid}/task")) == 1, "a process with threads cannot fork"


def test_every_process_ends_with_its_server(variables: pytest.MonkeyPatch) -> None:
    server = ForkServer(ENTRIES)
    children = [server.start("wait_for_channel", {}, LIMITS) for _ in range(2)]
    for child in children:
        receive_frame(child.channel)
    os.kill(server.pid, signal.SIGKILL)
    for child in children:
        end = child.wait(DEADLINE_S)
        assert end is not None
        assert end.reason is EndReason.LOST
        assert _becomes_true(partial(_is_gone, child.pid))
        child.channel.close()
    with pytest.raises(InfraError, match="has ended"):
        server.ask("answer", {}, LIMITS)
    server.close()


def test_closing_the_server_ends_every_process(variables: pytest.MonkeyPatch) -> None:
    server = ForkServer(ENTRIES)
    child = server.start("wait_for_channel", {}, LIMITS)
    receive_frame(child.channel)
    server.close()
    assert not server.alive
    assert _is_gone(child.pid)
    child.channel.close()


def test_input_that_the_user_must_correct_is_reported_as_such(
    variables: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match="no such suite"):
        ForkServer(ENTRIES, prepare=(f"{MODULE}:prepare", {"invalid": "no such suite"}))


def test_a_server_that_cannot_start_is_reported(variables: pytest.MonkeyPatch) -> None:
    with variables.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(InfraError, match="ended before it was ready"):
            ForkServer(ENTRIES)


def test_limits_hold_below_lower_limits_of_the_user(server: ForkServer) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    answer = server.ask("answer", {}, Limits(open_files=2 * min(most, 1 << 20), deadline_s=60))
    assert isinstance(answer, dict)


def _is_missing(folder: Path) -> bool:
    return not folder.exists()


def _is_not_root(pid: int) -> bool:
    return os.stat(f"/proc/{pid}").st_uid != 0


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"
