"""The system call filter: complete, enforced in real boxes, and sufficient for language
runtimes."""

from __future__ import annotations

import ctypes
import errno
import json
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.engines.engine import AgentKind, AgentSource, BoxSpec, Engine, Limits
from fumehood.engines.registry import choose_engine
from fumehood.engines.seccomp import (
    ALLOWED,
    CONDITIONS,
    REFUSED,
    SETS_ATTRIBUTE,
    docker_profile,
    filter_program,
)

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* of linux/audit.h."""
ENGINES = [
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
PTRACE, KEYCTL, UNSHARE, USERFAULTFD, IO_URING_SETUP, CLONE3 = NUMBERS = (
    101,
    250,
    272,
    323,
    425,
    435,
)
"""On x86-64."""
PATIENCE_MS = 60_000


def _calls_known_to_libseccomp() -> Iterator[str]:
    name = ctypes.util.find_library("seccomp")
    if name is None:
        pytest.skip("no libseccomp")
    resolve = ctypes.CDLL(name).seccomp_syscall_resolve_num_arch
    resolve.restype = ctypes.c_void_p
    for architecture in ARCHITECTURES.values():
        for number in range(600):
            found = resolve(ctypes.c_uint32(architecture), number)
            if found:
                yield ctypes.string_at(found).decode()


def test_every_system_call_is_either_allowed_or_rejected() -> None:
    conditional = {condition.name for condition in CONDITIONS}
    listed = [*ALLOWED, *REFUSED, *SETS_ATTRIBUTE, *conditional]
    assert len(set(listed)) == len(listed)
    assert set(_calls_known_to_libseccomp()) - set(listed) == set()


def test_docker_receives_the_same_list() -> None:
    rules = json.loads(docker_profile())["syscalls"]
    assert rules[0] == {"names": ALLOWED, "action": "SCMP_ACT_ALLOW"}
    assert rules[1] == {"names": REFUSED, "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS}
    assert (rules[2]["names"], rules[2]["errnoRet"]) == (["socket"], errno.EPROTONOSUPPORT)
    assert (rules[3]["names"], rules[3]["errnoRet"]) == ([*SETS_ATTRIBUTE], errno.EOPNOTSUPP)
    assert [rule["names"] for rule in rules[4:]] == [[condition.name] for condition in CONDITIONS]


def test_programs_of_root_get_no_inotify_instance_and_take_users_only_on_conditions() -> None:
    allowed, refused, *conditional = json.loads(docker_profile(of_root=True))["syscalls"]
    inotify = {"inotify_init", "inotify_init1"}
    takes_user = {"setuid", "setfsuid", "setreuid", "setresuid"}
    assert set(ALLOWED) - set(allowed["names"]) == inotify | takes_user | {"fallocate"}
    (unsupported,) = [rule for rule in conditional if "fallocate" in rule["names"]]
    assert set(unsupported["names"]) == {"fallocate", *SETS_ATTRIBUTE}
    assert unsupported["errnoRet"] == errno.EOPNOTSUPP
    assert set(refused["names"]) - set(REFUSED) == inotify
    limited = [rule for rule in conditional if rule["names"][0] in takes_user]
    assert {rule["names"][0] for rule in limited} == takes_user
    assert all(rule["args"] for rule in limited)


def test_a_filter_consists_of_whole_instructions() -> None:
    program = filter_program()
    if program is None:
        pytest.skip("no libseccomp")
    assert program
    assert len(program) % 8 == 0


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with closing(choose_engine(request.param).engine) as chosen:
        yield chosen


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _run(
    engine: Engine, socket_dir: Path, *command: str, limits: Limits | None = None
) -> tuple[int, str]:
    image = replace(engine.prepare(AgentSource(AgentKind.BUILTIN, "noop")), command=command)
    box = engine.start(BoxSpec(image=image, socket_dir=socket_dir, limits=limits or Limits()))
    ended = box.wait(PATIENCE_MS)
    output = box.close()
    assert ended is not None
    return ended.code, (output.stdout + output.stderr).decode()


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of calls are those of x86-64")
def test_a_rejected_call_fails_with_enosys(engine: Engine, socket_dir: Path) -> None:
    code = (
        "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
        f"for n in {NUMBERS}: print(c.syscall(n, 0, 0, 0, 0, 0), ctypes.get_errno())"
    )
    status, said = _run(engine, socket_dir, "python3", "-c", code)
    assert status == 0, said
    assert said.split("\n")[:-1] == [f"-1 {errno.ENOSYS}"] * len(NUMBERS)


@pytest.mark.slow
def test_only_common_socket_families_are_allowed(engine: Engine, socket_dir: Path) -> None:
    code = """
import errno, socket
def opens(*what):
    try: socket.socket(*what).close(); return True
    except OSError as error: return errno.errorcode[error.errno]
usual = [opens(socket.AF_UNIX), opens(socket.AF_INET), opens(socket.AF_INET6)]
usual.append(opens(16, socket.SOCK_RAW, 0))
rare = [opens(40, 1), opens(38, 5), opens(17, 3), opens(16, socket.SOCK_RAW, 9)]
print(usual, rare)
"""
    status, said = _run(engine, socket_dir, "python3", "-c", code)
    usual, rare = said.removesuffix("]\n").split("] [")
    assert (status, usual) == (0, "[True, True, True, True")
    # Older daemons answer EPERM for calls in no list.
    *others, audit = rare.removesuffix("]").split(", ")
    assert set(others) <= {"'ENOSYS'", "'EPERM'"}
    # The oci engine has the list of docker; bubblewrap has no list of errors.
    assert audit in {"'ENOSYS'", "'EPERM'", "'EPROTONOSUPPORT'"}


@pytest.mark.slow
def test_no_program_gets_udp_or_installs_a_filter(engine: Engine, socket_dir: Path) -> None:
    code = """
