"""Entries of a tar that another user or machine wrote, whose headers use little memory.

Python keeps all headers of a tar in memory: names without a limit, and for each entry a copy of the
settings that a global header made. A small compressed tar could fill the memory of the machine.
"""

from __future__ import annotations

import tarfile
from typing import cast

HEADER_BYTES_MAX = 1 << 20
"""Of a long name or of extended attributes, which are read as a whole."""
HEADERS_BYTES_MAX = 256 << 20
"""Of all headers of one tar together, or of several that ``count_headers`` joins."""
GLOBAL_SETTINGS_MAX = 64
"""Settings of global headers, of which each entry would get a copy."""


def count_headers(tar: tarfile.TarFile, more_bytes: int = 0) -> int:
    """Add to the counted headers of a tar, and return their sum in bytes.

    Args:
        tar: a tar that was opened with ``BoundedEntry``.
        more_bytes: size of a header, or of all headers of earlier tars that share the limit.

    Raises:
        tarfile.ReadError: the sum exceeds the limit.
    """
    read_bytes: int = getattr(tar, "header_bytes", 0) + more_bytes
    if read_bytes > HEADERS_BYTES_MAX:
        raise tarfile.ReadError(f"its headers have more than {HEADERS_BYTES_MAX} bytes")
    tar.header_bytes = read_bytes  # type: ignore[attr-defined]
    return read_bytes


class BoundedEntry(tarfile.TarInfo):
    """An entry; give this class to ``tarfile.open`` as ``tarinfo``.

    Reading raises ``tarfile.ReadError`` if the headers exceed a limit or are invalid.
    """

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        # Python reads headers, such as long names, into memory as a whole.
        if self.size < 0 or (not self.isreg() and self.size > HEADER_BYTES_MAX):
            raise tarfile.ReadError(f"{self.name[:99]!r} has a header of {self.size} bytes")
        if not self.isreg():
            count_headers(tar, self.size)
        try:
            entry = cast("tarfile.TarInfo", super()._proc_member(tar))  # type: ignore[misc]
        except tarfile.HeaderError as error:
            # Some versions of Python take an invalid header for the end of the archive.
            raise tarfile.ReadError(f"{self.name[:99]!r} has an invalid header") from error
        # A global header changes the settings of the tar, and each later entry would get a copy.
        if len(tar.pax_headers) > GLOBAL_SETTINGS_MAX:
            raise tarfile.ReadError(f"it has more than {GLOBAL_SETTINGS_MAX} global settings")
        entry.pax_headers = {}  # They have been applied.
        return entry

    def _refuse(self, *_: object) -> tarfile.TarInfo:
        raise tarfile.ReadError(f"{self.name[:99]!r} is a sparse file or its header")

    # Python reads the map of a sparse file without a limit.
    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse
