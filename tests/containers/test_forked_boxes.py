"""A forked box of bubblewrap equals one whose Python is started anew."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError
from fumehood.engines.bubblewrap.cgroups import HELPERS, BoxGroup, hierarchies
from fumehood.engines.bubblewrap.engine import BubblewrapEngine
from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    BoxOutput,
    BoxSpec,
    EngineOptions,
    Exit,
    Limits,
)
from tests.parts.listening import wait_until

pytestmark = [
    pytest.mark.bubblewrap,
    pytest.mark.skipif(os.geteuid() != 0, reason="only boxes of root are forked"),
]

PATIENCE_MS = 60_000
SURROUNDINGS = """
import json, os, resource, signal, sys, threading
# With the first thread, the C library handles one more signal, in forked boxes before.
thread = threading.Thread(target=int)
thread.start()
thread.join()
def mounts():
    for line in open('/proc/self/mountinfo'):
        before, _, after = line.partition(' - ')
        kind, _, options = after.split(' ', 2)
        if kind == 'overlay': options = ''
        yield before.split()[4], before.split()[5], kind, options.strip().replace(',mode=755', '')
def fields():
    for line in open('/proc/self/status'):
        name, _, value = line.partition(':')
        if name.startswith(('Cap', 'Sig', 'Seccomp', 'NoNew', 'Uid', 'Gid', 'Groups', 'Umask')):
            yield name, value.split()
folders = ['/', '/dev', '/proc', '/etc', '/opt', '/tmp', '/fumehood', '/opt/packages']
print(json.dumps([
    sys.argv, sys.orig_argv[:2], sys.path, sys.executable, sys.prefix, str(sys.flags), os.getcwd(),
    sorted(os.environ.items()), sorted(os.listdir('/proc/self/fd')), sorted(mounts()),
    dict(fields()), open('/proc/self/limits').read(), open('/proc/self/uid_map').read().split(),
    open('/proc/self/gid_map').read().split(), open('/proc/self/cgroup').read().splitlines(),
    [(folder, os.stat(folder).st_mode, os.stat(folder).st_uid, sorted(os.listdir(folder)))
     for folder in folders if folder != '/proc'],
    open('/proc/net/dev').read().split()[17:], os.uname().nodename,
    open('/proc/sys/user/max_user_namespaces').read(), os.getsid(0) != 0, os.isatty(0),
    [os.access(f'/proc/{name}', os.W_OK) for name in ('sys', 'irq', 'bus', 'sysrq-trigger')],
]))
"""
WAIT = """
import socket
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect('/fumehood/grpc.sock')
    connection.recv(1)
"""
MEMORY = """
import re
def pages():
    with open('/proc/self/mem', 'rb', 0) as memory:
        for line in open('/proc/self/maps'):
            places, rights, *_ = line.split()
            start, end = (int(place, 16) for place in places.split('-'))
            if 'r' in rights and '[v' not in line:
                memory.seek(start)
                try: yield memory.read(end - start)
                except OSError: pass
