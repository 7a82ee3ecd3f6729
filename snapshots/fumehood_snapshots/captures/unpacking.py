"""Unpacks gzip and deflate in bounded memory.

A few kilobytes of gzip can unpack to gigabytes. Two bounds prevent that: a maximum size and a
maximum expansion ratio. Real pages stay far below both.
"""

from __future__ import annotations

import zlib
from typing import BinaryIO

PIECE_BYTES = 64 * 1024
RATIO_MAX = 250
"""Bytes out per byte in. Text rarely exceeds 20; the limit of deflate is 1032."""
FREE_BYTES = 4 * 1024 * 1024
"""Output that is allowed at any ratio, because short runs of blanks compress extremely well."""

GZIP_MAGIC = b"\x1f\x8b"


class PackingBombError(Exception):
    """The output exceeds a bound."""


class PackingError(Exception):
    """The packed bytes are damaged or of an unknown kind."""


class BoundedGunzip:
    """A readable stream over the contents of a gzip file of one or many members."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._input = b""
        self._bytes_in = 0
        self._bytes_out = 0

    def read(self, size: int = PIECE_BYTES) -> bytes:
        """Return up to ``size`` bytes; empty at the end.

        Raises:
            PackingBombError: the output exceeds the expansion ratio.
            PackingError: the file is damaged or truncated.
        """
        while True:
            if not self._input and not self._refill():
                if self._bytes_in and not self._member.eof:
                    raise PackingError("the gzip file is truncated")
                return b""
            if self._member.eof:
                # Zero padding after the last member is common and harmless.
                if not self._input.strip(b"\0"):
                    self._input = b""
                    continue
                self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            piece = self._unpack(size)
            if piece:
                return piece

    def _refill(self) -> bool:
        self._input = self._packed.read(PIECE_BYTES)
        self._bytes_in += len(self._input)
        return bool(self._input)

    def _unpack(self, size: int) -> bytes:
        try:
            piece = self._member.decompress(self._input, size)
        except zlib.error as error:
            raise PackingError(f"not gzip: {error}") from error
        self._input = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        self._bytes_out += len(piece)
        _refuse_bomb(self._bytes_in, self._bytes_out)
        return piece


def unpack_content(content: bytes, encodings: str, bytes_max: int) -> bytes:
    """Undo the ``Content-Encoding`` of a body.

    Args:
        content: as received.
        encodings: the header's value: names in the order in which they were applied.
        bytes_max: maximum size of the output.

    Raises:
        PackingBombError: the body exceeds ``bytes_max`` or the expansion ratio.
        PackingError: it is damaged, or neither gzip nor deflate.
    """
    names = [name.strip().lower() for name in encodings.split(",") if name.strip()]
    if len(names) > 2:
        raise PackingError("more than two content encodings")
    for name in reversed(names):
        if name in {"gzip", "x-gzip", "deflate"}:
            content = _unpack_one(content, name, bytes_max)
        elif name != "identity":
            raise PackingError(f"content encoding {name[:40]!r} is not gzip or deflate")
    return content


def _unpack_one(content: bytes, name: str, bytes_max: int) -> bytes:
    # Some servers omit the zlib wrapper that the standard requires.
    bare = name == "deflate" and (not content or content[0] & 0x0F != 8)
    window = (
        zlib.MAX_WBITS | 16 if name != "deflate" else -zlib.MAX_WBITS if bare else zlib.MAX_WBITS
    )
    unpacker = zlib.decompressobj(window)
    try:
        unpacked = unpacker.decompress(content, bytes_max + 1)
    except zlib.error as error:
        raise PackingError(f"broken {name}: {error}") from error
    if len(unpacked) > bytes_max:
        raise PackingBombError(f"unpacks to more than {bytes_max} bytes")
    _refuse_bomb(len(content), len(unpacked))
    if not unpacker.eof:
        raise PackingError(f"the {name} body is truncated")
    return unpacked


def _refuse_bomb(bytes_in: int, bytes_out: int) -> None:
    if bytes_out > FREE_BYTES and bytes_out > RATIO_MAX * bytes_in:
        raise PackingBombError(f"unpacks to more than {RATIO_MAX} times its size")
