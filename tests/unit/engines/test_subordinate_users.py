"""The subordinate users of an ordinary user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fumehood.engines.oci.rootless import granted_in


@pytest.mark.parametrize("before", ["", "# a comment\n\n", "other:1000:10\n", "\xe9:x:y\n"])
def test_a_range_is_found_after_lines_that_grant_none(tmp_path: Path, before: str) -> None:
    file = tmp_path / "subuid"
    line = f"{os.geteuid()}:300000:65536\n"
    file.write_text(f"{before}{line}{line.replace('300000', '500000')}", encoding="latin-1")
    assert granted_in(file) == range(300_000, 365_536)


@pytest.mark.parametrize("text", [None, "", "other:1000:10\n", "x\n"])
def test_a_user_without_a_line_has_none(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "subuid"
    if text is not None:
        file.write_text(text)
    assert not granted_in(file)
