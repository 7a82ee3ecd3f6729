"""What every engine promises of a box's life."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    BoxSpec,
    Engine,
    ExitReason,
    Isolation,
    Limits,
    Mount,
)
from fumehood.engines.ownership import owner_is_alive
from tests.conformance.boxes import PATIENCE_MS, SOCKET, Boxes, Listener, hangs_up

SLEEP = "import time; time.sleep(600)"
CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
OWNER = Path(__file__).with_name("box_owner.py")


@pytest.mark.parametrize("code", [0, 1, 7, 127])
def test_a_box_ends_with_the_code_of_its_process(boxes: Boxes, code: int) -> None:
    ended, _ = boxes.run(f"raise SystemExit({code})")
    assert (ended.code, ended.reason) == (code, ExitReason.EXITED)


def test_a_box_whose_process_kills_itself_ends_with_128_and_the_signal(boxes: Boxes) -> None:
    deed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    if boxes.engine.isolation is Isolation.NONE:
        # Trusted code does not do that, and without a box nobody can tell who did.
        with pytest.raises(InfraError, match="somebody killed"):
            boxes.run(deed)
        return
    ended, _ = boxes.run(deed)
    assert (ended.code, ended.reason) == (137, ExitReason.EXITED)


def test_an_agent_that_kills_everybody_around_it_has_ended_by_itself(boxes: Boxes) -> None:
    if boxes.engine.isolation is Isolation.NONE:
        return  # Around it is this machine.
    ended, _ = boxes.run("import os, signal, time; os.kill(-1, signal.SIGKILL); time.sleep(1)")
    assert ended.reason is ExitReason.EXITED


def test_a_box_that_is_killed_from_outside_is_a_failure_of_ours(boxes: Boxes) -> None:
    box = boxes.start("import time; time.sleep(600)")
    if boxes.engine.name == "docker":
        subprocess.run(["docker", "kill", box.name], check=True, capture_output=True, timeout=60)
    else:
        pid = box.host_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(InfraError, match="somebody"):
        box.wait(20_000)


def test_both_outputs_are_kept_apart(boxes: Boxes) -> None:
    _, output = boxes.run("import sys; print('to say'); print('to complain', file=sys.stderr)")
    assert (output.stdout, output.stderr) == (b"to say\n", b"to complain\n")
    assert (output.stdout_bytes, output.stderr_bytes) == (7, 12)


def test_output_is_kept_up_to_its_bound_and_counted_beyond(boxes: Boxes) -> None:
    printing = (
        "import sys\nsys.stdout.write('first'); chunk = 'x' * 1_000_000\n"
        "for _ in range(200): sys.stdout.write(chunk)\nsys.stdout.write('last')"
    )
    started = time.monotonic()
    ended, output = boxes.run(printing, limits=Limits(output_bytes=1000))
    assert ended.code == 0
    assert output.stdout_bytes == 200_000_009
    assert len(output.stdout) == 1000
    assert output.stdout.startswith(b"first")
    assert output.stdout.endswith(b"last")
    assert time.monotonic() - started < 40


def test_a_running_box_has_no_exit_yet(boxes: Boxes) -> None:
    box = boxes.start("input_ = __import__('time').sleep(1.5)")
    assert box.wait(0) is None
    assert box.wait(100) is None
    ended = box.wait(PATIENCE_MS)
    assert ended is not None
    assert ended.code == 0


def test_the_end_of_a_box_may_be_asked_for_again(boxes: Boxes) -> None:
    box = boxes.start("raise SystemExit(3)")
    assert box.wait(PATIENCE_MS) == box.wait(PATIENCE_MS)


def test_killing_ends_processes_that_do_not_listen_and_their_children(
    boxes: Boxes, listener: Listener
) -> None:
    stubborn = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork();"
    box = boxes.start(f"{stubborn} {CONNECT} time.sleep(600)", SOCKET)
    with listener.accept() as parent, listener.accept() as child:
        box.kill()
        ended = box.wait(PATIENCE_MS)
        assert ended is not None
        assert (ended.code, ended.reason) == (137, ExitReason.KILLED)
        box.close()
        assert hangs_up(parent)
        assert hangs_up(child)


def test_killing_is_harmless_at_any_time(boxes: Boxes) -> None:
    box = boxes.start("pass")
    ended = box.wait(PATIENCE_MS)
    box.kill()
    box.kill()
    assert box.wait(PATIENCE_MS) == ended
    box.close()
    box.kill()


def test_closing_a_running_box_ends_it_and_its_children(boxes: Boxes, listener: Listener) -> None:
    box = boxes.start(
        f"import os, time; os.fork(); print('here', flush=True); {CONNECT} time.sleep(600)", SOCKET
    )
    with listener.accept() as parent, listener.accept() as child:
        output = box.close()
        assert hangs_up(parent)
        assert hangs_up(child)
    assert output.stdout == b"here\nhere\n"
    assert box.close() == output


def test_a_box_reaches_the_socket_in_its_gloves(boxes: Boxes, listener: Listener) -> None:
    box = boxes.start(f"{CONNECT} s.sendall(b'hello'); print(s.recv(5).decode())", SOCKET)
    with listener.accept() as connection:
        assert connection.recv(5) == b"hello"
        connection.sendall(b"there")
        assert box.wait(PATIENCE_MS) is not None
    assert box.close().stdout == b"there\n"


def test_mounts_are_shown_where_they_are_wanted(boxes: Boxes, tmp_path: Path) -> None:
    (tmp_path / "calls.json").write_text("[1]")
    mount = Mount(tmp_path / "calls.json", "/task/calls.json")
    code = "import sys; print(open(sys.argv[1]).read())"
    _, output = boxes.run(code, "/task/calls.json", mounts=(mount,))
    assert output.stdout == b"[1]\n"


def test_arguments_follow_the_command(boxes: Boxes) -> None:
    assert boxes.says("import sys; print(sys.argv[1:])", "a b", "--c") == "['a b', '--c']"


def test_a_box_can_import_what_an_agent_needs(boxes: Boxes) -> None:
    imports = "import fumehood_agent, grpc; from fumehood_agent._proto.v1 import tool_pb2_grpc"
    assert boxes.says(f"{imports}; print('ready')") == "ready"


def test_a_missing_command_is_the_users_to_mend(boxes: Boxes) -> None:
    spec = boxes.spec("pass")
    missing = replace(spec.image, command=("no-such-command",))
    with pytest.raises(InputError, match="no-such-command"):
        boxes.engine.start(replace(spec, image=missing))


def test_eight_boxes_start_at_once(boxes: Boxes) -> None:
    with ThreadPoolExecutor(8) as threads:
        said = list(
            threads.map(lambda n: boxes.says("import sys; print(sys.argv[1])", str(n)), range(8))
        )
    assert said == [str(n) for n in range(8)]


def test_a_box_outlives_the_thread_that_started_it(boxes: Boxes) -> None:
    with ThreadPoolExecutor(1) as threads:
        box = threads.submit(
            boxes.start, "import time; time.sleep(1); print('still here')"
        ).result()
    assert box.wait(PATIENCE_MS) is not None
    assert box.close().stdout == b"still here\n"


def test_what_lost_its_owner_is_reaped_and_nothing_else(boxes: Boxes, listener: Listener) -> None:
    mine = boxes.start(f"{CONNECT} {SLEEP}", SOCKET)
    with listener.accept():
        owner = _start_owner(boxes)
        with listener.accept() as orphan, listener.accept() as orphans_child:
            owner.kill()
            owner.wait()
            boxes.engine.reap(owner_is_alive)
            assert hangs_up(orphan)
            assert hangs_up(orphans_child)
        assert boxes.engine.reap(owner_is_alive) == 0
        assert mine.wait(0) is None


def _start_owner(boxes: Boxes) -> subprocess.Popen[bytes]:
    runtime = "runsc" if boxes.engine.isolation.value == "sandboxed_kernel" else ""
    command = [sys.executable, str(OWNER), boxes.engine.name, runtime, str(boxes.socket_dir)]
    return subprocess.Popen(command, env={"PYTHONPATH": ":".join(sys.path)})


def test_a_module_of_the_user_is_found_in_the_folder_where_the_command_runs(
    boxes: Boxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "mine.py").write_text("class Agent: pass")
    monkeypatch.chdir(tmp_path)
    if boxes.engine.name == "process":
        with pytest.raises(InputError, match="--i-trust-this-agent"):
            boxes.engine.prepare(AgentSource(AgentKind.MODULE, "mine:Agent"))
        return
    image = boxes.engine.prepare(AgentSource(AgentKind.MODULE, "mine:Agent"))
    assert image.command[1:] == ("-m", "fumehood_agent", "run", "mine:Agent")
    looking = (image.command[0], "-c", "import mine; print(mine.__file__)")
    box = boxes.engine.start(
        BoxSpec(image=replace(image, command=looking), socket_dir=boxes.socket_dir)
    )
    assert box.wait(PATIENCE_MS) is not None
    assert box.close().stdout == b"/agent/mine.py\n"


def test_a_module_that_no_box_could_read_is_the_users_to_mend(
    sealed: Boxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("class Agent: pass")
    (tmp_path / "mine.py").chmod(0o600)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="chmod"):
        sealed.engine.prepare(AgentSource(AgentKind.MODULE, "mine:Agent"))


def test_a_module_that_is_not_there_is_the_users_to_mend(engine: Engine) -> None:
    with pytest.raises(InputError, match=r"no_such_module|--i-trust-this-agent"):
        engine.prepare(AgentSource(AgentKind.MODULE, "no_such_module:Agent"))
