"""The oci engine of an ordinary user, with and without subordinate users, passes the conformance
tests of the engine of root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.oci,
    pytest.mark.image,
    pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user"),
]

ROOT = Path(__file__).parents[2]
USER = 41_234
SUBORDINATE = range(300_000, 365_536)
DOCKER = Path("/var/run/docker.sock")
INTERPRETERS = (os.path.realpath(sys.executable), "/usr/bin/python3")

IN_PRIVATE_ETC = """
mount --make-rprivate /
for name in passwd subuid subgid; do mount --bind "$0/$name" "/etc/$name"; done
exec "$@"
"""
"""Gives a command another user database and other subordinate users than this machine."""

USERS_OF_TWO_BOXES = """
import json, os, socket, struct, tempfile
from dataclasses import replace
from pathlib import Path
from fumehood.engines.engine import AgentKind, AgentSource, BoxSpec
from fumehood.engines.oci.engine import OciEngine
CONNECT = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/fumehood/s'); s.recv(1)"
engine = OciEngine()
image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
image = replace(image, command=("python3", "-c", CONNECT))
with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
    os.chmod(folder, 0o755)
    listening.bind(folder + "/s")
    os.chmod(folder + "/s", 0o666)
    listening.listen()
    listening.settimeout(60)
    boxes = [engine.start(BoxSpec(image=image, socket_dir=Path(folder))) for _ in range(2)]
    peers = [listening.accept()[0] for _ in boxes]
    credentials = [peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12) for peer in peers]
    for box in boxes:
        box.close()
engine.close()
print(json.dumps([struct.unpack("3i", credential)[1] for credential in credentials]))
"""

WORKSPACE = """
from pathlib import Path
from fumehood.engines.oci.engine import OciEngine
OciEngine().prepare_workspace(Path("."))
"""

READINESS = """
from fumehood.engines.oci.engine import OciEngine
print(OciEngine().check().detail)
"""


class User:
    """Runs Python as an ordinary user who may use Docker."""

    def __init__(self, home: Path, interpreter: str, *, has_subordinate: bool) -> None:
        etc = home / "etc"
        etc.mkdir()
        lines = f"{Path('/etc/passwd').read_text()}boxer:x:{USER}:{USER}::{home}:/bin/sh\n"
        (etc / "passwd").write_text(lines)
        parts = (SUBORDINATE[:1], SUBORDINATE[1:]) if has_subordinate else ()
        granted = "".join(f"boxer:{part.start}:{len(part)}\n" for part in parts)
        for name in ("subuid", "subgid"):
            (etc / name).write_text(granted)
        for path in (home, *home.rglob("*")):
            os.chown(path, USER, USER)
        self.home = home
        self._interpreter = interpreter
        self.has_subordinate = has_subordinate

    def python(
        self, *arguments: str, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run Python in the home folder, with ``before`` in front of its command."""
        become = ("setpriv", "--reuid", str(USER), "--regid", str(USER))
        groups = ("--groups", str(DOCKER.stat().st_gid))
        inside = ("sh", "-c", IN_PRIVATE_ETC, str(self.home / "etc"), *become, *groups)
        return subprocess.run(
            ["unshare", "--mount", *inside, *before, self._interpreter, "-B", *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.home,
            env={
                "HOME": str(self.home),
                "XDG_RUNTIME_DIR": str(self.home),
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
            },
        )


@cache
def interpreter() -> str | None:
    """Return a Python of this version that other users can execute, with this checkout."""
    # setpriv can execute what its user cannot.
    code = (
        "import os, sys, fumehood\n"
        f"assert sys.version_info[:2] == {sys.version_info[:2]} and os.access(sys.executable, 1)"
    )
    for candidate in INTERPRETERS:
        with tempfile.TemporaryDirectory() as home:
            Path(home).chmod(0o755)
            user = User(Path(home), candidate, has_subordinate=False)
            if user.python("-c", code).returncode == 0:
                return candidate
    return None


@pytest.fixture(params=[False, True], ids=["one-user", "subordinate-users"], scope="module")
def user(request: pytest.FixtureRequest) -> Iterator[User]:
    found = interpreter()
    if found is None:
        pytest.skip("other users can execute no Python of this version, or not read the checkout")
    if request.param and shutil.which("newuidmap") is None:
        pytest.skip("newuidmap is missing (Debian: apt-get install uidmap)")
    with tempfile.TemporaryDirectory() as home:
        yield User(Path(home), found, has_subordinate=request.param)
    # Tests that kill the owner of a box leave its folder to the next command of this user.
    shutil.rmtree(f"/dev/shm/fumehood-{USER}", ignore_errors=True)


@pytest.mark.parametrize(
    "file",
    [
        "conformance/test_isolation.py",
        "conformance/test_engines.py",
        "containers/test_oci_images.py",
    ],
)
def test_boxes_of_an_ordinary_user_pass_the_tests_of_boxes_of_root(file: str, user: User) -> None:
    selection = ("--all", "-m", "oci and not runc and not runsc", "-p", "no:cacheprovider")
    place = (
        "--basetemp",
        str(user.home / "tests"),
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(ROOT),
        str(ROOT / "tests" / file),
    )
    done = user.python("-m", "pytest", "-q", *selection, *place)
    assert done.returncode == 0, done.stdout[-8000:]
    assert re.search(r"^[1-9]\d* passed", done.stdout, re.MULTILINE), done.stdout


def test_each_box_has_a_subordinate_user_if_there_are_some(user: User) -> None:
    done = user.python("-c", USERS_OF_TWO_BOXES)
    assert done.returncode == 0, done.stderr
    one, other = json.loads(done.stdout)
    if user.has_subordinate:
        assert one != other
        assert {one, other} <= set(SUBORDINATE)
    else:
        assert (one, other) == (USER, USER)


def test_what_boxes_of_an_ordinary_user_lack_is_stated(user: User) -> None:
    detail = user.python("-c", READINESS).stdout
    assert "memory is limited for each process, processor time is not" in detail
    assert ("all boxes have your user" in detail) is not user.has_subordinate


def test_a_workspace_is_refused_to_an_ordinary_user_in_one_line(user: User) -> None:
    last = user.python("-c", WORKSPACE).stderr.splitlines()[-1]
    assert last.endswith(
        "the engine oci starts workspaces only for root: run fumehood as root, or use "
        "--engine docker"
    )


@pytest.mark.bubblewrap
def test_a_machine_without_user_namespaces_is_refused_with_the_remedy(user: User) -> None:
    view = ("--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--uid", str(USER))
    done = user.python("-c", READINESS, before=("bwrap", *view, "--"))
    assert "user namespaces are not permitted" in done.stdout
    assert "user.max_user_namespaces" in done.stdout
    assert len(done.stdout.splitlines()) == 1
