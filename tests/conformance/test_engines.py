"""The life of a box, on every engine."""

from __future__ import annotations

import os
import re
import signal
import socket
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
from fumehood.engines.orphans import reap
from fumehood.engines.ownership import owner_is_alive
from tests.conformance.boxes import PATIENCE_MS, SOCKET, Boxes, Listener, hangs_up
from tests.parts.overwritten import OVERWRITE, OVERWRITTEN, needs_its_processor

SLEEP = "import time; time.sleep(600)"
CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
OWNER = Path(__file__).with_name("box_owner.py")
KERNEL_ENDS_BOXES = ("bubblewrap", "oci")
"""Engines whose boxes end with the process that started them."""


@pytest.mark.slow
def test_the_facts_of_an_engine_match_its_boxes(boxes: Boxes) -> None:
    facts = boxes.engine.isolation_facts()
    isolated = boxes.engine.isolation is not Isolation.NONE
    assert facts.kernel
    assert facts.users
    assert facts.network == ("none" if isolated else "host")
    look = "print(next(l for l in open('/proc/self/status') if l.startswith('Seccomp:')))"
    ended, output = boxes.run(look)
    if boxes.engine.isolation is not Isolation.SANDBOXED_KERNEL:
        is_filtered = output.stdout.split()[1] == b"2"
        assert ended.code == 0
        assert re.fullmatch("[0-9a-f]{64}" if is_filtered else "", facts.system_call_filter)


@pytest.mark.parametrize("code", [0, 1, 7, 127])
def test_a_box_exits_with_the_status_of_its_process(boxes: Boxes, code: int) -> None:
    ended, _ = boxes.run(f"raise SystemExit({code})")
    assert (ended.code, ended.reason) == (code, ExitReason.EXITED)


def test_a_process_that_kills_itself_exits_with_128_plus_the_signal(boxes: Boxes) -> None:
    suicide = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    if boxes.engine.isolation is Isolation.NONE:
        # Without isolation the engine cannot tell who sent the signal.
        with pytest.raises(InfraError, match="killed from outside"):
            boxes.run(suicide)
        return
    ended, _ = boxes.run(suicide)
    assert (ended.code, ended.reason) == (137, ExitReason.EXITED)


def test_an_agent_that_kills_all_processes_has_exited(boxes: Boxes) -> None:
    if boxes.engine.isolation is Isolation.NONE:
        pytest.skip("the processes are those of this machine")
    ended, _ = boxes.run("import os, signal, time; os.kill(-1, signal.SIGKILL); time.sleep(1)")
    assert ended.reason is ExitReason.EXITED


@pytest.mark.slow
def test_a_box_killed_from_outside_is_an_infrastructure_failure(boxes: Boxes) -> None:
    box = boxes.start("import time; time.sleep(600)")
    if boxes.engine.name == "docker":
        subprocess.run(["docker", "kill", box.name], check=True, capture_output=True, timeout=60)
    else:
        os.kill(int(box.name.removeprefix("process ")), signal.SIGKILL)
    with pytest.raises(InfraError, match="killed from outside"):
        box.wait(20_000)


def test_standard_output_and_standard_error_are_separate(boxes: Boxes) -> None:
    _, output = boxes.run("import sys; print('to say'); print('to complain', file=sys.stderr)")
    assert (output.stdout, output.stderr) == (b"to say\n", b"to complain\n")
    assert (output.stdout_bytes, output.stderr_bytes) == (7, 12)


@pytest.mark.slow
def test_output_above_the_limit_is_counted_but_not_kept(boxes: Boxes) -> None:
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


@pytest.mark.slow
def test_a_running_box_has_no_exit_yet(boxes: Boxes) -> None:
    box = boxes.start("input_ = __import__('time').sleep(1.5)")
    assert box.wait(0) is None
    assert box.wait(100) is None
    ended = box.wait(PATIENCE_MS)
    assert ended is not None
    assert ended.code == 0


@pytest.mark.slow
def test_wait_can_be_called_again(boxes: Boxes) -> None:
    box = boxes.start("raise SystemExit(3)")
    assert box.wait(PATIENCE_MS) == box.wait(PATIENCE_MS)


