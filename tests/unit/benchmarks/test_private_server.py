"""The folder of a private database server."""

from __future__ import annotations

import pytest

from fumehood.benchmarks.shared.private_server import PrivateServer
from fumehood.core.errors import InfraError


def test_a_server_whose_files_cannot_be_written_leaves_no_folder() -> None:
    server = PrivateServer("Test", "data")
    files = [("data/first", b"1"), ("data/missing/folders/second", b"2")]
    with pytest.raises(InfraError, match=r"Test does not start: .*folders"):
        server.write(files)
    assert not server.folder.exists()
