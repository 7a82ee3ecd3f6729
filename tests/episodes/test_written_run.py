"""A finished run returns the content that a later command reads from its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import Progress, start_run
from fumehood.records.run_reader import open_run
from fumehood.records.signing_key import user_key
from fumehood.records.trust import Trust

pytestmark = pytest.mark.slow


def test_a_finished_run_returns_what_a_verified_reader_returns(tmp_path: Path) -> None:
    settings = {"suite": "sample", "agents": ("noop", "schema_repair"), "engine": "inline"}
    ignored = Progress(lambda *_: None, lambda _: None, lambda _: None)
    written = start_run(run_config(settings), tmp_path / "run", ignored)
    read = open_run(written.path, Trust(own=user_key().public))
    assert len(read.rows()) > 2
    assert written.rows() == read.rows()
    assert written.row_digests() == read.row_digests()
    assert written.manifest() == read.manifest()
    assert written.provenance == read.provenance
    assert written.suite().cases == read.suite().cases
    assert [written.read_trace(row) for row in written.rows()] == list(
        map(read.read_trace, read.rows())
    )