@pytest.mark.slow
def test_kill_ends_processes_that_ignore_signals_and_their_children(
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


@pytest.mark.slow
@needs_its_processor
def test_an_agent_that_overwrites_process_1_ends_with_its_box(
    isolated: Boxes, listener: Listener
) -> None:
    box = isolated.start(OVERWRITE, SOCKET)
    with listener.accept() as agent:
        _require_overwritten(agent, isolated)
        box.kill()
        box.close()
        assert hangs_up(agent)


@pytest.mark.slow
@needs_its_processor
def test_a_box_without_an_owner_is_removed_also_if_it_overwrote_process_1(
    isolated: Boxes, listener: Listener
) -> None:
    owner = _start_owner(isolated, OVERWRITE)
    with listener.accept() as agent:
        _require_overwritten(agent, isolated)
        owner.kill()
        owner.wait()
        reap(isolated.engine, owner_is_alive)
        assert hangs_up(agent)


def _require_overwritten(agent: socket.socket, boxes: Boxes) -> None:
    """Check that the attack succeeded where process 1 has the user of the agent."""
    said = agent.recv(100)
    if boxes.engine.isolation is not Isolation.SANDBOXED_KERNEL:
        is_roots = boxes.engine.name == "bubblewrap" and os.geteuid() == 0
        assert (said == OVERWRITTEN) is not is_roots, said


@pytest.mark.slow
def test_kill_can_be_called_at_any_time(boxes: Boxes) -> None:
    box = boxes.start("pass")
    ended = box.wait(PATIENCE_MS)
    box.kill()
    box.kill()
    assert box.wait(PATIENCE_MS) == ended
    box.close()
    box.kill()


@pytest.mark.slow
def test_closing_a_running_box_ends_all_its_processes(boxes: Boxes, listener: Listener) -> None:
    box = boxes.start(
        f"import os, time; os.fork(); print('here', flush=True); {CONNECT} time.sleep(600)", SOCKET
    )
    with listener.accept() as parent, listener.accept() as child:
        output = box.close()
        assert hangs_up(parent)
        assert hangs_up(child)
    assert output.stdout == b"here\nhere\n"
    assert box.close() == output


@pytest.mark.slow
def test_a_box_reaches_the_socket_of_its_seat(boxes: Boxes, listener: Listener) -> None:
    box = boxes.start(f"{CONNECT} s.sendall(b'hello'); print(s.recv(5).decode())", SOCKET)
    with listener.accept() as connection:
        assert connection.recv(5) == b"hello"
        connection.sendall(b"there")
        assert box.wait(PATIENCE_MS) is not None
    assert box.close().stdout == b"there\n"


def test_mounts_appear_at_their_targets(boxes: Boxes, tmp_path: Path) -> None:
    (tmp_path / "calls.json").write_text("[1]")
    mount = Mount(tmp_path / "calls.json", "/task/calls.json")
    code = "import sys; print(open(sys.argv[1]).read())"
    _, output = boxes.run(code, "/task/calls.json", mounts=(mount,))
    assert output.stdout == b"[1]\n"


@pytest.mark.slow
def test_arguments_follow_the_command(boxes: Boxes) -> None:
    assert boxes.says("import sys; print(sys.argv[1:])", "a b", "--c") == "['a b', '--c']"


@pytest.mark.slow
def test_a_box_can_import_the_sdk(boxes: Boxes) -> None:
    imports = "import fumehood_agent, grpc; from fumehood_agent._proto.v1 import tool_pb2_grpc"
    assert boxes.says(f"{imports}; print('ready')") == "ready"


def test_a_missing_command_is_an_input_error(boxes: Boxes) -> None:
    spec = boxes.spec("pass")
    missing = replace(spec.image, command=("no-such-command",))
    with pytest.raises(InputError, match="no-such-command"):
        boxes.engine.start(replace(spec, image=missing))


@pytest.mark.slow
def test_eight_boxes_can_start_concurrently(boxes: Boxes) -> None:
    with ThreadPoolExecutor(8) as threads:
        outputs = list(
            threads.map(lambda n: boxes.says("import sys; print(sys.argv[1])", str(n)), range(8))
        )
    assert outputs == [str(n) for n in range(8)]


@pytest.mark.slow
def test_a_box_outlives_the_thread_that_started_it(boxes: Boxes) -> None:
    with ThreadPoolExecutor(1) as threads:
        box = threads.submit(
            boxes.start, "import time; time.sleep(1); print('still here')"
        ).result()
    assert box.wait(PATIENCE_MS) is not None
    assert box.close().stdout == b"still here\n"


@pytest.mark.slow
def test_only_boxes_without_an_owner_are_removed(boxes: Boxes, listener: Listener) -> None:
    owned = boxes.start(f"{CONNECT} {SLEEP}", SOCKET)
    with listener.accept():
        owner = _start_owner(boxes)
        with listener.accept() as orphan, listener.accept() as orphans_child:
            owner.kill()
            owner.wait()
            if boxes.engine.name in KERNEL_ENDS_BOXES:
                assert hangs_up(orphan)
                assert hangs_up(orphans_child)
            reap(boxes.engine, owner_is_alive)
            assert hangs_up(orphan)
            assert hangs_up(orphans_child)
        assert reap(boxes.engine, owner_is_alive) == 0
        assert owned.wait(0) is None


def _start_owner(boxes: Boxes, *code: str) -> subprocess.Popen[bytes]:
    runtime = "runsc" if boxes.engine.isolation.value == "sandboxed_kernel" else ""
    words = (boxes.engine.name, runtime, str(boxes.socket_dir), *code)
    command = [sys.executable, str(OWNER), *words]
    # It writes its records where this process looks for them.
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": ":".join(sys.path)})


@pytest.mark.slow
def test_a_module_is_found_in_the_current_folder(
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
    command = (image.command[0], "-c", "import mine; print(mine.__file__)")
    box = boxes.engine.start(
        BoxSpec(image=replace(image, command=command), socket_dir=boxes.socket_dir)
    )
    assert box.wait(PATIENCE_MS) is not None
    assert box.close().stdout == b"/agent/mine.py\n"


@pytest.mark.slow
def test_a_module_that_the_box_cannot_read_is_an_input_error(
    isolated: Boxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("class Agent: pass")
    (tmp_path / "mine.py").chmod(0o600)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="chmod"):
        isolated.engine.prepare(AgentSource(AgentKind.MODULE, "mine:Agent"))


def test_a_missing_module_is_an_input_error(engine: Engine) -> None:
    with pytest.raises(InputError, match=r"no_such_module|--i-trust-this-agent"):
        engine.prepare(AgentSource(AgentKind.MODULE, "no_such_module:Agent"))
