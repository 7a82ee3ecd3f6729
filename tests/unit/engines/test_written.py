"""What a container wrote on the disk of the host is measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError
from fumehood.engines.docker import written
from fumehood.engines.docker.written import (
    HIDDEN_BYTES_MAX,
    DiskMeter,
    Unsettled,
    deleted_bytes,
    require_short_list,
    used_bytes,
)
from fumehood.engines.engine import INODE_BYTES, TooLarge
from fumehood.engines.oci.workspace_files import differences
from tests.parts.listening import wait_until

MIB = 1 << 20
pytestmark = pytest.mark.skipif(shutil.which("find") is None, reason="find is not installed")


@pytest.fixture(autouse=True)
def _whole_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """These programs are in no container, so all those of the machine are beside them."""
    monkeypatch.setattr(written, "HELD_MAX", 10_000_000)


def test_empty_files_count(tmp_path: Path) -> None:
    before = used_bytes(tmp_path)
    for number in range(100):
        (tmp_path / str(number)).touch()
    assert used_bytes(tmp_path) - before >= 100 * INODE_BYTES


def test_files_below_long_paths_count(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "for _ in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
        "open('file', 'wb').write(bytes(1 << 20))"
    )
    command = [sys.executable, "-c", program]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert used_bytes(tmp_path) >= MIB


def test_a_measurement_ends_beyond_the_limit_and_counts_a_file_with_several_names_once(
    tmp_path: Path,
) -> None:
    for number in range(100):
        (tmp_path / str(number)).write_bytes(bytes(8192))
    whole = used_bytes(tmp_path)
    assert whole == used_bytes(tmp_path, whole)
    assert 50_000 < used_bytes(tmp_path, 50_000) < 80_000
    for number in range(100):
        (tmp_path / f"{number} again").hardlink_to(tmp_path / str(number))
    assert used_bytes(tmp_path) - whole < 100 * INODE_BYTES
    with pytest.raises(InfraError):
        used_bytes(tmp_path / "missing")


class Disk:
    """A disk of 100 GB and a box that hides files from a measurement, unless it is paused."""

    def __init__(self) -> None:
        self.shown = self.hidden = self.pauses = 0
        self.moves = self.is_paused = False

    def written(self) -> int:
        if self.moves and not self.is_paused:
            raise Unsettled("a folder moved")
        return self.shown + (self.hidden if self.is_paused else 0)

    def free(self) -> int:
        return 100_000 * MIB - self.shown - self.hidden

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.pauses, self.is_paused = self.pauses + 1, True
        yield
        self.is_paused = False


def measured(disk: Disk, meter: DiskMeter) -> int:
    return meter.measure(disk.written, disk.free)


def test_a_box_is_paused_once_while_it_hides_nothing() -> None:
    disk = Disk()
    meter = DiskMeter(disk.paused)
    for disk.shown in (0, 10 * MIB, 5000 * MIB, 300 * MIB):
        assert measured(disk, meter) == disk.shown
    assert disk.pauses == 1


@pytest.mark.parametrize("shown", [0, 500 * MIB])
def test_files_that_a_box_hides_are_found_by_the_free_space(shown: int) -> None:
    disk = Disk()
    meter = DiskMeter(disk.paused)
    measured(disk, meter)
    disk.shown, disk.hidden = shown, HIDDEN_BYTES_MAX
    assert measured(disk, meter) == shown
    disk.hidden += 1
    assert measured(disk, meter) == shown + disk.hidden
    assert disk.pauses == 2


def test_a_box_whose_folders_move_is_paused() -> None:
    disk = Disk()
    meter = DiskMeter(disk.paused)
    measured(disk, meter)
    disk.moves, disk.hidden = True, MIB
    assert measured(disk, meter) == MIB
    assert disk.pauses == 2


def test_deleted_files_that_are_open_count_once(tmp_path: Path) -> None:
    if os.stat(tmp_path).st_dev != os.stat("/").st_dev:
        pytest.skip("the temporary folder is on another file system than /")
    before = deleted_bytes(os.getpid())
    with (tmp_path / "file").open("wb") as file, os.fdopen(os.dup(file.fileno()), "wb"):
        file.write(bytes(8 * MIB))
        file.flush()
        os.fsync(file.fileno())
        (tmp_path / "file").unlink()
        assert 8 * MIB <= deleted_bytes(os.getpid()) - before < 16 * MIB
    assert deleted_bytes(os.getpid()) - before < 8 * MIB


HIDES_A_FILE = """
import ctypes, mmap, os, sys, threading
how, path = sys.argv[1:]
def hold(octets=8 << 20):
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(octets)); os.fsync(file); os.unlink(path)
    return file
