"""A box gets copies of files, and only its user can use its sockets."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError, InputError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.box_files import HeldByBox, give_sockets, users_with
from fumehood.engines.engine import Mount


@pytest.fixture
def held() -> Iterator[HeldByBox]:
    made = HeldByBox({})
    yield made
    made.release()


def test_a_copy_shares_no_inode_and_keeps_its_mode(held: HeldByBox, tmp_path: Path) -> None:
    source = tmp_path / "agent.sh"
    source.write_text("echo")
    source.chmod(0o755)
    os.link(source, tmp_path / "other")
    [copy] = held.files.copies([Mount(source, "/agent/agent.sh")])
    assert copy.target == "/agent/agent.sh"
    status = copy.source.stat()
    assert (status.st_nlink, stat.S_IMODE(status.st_mode)) == (1, 0o755)
    assert status.st_ino != source.stat().st_ino
    assert copy.source.read_text() == "echo"


def test_a_link_in_a_package_is_not_followed_on_the_host(held: HeldByBox, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "secret").write_text("secret")
    (package / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(package / "pipe")
    [copy] = held.files.copies([Mount(package, "/agent/package")])
    assert (copy.source / "link").is_symlink()
    assert not (copy.source / "pipe").exists()


def test_files_are_removed_with_the_box(tmp_path: Path) -> None:
    held = HeldByBox({})
    path = held.files.write(b"x")
    held.release()
    assert not path.parent.exists()
    held.release()


def test_a_missing_source_is_an_input_error(held: HeldByBox, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        held.files.copies([Mount(tmp_path / "missing", "/agent")])


def test_programs_find_the_name_of_the_user() -> None:
    assert users_with(b"root:x:0:0::/:/bin/sh", 7).splitlines() == [
        b"root:x:0:0::/:/bin/sh",
        b"box:x:7:7::/tmp:/sbin/nologin",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a socket away")
def test_only_the_user_of_the_box_may_connect(tmp_path: Path) -> None:
    user = BOX_UIDS.start
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        (tmp_path / "file").touch(mode=0o644)
        (tmp_path / "link").symlink_to(tmp_path / "file")
        give_sockets(tmp_path, user)
    status = (tmp_path / "s").lstat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (user, 0o600)
    assert (tmp_path / "file").stat().st_uid == 0


def test_a_link_instead_of_the_folder_of_a_seat_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "seat").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InfraError, match="cannot give the sockets"):
        give_sockets(tmp_path / "seat", 1)