import ctypes, errno, socket
c = ctypes.CDLL(None, use_errno=True)
def tried(call):
    try: call(); return 'allowed'
    except OSError as error: return errno.errorcode.get(error.errno, 'gaierror')
def prctl(option, *rest):
    if c.prctl(option, *rest): raise OSError(ctypes.get_errno(), '')
kinds = [socket.SOCK_DGRAM, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, socket.SOCK_RAW]
one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
refused = [tried(lambda: socket.socket(family, kind)) for family in (2, 10) for kind in kinds]
refused += [tried(lambda: one.setsockopt(1, option, bytes(16))) for option in (26, 50, 51, 52)]
refused += [tried(lambda: prctl(22, 1, 0)), tried(lambda: prctl(22, 2, bytes(16)))]
tcp = socket.socket(socket.AF_INET6)
allowed = [
    tried(lambda: socket.getaddrinfo('127.0.0.1', 80)),
    tried(lambda: one.setsockopt(1, socket.SO_RCVBUF, 4096)),
    tried(lambda: tcp.setsockopt(41, 26, 1)),  # IPV6_V6ONLY has the number of a refused option.
    tried(lambda: prctl(15, b'name')),
    tried(lambda: socket.if_nameindex()),
]
print(tried(lambda: socket.getaddrinfo('name.invalid', 80)), *allowed, *sorted(set(refused)))
"""
    status, said = _run(engine, socket_dir, "python3", "-c", code)
    name, *others = said.split()
    assert (status, name) == (0, "gaierror"), said
    assert others[:5] == ["allowed"] * 5, said
    # Older daemons answer EPERM for calls in no list.
    assert set(others[5:]) <= {"ENOSYS", "EPERM"}, said
    assert others[5:], said


@pytest.mark.slow
def test_no_program_gets_memory_that_no_limit_counts(engine: Engine, socket_dir: Path) -> None:
    code = """
import ctypes, errno, mmap, os, shutil, socket, struct
c = ctypes.CDLL(None, use_errno=True)
def tried(call, *what):
    try: call(*what); return 'allowed'
    except OSError as error: return errno.errorcode[error.errno]
def huge():
    c.mmap.restype = ctypes.c_void_p
    if c.mmap(0, ctypes.c_size_t(1 << 21), 3, 0x40022, -1, 0) == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), '')
parts = [(1, 6, -1), (2, 7, os.getuid()), (4, 4, -1), (16, 7, -1), (32, 4, -1)]
lists = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *part) for part in parts)
open('/tmp/a', 'w').write('x')
names = ('system.posix_acl_access', 'user.name')
unsupported = [tried(os.setxattr, '/tmp/a', name, lists) for name in names]
six, four = socket.socket(socket.AF_INET6), socket.socket()
options = [(six, 41, 6), (six, 41, 32), (six, 41, 57), (four, 6, 14), (four, 6, 31), (four, 0, 4)]
refused = [tried(one.setsockopt, *which, bytes(32)) for one, *which in options]
refused += [tried(os.memfd_create, 'x', 4), tried(huge)]
four.setsockopt(6, socket.TCP_NODELAY, 1); four.setsockopt(0, socket.IP_TOS, 8)
six.setsockopt(41, socket.IPV6_V6ONLY, 1); mmap.mmap(-1, 1 << 21); os.memfd_create('x')
shutil.copy2('/tmp/a', '/tmp/b')
print(set(unsupported), *sorted(set(refused)))
"""
    status, said = _run(engine, socket_dir, "python3", "-c", code)
    unsupported, *refused = said.split()
    # Older daemons answer EPERM for calls in no list.
    assert (status, unsupported) == (0, "{'ENOTSUP'}"), said
    assert set(refused) <= {"ENOSYS", "EPERM"}, said
    assert refused, said


@pytest.mark.slow
def test_python_works_under_the_filter(engine: Engine, socket_dir: Path) -> None:
    code = """
import asyncio, concurrent.futures, os, select, signal, subprocess, sys, tempfile, threading, time
with concurrent.futures.ThreadPoolExecutor(4) as pool: assert list(pool.map(abs, [-1, 2])) == [1, 2]
assert subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout == b'1\\n'
async def main():
    child = await asyncio.create_subprocess_exec(sys.executable, '-c', 'pass')
    return await child.wait()
assert asyncio.run(main()) == 0
assert os.waitpid(os.posix_spawn(sys.executable, [sys.executable, '-c', ''], {}), 0)[1] == 0
with tempfile.NamedTemporaryFile() as file:
    file.write(b'x'); file.flush(); os.sendfile(1, os.open(file.name, 0), 0, 1)
os.sched_getaffinity(0); os.pidfd_open(os.getpid()); os.memfd_create('x')
os.getrandom(1); time.sleep(0.01)
threading.Thread(target=signal.pthread_kill, args=(threading.main_thread().ident, 0)).start()
"""
    assert _run(engine, socket_dir, "python3", "-c", code) == (0, "x")


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    ("language", "arguments"),
    [
        ("node", ("-e", "setTimeout(() => console.log(1), 5)")),
        ("java", ("-Xmx64m", "-version")),
        ("perl", ("-e", "print fork() ? wait() && 1 : exit 0")),
    ],
)
def test_other_languages_start(socket_dir: Path, language: str, arguments: tuple[str, ...]) -> None:
    found = shutil.which(language)
    if found is None or not found.startswith("/usr/bin/"):
        pytest.skip(f"there is no {language} in /usr/bin")
    with closing(choose_engine("bubblewrap").engine) as engine:
        status, said = _run(
            engine, socket_dir, found, *arguments, limits=Limits(memory_bytes=8 << 30)
        )
    assert status == 0, said