def ready():
    print("ready", flush=True); sys.stdin.read()
match how:
    case "mapped":
        file = hold(); kept = mmap.mmap(file, 8 << 20); os.close(file); ready()
    case "as its working folder":
        os.mkdir(path); os.chdir(path)
        for number in range(40_000): os.close(os.open(f"{number:0>200}", os.O_CREAT))
        for number in range(40_000): os.unlink(f"{number:0>200}")
        os.rmdir(path); ready()
    case "by the second thread":
        # The first thread ends before its process does, which keeps the descriptor.
        hold()
        threading.Thread(target=ready).start()
        ctypes.CDLL(None).pthread_exit(None)
    case "by a thread with its own descriptors":
        def alone():
            ctypes.CDLL(None).unshare(0x400)  # CLONE_FILES
            hold(); ready()
        threading.Thread(target=alone).start()
"""


THREADS = ("by the second thread", "by a thread with its own descriptors")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["mapped", "as its working folder", *THREADS])
def test_deleted_files_that_a_program_hides_count(tmp_path: Path, how: str) -> None:
    device = os.stat(tmp_path).st_dev
    command = [sys.executable, "-c", HIDES_A_FILE, how, str(tmp_path / "file")]
    before = deleted_bytes(os.getpid(), device)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        assert program.stdout.readline() == b"ready\n"
        # Other programs of the machine can close deleted files meanwhile.
        assert deleted_bytes(program.pid, device) - before >= 6 * MIB
        program.stdin.close()
    assert program.returncode == 0


def test_a_program_that_was_deleted_counts(tmp_path: Path) -> None:
    copy = tmp_path / "program"
    shutil.copy(shutil.which("sleep") or "", copy)
    device, size = os.stat(copy).st_dev, copy.stat().st_blocks * 512
    before = deleted_bytes(os.getpid(), device)
    with subprocess.Popen([copy, "60"]) as program:
        assert wait_until(lambda: os.readlink(f"/proc/{program.pid}/exe") == str(copy))
        copy.unlink()
        assert deleted_bytes(program.pid, device) - before >= size
        program.kill()


@pytest.mark.slow
def test_a_deleted_folder_that_is_open_counts(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(2000):
        (folder / f"{number:0>100}").touch()
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    device = os.fstat(opened).st_dev
    before = deleted_bytes(os.getpid(), device)
    shutil.rmtree(folder)
    assert deleted_bytes(os.getpid(), device) - before >= 100 * 2000
    os.close(opened)


HAS_MANY_THREADS = """
import os, sys, threading
files = [os.dup(0) for _ in range(100)]
for _ in range(50): threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True); sys.stdin.read()
"""


def test_descriptors_that_threads_share_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", HAS_MANY_THREADS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        assert program.stdout.readline() == b"ready\n"
        folders = [
            f"/proc/{program.pid}/task/{one}" for one in os.listdir(f"/proc/{program.pid}/task")
        ]
        assert len(folders) == 51
        monkeypatch.setattr(written, "_processes_beside", lambda pid: iter([folders]))
        held = list(written._held_files(program.pid))
        assert 100 < len([path for path in held if "/fd/" in path]) < 200
        program.stdin.close()


def test_too_many_open_files_end_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "HELD_MAX", 3)
    with pytest.raises(TooLarge, match="holds more than 3 files"):
        deleted_bytes(os.getpid())


def test_many_paths_and_long_paths_are_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    lower.mkdir()
    below = upper / ("é" * 100) / ("é" * 100)
    below.mkdir(parents=True)
    for number in range(8):
        (below / str(number)).touch()
    require_short_list(upper)
    assert len(differences(upper, lower)[0]) == 10
    for name, value in (("PATHS_MAX", 9), ("NAMES_BYTES_MAX", 3000)):
        with monkeypatch.context() as changed:
            changed.setattr(written, name, value)
            with pytest.raises(TooLarge):
                require_short_list(upper)
            with pytest.raises(TooLarge):
                differences(upper, lower)
