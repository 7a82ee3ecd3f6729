"""The subordinate users of an ordinary user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.oci.rootless import granted_in, ranges_text


@pytest.mark.parametrize("before", ["", "# a comment\n\n", "other:1000:10\n", "\xe9:x:y\n"])
def test_a_range_is_found_after_lines_that_grant_none(tmp_path: Path, before: str) -> None:
    file = tmp_path / "subuid"
    file.write_text(f"{before}{os.geteuid()}:300000:65536\n", encoding="latin-1")
    assert granted_in(file) == tuple(range(300_000, 365_536))


def test_all_ranges_are_used_and_each_id_once(tmp_path: Path) -> None:
    file, user = tmp_path / "subuid", os.geteuid()
    file.write_text(f"{user}:500:1\nother:1000:10\n{user}:300:2\n{user}:301:3\n")
    granted = granted_in(file)
    assert granted == (500, 300, 301, 302, 303)
    assert ranges_text(granted) == "500, 300-303"


def test_no_more_ids_are_used_than_boxes_of_root_have(tmp_path: Path) -> None:
    file = tmp_path / "subuid"
    file.write_text(f"{os.geteuid()}:1:60000\n{os.geteuid()}:100000:4000000000\n")
    granted = granted_in(file)
    assert len(granted) == len(BOX_UIDS)
    assert ranges_text(granted) == "1-60000, 100000-105535"


@pytest.mark.parametrize("text", [None, "", "other:1000:10\n", "x\n"])
def test_a_user_without_a_line_has_none(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "subuid"
    if text is not None:
        file.write_text(text)
    assert not granted_in(file)
