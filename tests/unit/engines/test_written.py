"""What a container wrote on the disk of the host is measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fumehood.engines.docker import written
from fumehood.engines.docker.written import (
    INODE_BYTES,
    deleted_bytes,
    require_short_list,
    used_bytes,
)
from fumehood.engines.engine import TooLarge
from fumehood.engines.oci.workspace_files import differences

MIB = 1 << 20
pytestmark = pytest.mark.skipif(shutil.which("du") is None, reason="du is not installed")


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


def test_many_paths_and_long_paths_are_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    lower.mkdir()
    below = upper / ("d" * 200) / ("d" * 200)
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
