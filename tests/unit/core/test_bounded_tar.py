"""The headers of a hostile tar use little memory."""

from __future__ import annotations

import io
import tarfile

import pytest

from fumehood.core.bounded_tar import GLOBAL_SETTINGS_MAX, BoundedEntry


def entry(kind: bytes = tarfile.REGTYPE, content: bytes = b"", name: str = "file") -> bytes:
    made = tarfile.TarInfo(name)
    made.type, made.size = kind, len(content)
    return made.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)


def settings(**values: str) -> bytes:
    """Return records of a pax header; each one states its length, here always of three digits."""
    return b"".join(
        f"{len(name) + len(value) + 6:03} {name}={value}\n".encode()
        for name, value in values.items()
    )


def read(*entries: bytes) -> list[tarfile.TarInfo]:
    content = io.BytesIO(b"".join(entries) + bytes(1024))
    with tarfile.open(fileobj=content, tarinfo=BoundedEntry) as tar:
        return tar.getmembers()


def test_a_header_applies_to_its_entry_which_keeps_no_copy() -> None:
    (member,) = read(entry(tarfile.XHDTYPE, settings(path="renamed", comment="x")), entry())
    assert member.name == "renamed"
    assert not member.pax_headers


def test_entries_keep_no_copy_of_global_settings() -> None:
    members = read(entry(tarfile.XGLTYPE, settings(comment="x")), entry(), entry())
    assert [member.pax_headers for member in members] == [{}, {}]


def test_many_global_settings_are_refused() -> None:
    many = settings(**{f"k{number}": "x" for number in range(GLOBAL_SETTINGS_MAX + 1)})
    with pytest.raises(tarfile.ReadError, match="global settings"):
        read(entry(tarfile.XGLTYPE, many), entry())


def test_all_headers_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fumehood.core.bounded_tar.HEADERS_BYTES_MAX", 100)
    named = entry(tarfile.XHDTYPE, settings(path="renamed" * 10)) + entry()
    assert len(read(named)) == 1
    with pytest.raises(tarfile.ReadError, match="its headers have more than 100 bytes"):
        read(named, named)


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(entry(tarfile.GNUTYPE_SPARSE), id="GNU"),
        pytest.param(entry(tarfile.XHDTYPE, settings(**{"GNU.sparse.map": "0,1"})), id="0.1"),
        pytest.param(
            entry(tarfile.XHDTYPE, settings(**{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})),
            id="1.0",
        ),
    ],
)
def test_a_sparse_file_is_refused(hostile: bytes) -> None:
    with pytest.raises(tarfile.ReadError, match="sparse file"):
        read(hostile, entry())
