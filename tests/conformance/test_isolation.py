"""A box seen from inside, on every engine with isolation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.engine import BOX_UID, ENVIRONMENT_NAMES, ExitReason, Isolation, Limits
from tests.conformance.boxes import Boxes

MIB = 1024 * 1024
OFFICIAL_BASE_NAMES = {"GPG_KEY", "PYTHON_VERSION", "PYTHON_SHA256"}
"""Variables of the official Python image, if it is the base."""
HARNESS_WORDS = ("episode", "harness", "bench", "orchestrat", "runner", "seat", "fumehood")


def evaluate(boxes: Boxes, expression: str, imports: str = "os") -> Any:
    return json.loads(boxes.says(f"import json, {imports}; print(json.dumps({expression}))"))


def test_the_user_is_unprivileged(isolated: Boxes) -> None:
    users, groups = evaluate(isolated, "[[*os.getresuid(), *os.getresgid()], os.getgroups()]")
    [user] = set(users)
    assert user == BOX_UID or user in BOX_UIDS
    assert set(groups) <= {user, BOX_UID}


def test_a_box_has_no_capabilities_and_cannot_gain_any(isolated: Boxes) -> None:
    status = dict(
        line.split(":", 1)
        for line in evaluate(isolated, "open('/proc/self/status').read()").splitlines()
        if line
    )
    capabilities = {
        name: int(value, 16) for name, value in status.items() if name.startswith("Cap")
    }
    assert {"CapEff", "CapPrm", "CapBnd", "CapInh"} <= set(capabilities)
    assert not any(capabilities.values())
    if isolated.engine.isolation is not Isolation.SANDBOXED_KERNEL:  # gVisor does not report it.
        assert status["NoNewPrivs"].strip() == "1"


@pytest.mark.slow
def test_only_tmp_is_writable(isolated: Boxes) -> None:
    try_all = """
import json, os
writable = []
with open('/proc/self/mountinfo') as mounts:
    mounted = {mount.split()[4] for mount in mounts}
for folder, below, _ in os.walk('/'):
    # Files of processes belong to the box; file systems can be mounted on the other folders.
    if folder == '/proc':
        below[:] = [name for name in below if not (name.isdigit() or 'self' in name)]
    if folder.startswith('/proc/') and folder not in mounted:
        continue
    try:
        os.close(os.open(folder + '/trial', os.O_CREAT | os.O_WRONLY))
        writable.append(folder)
    except OSError:
        pass
print(json.dumps(writable))
"""
    assert json.loads(isolated.says(try_all)) == ["/tmp"]


def test_no_file_of_the_kernel_accepts_requests_from_all_users(isolated: Boxes) -> None:
    """Requests such as triggers for the load of the machine cost work that no limit counts."""
    try_all = """
import json, os, stat
opened = []
for folder, below, names in os.walk('/proc'):
    # The kernel also checks the rights of files in /proc/sys when they are written.
    below[:] = [name for name in below if not (name.isdigit() or 'self' in name or name == 'sys')]
    for path in (os.path.join(folder, name) for name in names):
        try:
            file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            continue
        # The null device hides a file of the kernel.
        opened += [] if stat.S_ISCHR(os.fstat(file).st_mode) else [path]
print(json.dumps(opened))
"""
    assert json.loads(isolated.says(try_all)) == []


def test_a_file_cannot_grow_beyond_its_limit(isolated: Boxes) -> None:
    code = (
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); f = open('/tmp/f', 'wb')\n"
        "try: f.write(bytes(3 << 20)); f.flush(); print('grown')\n"
        "except OSError as e: print(e.strerror)"
    )
    ended, output = isolated.run(code, limits=Limits(file_bytes=2 * MIB))
    assert b"grown" not in output.stdout
    assert b"File too large" in output.stdout + output.stderr
    assert ended.reason is ExitReason.EXITED


@pytest.mark.slow
def test_a_box_that_fills_queues_of_the_kernel_ends_as_at_its_limit_of_memory(
    isolated: Boxes,
) -> None:
    if isolated.engine.isolation is Isolation.SANDBOXED_KERNEL:
        pytest.skip("its queues are memory of the box")
    code = """
import socket, struct, time
kept = []
for _ in range(100):
    one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**30)
    kept.append(one)
    for _ in range(400):
        try:
            one.send(struct.pack("=IHHIIBBHiII", 32, 18, 1, 0, 0, 0, 0, 0, 1, 0, 0) * 100)
        except OSError:
            break
time.sleep(60)
"""
    ended, _ = isolated.run(code)
    assert ended.reason is ExitReason.OUT_OF_MEMORY


@pytest.mark.slow
def test_tmp_cannot_grow_beyond_its_limit(isolated: Boxes) -> None:
    code = (
        "import sys\ntry:\n for n in range(8): open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))\n"
        "except OSError as e: print(e.strerror)"
    )
    assert "No space left" in isolated.says(code, limits=Limits(tmp_bytes=4 * MIB))


@pytest.mark.slow
def test_programs_in_tmp_cannot_be_executed(containers: Boxes) -> None:
    code = """
