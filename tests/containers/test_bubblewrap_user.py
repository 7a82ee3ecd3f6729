"""Bubblewrap as an ordinary user, and as root, which drops its privileges."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.bubblewrap.engine import BubblewrapEngine
from fumehood.engines.engine import AgentKind, AgentSource, BoxSpec, Image
from tests.conformance.boxes import SOCKET, Listener
from tests.parts.overwritten import OVERWRITE, OVERWRITTEN, needs_its_processor

pytestmark = pytest.mark.bubblewrap

PATIENCE_MS = 60_000
ROOT = Path(__file__).parents[2]
ORDINARY_UID = 1234
SYSTEM_PYTHON = "/usr/bin/python3"

AS_ORDINARY_USER = """
import json, sys
from pathlib import Path
from fumehood.engines.bubblewrap.engine import BubblewrapEngine
from fumehood.engines.engine import BoxSpec, Image
engine = BubblewrapEngine()
readiness = engine.check()
assert readiness.ready, readiness.detail
image = Image("", "", ("python3", "-c", sys.argv[2]))
box = engine.start(BoxSpec(image=image, socket_dir=Path(sys.argv[1])))
ended = box.wait(60000)
output = box.close()
engine.close()
print(json.dumps([ended.code, output.stdout.decode(), output.stderr.decode()]))
"""

KILL_AS_ORDINARY_USER = """
import socket, sys
from pathlib import Path
from fumehood.engines.bubblewrap.engine import BubblewrapEngine
from fumehood.engines.engine import BoxSpec, Image
folder, code, path = sys.argv[1:]
engine = BubblewrapEngine()
with socket.socket(socket.AF_UNIX) as listening:
    listening.bind(folder + "/grpc.sock")
    listening.listen()
    listening.settimeout(60)
    image = Image("", "", ("python3", "-c", code, path))
    box = engine.start(BoxSpec(image=image, socket_dir=Path(folder)))
    agent, _ = listening.accept()
agent.settimeout(60)
print(agent.recv(100).decode())
box.kill()
box.close()
engine.close()
assert agent.recv(1) == b""
"""

LOOK = """
import json, os
status = open('/proc/self/status').read()
forks = 0
try:
    while forks < 1000:
        if os.fork() == 0:
            import time; time.sleep(60)
        forks += 1
except OSError: pass
folders = ('/', '/dev', '/usr', '/fumehood', '/tmp')
writable = [folder for folder in folders if os.access(folder, os.W_OK)]
print(json.dumps({'uid': os.getuid(), 'caps': status.split('CapEff:')[1].split()[0], 'forks': forks,
                  'socket_dir': os.listdir('/fumehood'), 'writable': writable}))
"""


@pytest.fixture
def engine() -> Iterator[BubblewrapEngine]:
    with closing(BubblewrapEngine()) as made:
        yield made


@pytest.fixture
def python(engine: BubblewrapEngine) -> Image:
    return engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))


def run_as_ordinary_user(
    socket_dir: Path, code: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code as an ordinary user, who owns the folder.

    The arguments of the code are the folder and ``arguments``.
    """
    os.chown(socket_dir, ORDINARY_UID, ORDINARY_UID)
    user = str(ORDINARY_UID)
    become = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]
    with tempfile.TemporaryDirectory() as copy:  # Only root may be able to read the checkout.
        Path(copy).chmod(0o755)
        shutil.copytree(ROOT / "runner" / "fumehood", Path(copy, "fumehood"))
        return subprocess.run(
            [*become, SYSTEM_PYTHON, "-B", "-c", code, str(socket_dir), *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            env={"PYTHONPATH": copy, "PATH": "/usr/bin:/bin"},
        )


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@needs_its_processor
def test_an_agent_that_overwrites_process_1_ends_with_its_box(socket_dir: Path) -> None:
    done = run_as_ordinary_user(socket_dir, KILL_AS_ORDINARY_USER, OVERWRITE, SOCKET)
    assert done.returncode == 0, done.stderr
    assert done.stdout.encode().strip() == OVERWRITTEN


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_an_ordinary_user_gets_the_same_box(socket_dir: Path) -> None:
    (socket_dir / "there").write_text("")
    done = run_as_ordinary_user(socket_dir, AS_ORDINARY_USER, LOOK)
    assert done.returncode == 0, done.stderr
    code, said, complained = json.loads(done.stdout)
    assert code == 0, complained
    seen = json.loads(said)
    assert seen["uid"] == 65534
    assert int(seen["caps"], 16) == 0
    assert seen["forks"] < 128
    assert (seen["socket_dir"], seen["writable"]) == (["there"], ["/tmp"])


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="about root")
def test_a_box_started_by_root_is_unprivileged_on_the_host(
    engine: BubblewrapEngine, python: Image, socket_dir: Path
) -> None:
    connect = (
        "import socket; s = socket.socket(socket.AF_UNIX); "
        "s.connect('/fumehood/grpc.sock'); s.recv(1)"
    )
    with Listener(socket_dir) as listener:
        image = replace(python, command=("python3", "-c", connect))
        box = engine.start(BoxSpec(image=image, socket_dir=socket_dir))
        with listener.accept() as connection:
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            connection.sendall(b"x")
        assert box.wait(PATIENCE_MS) is not None
        box.close()
    assert int.from_bytes(peer[4:8], sys.byteorder) in BOX_UIDS


@pytest.mark.slow
def test_user_namespaces_cannot_be_created_inside(
    engine: BubblewrapEngine, python: Image, socket_dir: Path
) -> None:
    code = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))"
    box = engine.start(
        BoxSpec(image=replace(python, command=("python3", "-c", code)), socket_dir=socket_dir)
    )
    assert box.wait(PATIENCE_MS) is not None
    assert box.close().stdout == b"-1\n"


@pytest.mark.slow
def test_other_packages_of_the_host_are_hidden(
    engine: BubblewrapEngine, python: Image, socket_dir: Path
) -> None:
    names = ("fumehood", "pytest", "docker", "pip", "fumehood_snapshots", "fumehood_agent")
    # A namespace package has no origin; the folder of the sockets, /fumehood, counts as one.
    code = (
        "from importlib.util import find_spec; "
        f"specs = [find_spec(name) for name in {names}]; "
        "print([spec.name for spec in specs if spec and spec.origin])"
    )
    box = engine.start(
        BoxSpec(image=replace(python, command=("python3", "-c", code)), socket_dir=socket_dir)
    )
    assert box.wait(PATIENCE_MS) is not None
    assert box.close().stdout == b"['fumehood_agent']\n"


@pytest.mark.slow
def test_command_lines_name_no_folder_of_the_host(
    engine: BubblewrapEngine, python: Image, socket_dir: Path
) -> None:
    code = "import glob; print([open(p).read() for p in glob.glob('/proc/[0-9]*/cmdline')])"
    box = engine.start(
        BoxSpec(image=replace(python, command=("python3", "-c", code)), socket_dir=socket_dir)
    )
    assert box.wait(PATIENCE_MS) is not None
    said = box.close().stdout.decode()
    assert "python3" in said
    for host in (str(socket_dir), str(ROOT), sys.base_prefix):
        assert host == "/usr" or host not in said


def test_a_failure_to_build_the_view_is_an_infrastructure_failure(
    engine: BubblewrapEngine, python: Image, tmp_path: Path
) -> None:
    box = engine.start(
        BoxSpec(image=replace(python, command=("true",)), socket_dir=tmp_path / "not-there")
    )
    with pytest.raises(InfraError, match="could not start the box"):
        box.wait(PATIENCE_MS)
    box.close()
