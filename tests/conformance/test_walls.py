"""What a box is from inside, on every engine that is a wall."""

from __future__ import annotations

import json
from typing import Any

from fumehood.engines.engine import BOX_UID, ENVIRONMENT_NAMES, ExitReason, Isolation, Limits
from tests.conformance.boxes import Boxes

MIB = 1024 * 1024
OFFICIAL_BASE_NAMES = {"GPG_KEY", "PYTHON_VERSION", "PYTHON_SHA256"}
"""What the official image of Python brings, where it is the base."""
HARNESS_WORDS = ("episode", "harness", "bench", "orchestrat", "runner", "seat", "fumehood")


def tell(boxes: Boxes, expression: str, imports: str = "os") -> Any:
    return json.loads(boxes.says(f"import json, {imports}; print(json.dumps({expression}))"))


def test_the_user_is_nobody(sealed: Boxes) -> None:
    assert set(tell(sealed, "[*os.getresuid(), *os.getresgid()]")) == {BOX_UID}
    assert set(tell(sealed, "os.getgroups()")) <= {BOX_UID}


def test_there_is_no_capability_and_no_way_to_one(sealed: Boxes) -> None:
    status = dict(
        line.split(":", 1)
        for line in tell(sealed, "open('/proc/self/status').read()").splitlines()
        if line
    )
    capabilities = {
        name: int(value, 16) for name, value in status.items() if name.startswith("Cap")
    }
    assert {"CapEff", "CapPrm", "CapBnd", "CapInh"} <= set(capabilities)
    assert not any(capabilities.values())
    if sealed.engine.isolation is not Isolation.SANDBOXED_KERNEL:  # gVisor does not say.
        assert status["NoNewPrivs"].strip() == "1"


def test_nothing_can_be_written_but_in_tmp(sealed: Boxes) -> None:
    try_all = """
import json, os
found = []
for folder, below, _ in os.walk('/'):
    below[:] = [] if folder == '/proc' else below
    try:
        os.close(os.open(folder + '/trial', os.O_CREAT | os.O_WRONLY))
        found.append(folder)
    except OSError:
        pass
print(json.dumps(found))
"""
    assert json.loads(sealed.says(try_all)) == ["/tmp"]


def test_a_file_cannot_grow_beyond_its_limit(sealed: Boxes) -> None:
    code = (
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); f = open('/tmp/f', 'wb')\n"
        "try: f.write(bytes(3 << 20)); f.flush(); print('grown')\nexcept OSError as e: print(e.strerror)"
    )
    ended, output = sealed.run(code, limits=Limits(file_bytes=2 * MIB))
    assert b"grown" not in output.stdout
    assert b"File too large" in output.stdout + output.stderr
    assert ended.reason is ExitReason.EXITED


def test_tmp_cannot_grow_beyond_its_limit(sealed: Boxes) -> None:
    code = (
        "import sys\ntry:\n for n in range(8): open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))\n"
        "except OSError as e: print(e.strerror)"
    )
    assert "No space left" in sealed.says(code, limits=Limits(tmp_bytes=4 * MIB))


def test_programs_cannot_be_brought_along(containers: Boxes) -> None:
    code = """
import os, shutil, subprocess, sys
shutil.copy(sys.executable, '/tmp/program')
os.chmod('/tmp/program', 0o755)
try: subprocess.run(['/tmp/program', '-c', 'pass'])
except PermissionError: print('refused')
"""
    assert containers.says(code) == "refused"


def test_the_gloves_cannot_be_changed(sealed: Boxes) -> None:
    (sealed.socket_dir / "there").write_text("before")
    (sealed.socket_dir / "there").chmod(0o666)
    sealed.socket_dir.chmod(0o777)
    code = """
import os
there = '/fumehood/there'
for change in (lambda: open(there, 'w'), lambda: os.remove(there), lambda: os.mkdir('/fumehood/new')):
    try: change(); print('changed')
    except OSError as error: print(error.strerror)
"""
    assert set(sealed.says(code).splitlines()) == {"Read-only file system"}
    assert (sealed.socket_dir / "there").read_text() == "before"


def test_there_is_no_network(sealed: Boxes) -> None:
    assert {name for _, name in tell(sealed, "socket.if_nameindex()", "socket")} <= {"lo"}
    code = """
import socket
for kind, address in ((socket.SOCK_STREAM, ('192.0.2.1', 80)), (socket.SOCK_DGRAM, ('192.0.2.1', 53)),
                      (socket.SOCK_STREAM, ('169.254.169.254', 80))):
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(3)
        try: s.connect(address); print('out')
        except TimeoutError: print('sent')
        except OSError: print('no way')
"""
    assert set(sealed.says(code).split("\n")) == {"no way"}


def test_the_environment_holds_the_documented_minimum(sealed: Boxes) -> None:
    allowed = ENVIRONMENT_NAMES | set(sealed.image.environment) | OFFICIAL_BASE_NAMES
    environment = tell(sealed, "dict(os.environ)")
    assert set(environment) <= allowed
    assert environment["HOME"] == "/tmp"


def test_nothing_inside_tells_of_the_outside(sealed: Boxes) -> None:
    look = """
import glob, os, socket
def text(path):
    try: return open(path, errors='replace').read()
    except OSError: return ''
print(socket.gethostname(), dict(os.environ), os.listdir('/'))
print(text('/proc/1/environ'), text('/proc/self/cgroup'))
print(*(text(p).replace(text('/proc/self/cmdline'), '') for p in glob.glob('/proc/[0-9]*/cmdline')))
"""
    heard = sealed.says(look).lower().replace("'fumehood'", "")
    told = [
        word
        for word in (*HARNESS_WORDS, *sealed.labels.values())
        if word in heard and len(word) > 3
    ]
    assert told == []


def test_other_processes_of_the_host_cannot_be_seen(sealed: Boxes) -> None:
    assert len(tell(sealed, "[n for n in os.listdir('/proc') if n.isdecimal()]")) < 8


def test_a_fork_bomb_meets_its_limit(sealed: Boxes) -> None:
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
    box = sealed.start(code, limits=Limits(processes=100))
    box.wait(20_000)
    printed = box.close().stdout.split()
    if sealed.engine.isolation is Isolation.SANDBOXED_KERNEL and not printed:
        return  # The threads of its kernel count too, so the whole box may end at the limit.
    assert int(printed[0]) < 100


def test_a_memory_bomb_is_told_from_a_kill(containers: Boxes) -> None:
    ended, _ = containers.run("hog = bytearray(300 << 20)", limits=Limits(memory_bytes=64 * MIB))
    reasons = {ExitReason.OUT_OF_MEMORY}
    if containers.engine.isolation is Isolation.SANDBOXED_KERNEL:
        # What takes the memory is the box's kernel, and Docker does not always hear why that ended.
        reasons.add(ExitReason.EXITED)
    assert ended.code == 137
    assert ended.reason in reasons


def test_one_process_cannot_take_more_memory_than_a_box_may(sealed: Boxes) -> None:
    ended, _ = sealed.run("hog = bytearray(300 << 20)", limits=Limits(memory_bytes=64 * MIB))
    assert ended.code != 0


def test_files_cannot_be_opened_without_end(sealed: Boxes) -> None:
    code = "import os\ntry:\n while True: os.dup(0)\nexcept OSError as e: print(e.strerror)"
    assert "Too many open files" in sealed.says(code, limits=Limits(open_files=64))
