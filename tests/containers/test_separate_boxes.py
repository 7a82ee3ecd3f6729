"""Two boxes at the same time share no inode, no quota and no list of locks; each one's own locks
work."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.engines.bubblewrap.engine import BubblewrapEngine
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import AgentKind, AgentSource, Box, BoxSpec, Engine, Image, Limits
from fumehood.engines.images.debian_packages import PackageImage, build_of_packages
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import choose_engine

pytestmark = pytest.mark.slow

PATIENCE_MS = 120_000
ENGINES = [
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
    pytest.param("oci", marks=[pytest.mark.oci, pytest.mark.image]),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
root_for_bubblewrap = "an ordinary user's bubblewrap boxes share the files of /usr and one user"

FILES = """
import fcntl, os, stat, struct, sys, time
def shown():
    for top, folders, names in os.walk("/", onerror=lambda error: None):
        skipped = {"/": ("proc", "sys", "tmp"), "/usr": ("share", "include", "src", "local")}
        folders[:] = [name for name in folders if name not in skipped.get(top, ())]
        yield from (os.path.join(top, name) for name in [*folders, *names][:12])
def opened():
    yield "an event", os.eventfd(0)
    for name in ("fd/0", "ns/time", "ns/user"):
        path = "/proc/self/" + name
        yield path, os.open(path, os.O_RDONLY)
    for path in shown():
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISDIR(mode):
                yield path, os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError: pass
def lock(kind): return struct.pack("hhqqi4x", kind, 0, 4242, 1, 0)
"""
LOCK_EVERYTHING = (
    FILES
    + """
kept = []
for path, file in opened():
    try:
        fcntl.fcntl(file, fcntl.F_SETLK, lock(fcntl.F_RDLCK)); kept.append(file)
    except OSError: os.close(file)
    if len(kept) == 900: break
print(len(kept), flush=True)
open("/fumehood/ready")
time.sleep(600)
"""
)
READ_LOCKS = (
    FILES
    + """
found, asked = [], 0
for path, file in opened():
    try:
        answer = fcntl.fcntl(file, fcntl.F_GETLK, lock(fcntl.F_WRLCK)); asked += 1
        kind, _, start, _, _ = struct.unpack("hhqqi4x", answer)
        if kind != fcntl.F_UNLCK and start == 4242: found.append(path)
    except OSError: pass
    os.close(file)
    if asked == 900: break
print(asked, found)
"""
)
HOLD_A_LOCK = """
import fcntl, os, socket, struct, time
file = os.open("/tmp/x", os.O_CREAT | os.O_RDWR)
fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0x5EC2E7, 1, 0))  # F_OFD_SETLK
"""
TAKE_QUOTAS = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
watches = 0
while libc.inotify_init() >= 0: watches += 1
timer, timers = ctypes.c_void_p(), 0
while libc.timer_create(1, None, ctypes.byref(timer)) == 0: timers += 1
print([watches, timers], flush=True)
"""
OWN_LOCKS = """
set -e
cd /tmp
sqlite3 a.db 'create table t (x); begin immediate; insert into t values (1); commit;'
test "$(sqlite3 a.db 'pragma journal_mode=wal; insert into t values (2); select count(*) from t')" \
  = "$(printf 'wal\\n2')"
git init -q repo && cd repo
git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first
test "$(git log --format=%s)" = first
mkdir /tmp/package && cd /tmp/package
echo '{"name": "left", "version": "1.0.0"}' > package.json
mkdir /tmp/app && cd /tmp/app
echo '{"name": "app", "version": "1.0.0"}' > package.json
npm install --offline --no-audit --no-fund --loglevel=error ../package >/dev/null
test -e node_modules/left/package.json
python3 - <<'PY'
import fcntl, subprocess, sys
file = open("/tmp/lock", "w"); fcntl.flock(file, fcntl.LOCK_EX)
other = "import fcntl; fcntl.flock(open('/tmp/lock'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
assert subprocess.run([sys.executable, "-c", other], stderr=subprocess.DEVNULL).returncode == 1
PY
echo done
"""


class Pair:
    """Boxes of one engine with separate socket folders."""

    def __init__(self, engine: Engine, stack: ExitStack) -> None:
        self.engine = engine
        self._stack = stack
        self._image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))

    def start(self, code: str, *, image: Image | None = None, limits: Limits | None = None) -> Box:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        os.mkfifo(folder / "ready")
        (folder / "ready").chmod(0o644)
        self.ready = folder / "ready"
        shown = image or replace(self._image, command=("python3", "-c", code))
        spec = BoxSpec(
            image=shown, socket_dir=folder, labels=owner_labels("r"), limits=limits or Limits()
        )
        box = self.engine.start(spec)
        self._stack.callback(box.close)
        return box

    def says(self, code: str, *, image: Image | None = None, limits: Limits | None = None) -> str:
        box = self.start(code, image=image, limits=limits)
        ended = box.wait(PATIENCE_MS)
        output = box.close()
        assert ended is not None
        assert ended.code == 0, output.stderr.decode()
        return output.stdout.decode().strip()

    def while_running(self, code: str) -> None:
        """Start a box and wait until it opens its file ``ready``."""
        self.start(code)
        os.close(os.open(self.ready, os.O_WRONLY))