print(sum(len(re.findall(b'[s]ecret-of-another', page)) for page in pages()))
"""


@pytest.fixture(scope="module", autouse=True)
def default_signals() -> Iterator[None]:
    """A shell starts commands in the background with SIGINT and SIGQUIT ignored, and a new process
    inherits that."""
    signals = (signal.SIGINT, signal.SIGQUIT)
    earlier = [signal.getsignal(number) for number in signals]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    yield
    for number, handler in zip(signals, earlier, strict=True):
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def forking() -> Iterator[BubblewrapEngine]:
    with closing(BubblewrapEngine()) as engine:
        assert engine.isolation_facts().starts == "forked", engine.check().detail
        yield engine


@pytest.fixture(scope="module")
def starting() -> Iterator[BubblewrapEngine]:
    with closing(BubblewrapEngine(EngineOptions(forked_starts=False))) as engine:
        assert engine.isolation_facts().starts == "new"
        yield engine


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _run(
    engine: BubblewrapEngine, folder: Path, code: str, *arguments: str, limits: Limits | None = None
) -> tuple[Exit, BoxOutput]:
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    box = engine.start(
        BoxSpec(
            image=replace(image, command=("python3", "-c", code)),
            arguments=arguments,
            socket_dir=folder,
            limits=limits or Limits(),
        )
    )
    ended = box.wait(PATIENCE_MS)
    output = box.close()
    assert ended is not None
    return ended, output


def _says(engine: BubblewrapEngine, folder: Path, code: str, *arguments: str) -> str:
    ended, output = _run(engine, folder, code, *arguments)
    assert ended.code == 0, output.stderr.decode()
    return output.stdout.decode()


@pytest.mark.slow
def test_an_agent_finds_the_same_surroundings_both_ways(
    forking: BubblewrapEngine, starting: BubblewrapEngine, socket_dir: Path
) -> None:
    forked = json.loads(_says(forking, socket_dir, SURROUNDINGS, "one", "two"))
    started = json.loads(_says(starting, socket_dir, SURROUNDINGS, "one", "two"))
    assert forked == started


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("raise SystemExit('no')", 1, "no"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, ""),
        ("import atexit; atexit.register(print, 'the end')", 0, ""),
        ("import threading, time; threading.Timer(0.1, print, ['late']).start()", 0, ""),
        ("import sys; sys.stdout.write('unfinished'); sys.exit(256 + 3)", 3, ""),
        ("import sys; sys.stdout.close(); sys.stderr.close()", 0, ""),
    ],
)
def test_an_agent_ends_the_same_both_ways(
    forking: BubblewrapEngine,
    starting: BubblewrapEngine,
    socket_dir: Path,
    code: str,
    status: int,
    error: str,
) -> None:
    forked, its_output = _run(forking, socket_dir, code)
    started, other_output = _run(starting, socket_dir, code)
    assert forked == started
    assert forked.code == status
    assert its_output.stdout == other_output.stdout
    assert error in its_output.stderr.decode()


def test_an_agent_finds_no_code_of_the_runner(forking: BubblewrapEngine, socket_dir: Path) -> None:
    code = "import sys; print([name for name in sys.modules if name.startswith('fumehood.')])"
    assert _says(forking, socket_dir, code) == "[]\n"
    assert _says(forking, socket_dir, "import __main__; print(vars(__main__)['__name__'])") == (
        "__main__\n"
    )


def test_an_agent_cannot_open_the_program_that_boxes_share(
    forking: BubblewrapEngine, socket_dir: Path
) -> None:
    ended, output = _run(forking, socket_dir, "open('/proc/self/exe', 'rb')")
    assert ended.code == 1
    assert b"PermissionError" in output.stderr


@pytest.mark.slow
def test_the_memory_of_a_box_holds_nothing_of_another_one(
    forking: BubblewrapEngine, socket_dir: Path
) -> None:
    for _ in range(3):
        _says(forking, socket_dir, "pass", "secret-of-another", "x" * 1000)
    assert _says(forking, socket_dir, MEMORY) == "0\n"


@pytest.mark.slow
def test_random_numbers_of_boxes_differ(forking: BubblewrapEngine, socket_dir: Path) -> None:
    code = "import random, ssl, uuid; print(random.random(), ssl.RAND_bytes(8), uuid.uuid1().hex)"
    numbers = [_says(forking, socket_dir, code).split() for _ in range(2)]
    assert not set(numbers[0]) & set(numbers[1])


@pytest.mark.slow
def test_a_box_leaves_no_open_file(forking: BubblewrapEngine, socket_dir: Path) -> None:
    assert _says(forking, socket_dir, "print(1)") == "1\n"
    files = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        _says(forking, socket_dir, "print(1)")
    assert wait_until(lambda: len(os.listdir("/proc/self/fd")) <= files)


@pytest.mark.slow
def test_a_prepared_process_that_was_killed_is_replaced(
    forking: BubblewrapEngine, socket_dir: Path
) -> None:
    assert _says(forking, socket_dir, "print(1)") == "1\n"
    for process in _prepared_processes():
        os.kill(process, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < deadline:
        try:
            assert _says(forking, socket_dir, "print(2)") == "2\n"
            return
        except InfraError:
            continue  # The end of the killed one has not arrived.
    pytest.fail("no box can be forked any more")


@pytest.mark.slow
def test_a_failed_fork_does_not_prevent_later_ones(
    forking: BubblewrapEngine, socket_dir: Path
) -> None:
    mounted = hierarchies()
    if mounted is None:
        pytest.skip("no control groups can be made here")
    with _waiting_box(forking, socket_dir) as process:
        prepared = int(_field(process, "PPid"))
    group = BoxGroup(mounted, os.getpid())
    # No process fits beside the prepared one.
    group.make(Limits(processes=1 - HELPERS))
    try:
        group.add(prepared)
        with pytest.raises(InfraError, match="cannot fork a box"):
            _says(forking, socket_dir, "print(1)")
        for top in set(mounted.tops.values()):
            (top / "cgroup.procs").write_text(str(prepared), "ascii")
        assert _says(forking, socket_dir, "print(2)") == "2\n"
    finally:
        for top in set(mounted.tops.values()):
            (top / "cgroup.procs").write_text(str(prepared), "ascii")
        group.remove()


def test_the_first_process_of_a_box_keeps_no_way_to_the_prepared_one(
    forking: BubblewrapEngine, socket_dir: Path
) -> None:
    with _waiting_box(forking, socket_dir) as process:
        handles = [os.readlink(handle) for handle in Path(f"/proc/{process}/fd").iterdir()]
    assert [handle for handle in handles if not handle.startswith("pipe:")] == []


@contextmanager
def _waiting_box(engine: BubblewrapEngine, folder: Path) -> Iterator[int]:
    """Start a box that waits, and return its first process when the agent has started."""
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(folder / "grpc.sock"))
        (folder / "grpc.sock").chmod(0o666)
        listener.listen()
        listener.settimeout(PATIENCE_MS / 1000)
        box = engine.start(
            BoxSpec(image=replace(image, command=("python3", "-c", WAIT)), socket_dir=folder)
        )
        try:
            connection, _ = listener.accept()
            process = box.host_pid()
            assert process is not None
            with connection:
                yield process
        finally:
            box.close()
            (folder / "grpc.sock").unlink()


def _field(process: int, name: str) -> str:
    status = Path(f"/proc/{process}/status").read_text("utf-8")
    return dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)[name]


def _prepared_processes() -> list[int]:
    """Return the processes that bwrap started as prepared ones for this process."""
    own = f"PPid:\t{os.getpid()}\n"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended meanwhile.
            name = (folder / "cmdline").read_bytes()
            if b"fumehood.engines.bubblewrap.prepared" in name:
                found += [int(folder.name)] * (own in (folder / "status").read_text("utf-8"))
    return found


def test_a_box_that_cannot_be_built_is_a_failure_of_the_infrastructure(
    forking: BubblewrapEngine, socket_dir: Path
) -> None:
    with pytest.raises(InfraError, match="cannot start the box"):
        _run(forking, socket_dir, "pass", limits=Limits(tmp_bytes=-1))
