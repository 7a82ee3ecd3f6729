"""The folder of a private database server."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.benchmarks.shared.private_server import PrivateServer
from fumehood.core.errors import InfraError


def test_a_server_whose_files_cannot_be_written_leaves_no_folder() -> None:
    server = PrivateServer("Test", "data")
    files = [("data/first", b"1"), ("data/missing/folders/second", b"2")]
    with pytest.raises(InfraError, match=r"Test does not start: .*folders"):
        server.write(files)
    assert not server.folder.exists()


def _connect() -> None:
    raise AssertionError("there is no socket")


def test_a_server_that_ends_at_its_start_is_named_with_its_last_message() -> None:
    server = PrivateServer("Test")
    server.give_away()
    # More than a pipe holds.
    command = ["/bin/sh", "-c", "echo first >&2; yes many | head -c 200000 >&2; exit 3"]
    with pytest.raises(InfraError, match=r"^Test does not start: it ended: ma?n?y?$"):
        server.start(command, memory_kb_max=1 << 20, socket=Path("/none"), connect=_connect)
    assert not server.folder.exists()