@pytest.fixture(params=ENGINES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    if request.param == "bubblewrap" and os.geteuid() != 0:
        pytest.skip(root_for_bubblewrap)
    with closing(choose_engine(request.param).engine) as engine, ExitStack() as stack:
        yield Pair(engine, stack)


def test_no_lock_of_one_box_is_visible_in_another(pair: Pair) -> None:
    pair.while_running(LOCK_EVERYTHING)
    asked, _, found = pair.says(READ_LOCKS).partition(" ")
    assert int(asked) > 100
    assert found == "[]"


def test_the_memory_of_sockets_of_a_box_is_limited(pair: Pair) -> None:
    """Version 1 of control groups does not count it as memory of the box."""
    box = pair.start("import time; time.sleep(600)", limits=Limits(memory_bytes=64 << 20))
    groups = Path(f"/proc/{box.host_pid()}/cgroup").read_text().splitlines()
    group = next((line.split(":")[2] for line in groups if ":memory:" in line), None)
    if group is None or os.geteuid() != 0:
        pytest.skip("needs root and version 1 of control groups")
    limit = Path(f"/sys/fs/cgroup/memory{group}/memory.kmem.tcp.limit_in_bytes")
    assert int(limit.read_text()) == 8 << 20
    box.close()
    assert not limit.exists()


def test_boxes_with_shared_inodes_see_each_others_locks() -> None:
    """The control, without the overlays."""
    if os.geteuid() != 0 or shutil.which("bwrap") is None:
        pytest.skip("needs root and bubblewrap")
    with closing(BubblewrapEngine()) as engine, ExitStack() as stack:
        engine._shares_inodes = True
        pair = Pair(engine, stack)
        pair.while_running(LOCK_EVERYTHING)
        assert "/usr/bin" in pair.says(READ_LOCKS)


def test_locks_of_other_boxes_are_in_no_list(pair: Pair) -> None:
    pair.while_running(f"{HOLD_A_LOCK}\nopen('/fumehood/ready'); time.sleep(600)")
    assert str(0x5EC2E7) in Path("/proc/locks").read_text(), "the control: the host sees it"
    look = "print(open('/proc/locks').read() if os.access('/proc/locks', os.R_OK) else '')"
    assert str(0x5EC2E7) not in pair.says(f"import os; {look}")


def test_one_box_cannot_take_the_quotas_of_another(pair: Pair) -> None:
    pair.while_running(f"{TAKE_QUOTAS}\nopen('/fumehood/ready'); import time; time.sleep(600)")
    assert json.loads(pair.says(TAKE_QUOTAS)) == json.loads(pair.says(TAKE_QUOTAS))
    assert min(json.loads(pair.says(TAKE_QUOTAS))) > 10


def test_an_agent_opens_no_terminal_whose_work_the_kernel_does_outside_the_limits_of_its_box(
    pair: Pair,
) -> None:
    opened = """
import os
for path in ("/dev/ptmx", "/dev/pts/ptmx"):
    try: print("opened", os.open(path, os.O_RDWR | os.O_NOCTTY))
    except FileNotFoundError: print("none")
print(os.listdir("/dev/pts"))
"""
    assert pair.says(opened) == "none\nnone\n[]"


@pytest.mark.bubblewrap
def test_programs_lock_their_own_files_in_bubblewrap() -> None:
    missing = [name for name in ("sqlite3", "git", "npm") if not os.path.exists(f"/usr/bin/{name}")]
    if missing:
        pytest.skip(f"not in /usr/bin: {', '.join(missing)}")
    with closing(BubblewrapEngine()) as engine, ExitStack() as stack:
        image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
        shell = replace(image, command=("sh", "-c", OWN_LOCKS))
        assert _says_in_node_sized_box(Pair(engine, stack), shell) == "done"


@pytest.mark.slow
@pytest.mark.docker
def test_programs_lock_their_own_files_in_docker() -> None:
    if shutil.which("mmdebstrap") is None:
        pytest.skip("needs mmdebstrap")
    tools = PackageImage(
        repository="fumehood/tested-tools",
        packages=("git", "sqlite3", "npm", "python3", "dash", "coreutils"),
        kept=("bin/", "usr/", "lib/", "lib64/", "etc/alternatives/"),
    )
    with closing(Daemon()) as daemon:
        if daemon.image(tools.reference) is None:
            build_of_packages(tools, daemon)
    with closing(DockerEngine()) as engine, ExitStack() as stack:
        image = Image(tools.reference, "", ("sh", "-c", OWN_LOCKS), environment={"HOME": "/tmp"})
        assert _says_in_node_sized_box(Pair(engine, stack), image) == "done"


def _says_in_node_sized_box(pair: Pair, image: Image) -> str:
    # Node reserves more address space than it uses.
    return pair.says("", image=image, limits=Limits(memory_bytes=4 << 30, processes=256))