import os, shutil, subprocess, sys
shutil.copy(sys.executable, '/tmp/program')
os.chmod('/tmp/program', 0o755)
try: subprocess.run(['/tmp/program', '-c', 'pass'])
except PermissionError: print('refused')
"""
    assert containers.says(code) == "refused"


@pytest.mark.slow
def test_the_socket_folder_is_read_only(isolated: Boxes) -> None:
    (isolated.socket_dir / "there").write_text("before")
    (isolated.socket_dir / "there").chmod(0o666)
    isolated.socket_dir.chmod(0o777)
    code = """
import os
there = '/fumehood/there'
new = '/fumehood/new'
for change in (lambda: open(there, 'w'), lambda: os.remove(there), lambda: os.mkdir(new)):
    try: change(); print('changed')
    except OSError as error: print(error.strerror)
"""
    assert set(isolated.says(code).splitlines()) == {"Read-only file system"}
    assert (isolated.socket_dir / "there").read_text() == "before"


def test_there_is_no_network(isolated: Boxes) -> None:
    assert {name for _, name in evaluate(isolated, "socket.if_nameindex()", "socket")} <= {"lo"}
    code = """
import socket
for kind, address in ((socket.SOCK_STREAM, ('192.0.2.1', 80)),
                      (socket.SOCK_DGRAM, ('192.0.2.1', 53)),
                      (socket.SOCK_STREAM, ('169.254.169.254', 80))):
    try:
        with socket.socket(socket.AF_INET, kind) as s:
            s.settimeout(3)
            s.connect(address)
            print('out')
    except TimeoutError: print('sent')
    except OSError: print('no way')
"""
    assert set(isolated.says(code).split("\n")) == {"no way"}


@pytest.mark.slow
def test_the_environment_holds_the_documented_minimum(isolated: Boxes) -> None:
    allowed = ENVIRONMENT_NAMES | set(isolated.image.environment) | OFFICIAL_BASE_NAMES
    environment = evaluate(isolated, "dict(os.environ)")
    assert set(environment) <= allowed
    assert environment["HOME"] == "/tmp"


def test_a_box_cannot_see_names_of_the_harness(isolated: Boxes) -> None:
    look = """
import glob, os, socket
def text(path):
    try: return open(path, errors='replace').read()
    except OSError: return ''
print(socket.gethostname(), dict(os.environ), os.listdir('/'))
print(text('/proc/1/environ'), text('/proc/self/cgroup'))
print(*(text(p).replace(text('/proc/self/cmdline'), '') for p in glob.glob('/proc/[0-9]*/cmdline')))
"""
    output = isolated.says(look).lower().replace("'fumehood'", "")
    names = [
        word
        for word in (*HARNESS_WORDS, *isolated.labels.values())
        if word in output and len(word) > 3
    ]
    assert names == []


@pytest.mark.slow
def test_the_documentation_of_python_is_not_in_a_box(isolated: Boxes) -> None:
    # It contains the answers of the benchmark python-docs.
    assert evaluate(isolated, "glob.glob('/usr/share/doc/*/html')", imports="glob") == []


def test_other_processes_of_the_host_cannot_be_seen(isolated: Boxes) -> None:
    assert len(evaluate(isolated, "[n for n in os.listdir('/proc') if n.isdecimal()]")) < 8


@pytest.mark.slow
def test_a_fork_bomb_stops_at_its_limit(isolated: Boxes) -> None:
    code = """
import os, time
n = 0
try:
    while n < 1000:
        if os.fork() == 0: time.sleep(60)
        n += 1
except OSError: pass
print(n, flush=True)
os.kill(0, 9)
"""
    box = isolated.start(code, limits=Limits(processes=100))
    box.wait(20_000)
    printed = box.close().stdout.split()
    if isolated.engine.isolation is Isolation.SANDBOXED_KERNEL and not printed:
        return  # The threads of gVisor count too, so the whole box may end at the limit.
    assert int(printed[0]) < 100


def test_a_memory_bomb_is_reported_as_out_of_memory(containers: Boxes) -> None:
    ended, _ = containers.run("hog = bytearray(300 << 20)", limits=Limits(memory_bytes=64 * MIB))
    reasons = {ExitReason.OUT_OF_MEMORY}
    if containers.engine.isolation is Isolation.SANDBOXED_KERNEL:
        # gVisor takes the memory, and Docker does not always learn why it ended.
        reasons.add(ExitReason.EXITED)
    assert ended.code == 137
    assert ended.reason in reasons


def test_one_process_cannot_exceed_the_memory_limit(isolated: Boxes) -> None:
    ended, _ = isolated.run("hog = bytearray(300 << 20)", limits=Limits(memory_bytes=64 * MIB))
    assert ended.code != 0


@pytest.mark.slow
def test_the_number_of_open_files_is_limited(isolated: Boxes) -> None:
    code = "import os\ntry:\n while True: os.dup(0)\nexcept OSError as e: print(e.strerror)"
    assert "Too many open files" in isolated.says(code, limits=Limits(open_files=64))
