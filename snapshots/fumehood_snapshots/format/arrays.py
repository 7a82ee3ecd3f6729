"""Numeric arrays on disk: ``.npy`` files, written in parts, memory-mapped, never pickled."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from fumehood_snapshots.errors import SnapshotDamagedError


def map_array(path: Path, dtype: str) -> NDArray[Any]:
    """Map a one-dimensional array of an ``.npy`` file into memory without reading it.

    Raises:
        SnapshotDamagedError: it is not such an array of ``dtype``. Arrays of Python objects, which
            would need pickle, are refused as well.
    """
    try:
        mapped = npy.open_memmap(path, mode="r")
    except (ValueError, OSError, EOFError, SyntaxError) as error:
        raise SnapshotDamagedError(
            f"{path.name} is not a plain numeric array: {first_line(error)}"
        ) from error
    if mapped.ndim != 1 or mapped.dtype != np.dtype(dtype):
        raise SnapshotDamagedError(
            f"{path.name} has type {mapped.dtype.str} and {mapped.ndim} dimensions; "
            f"expected {dtype} and 1"
        )
    # A plain view, because slicing the memmap subclass takes several microseconds.
    return np.asarray(mapped)


def first_line(error: BaseException) -> str:
    """Return the first line of an error message."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


class ArrayWriter:
    """Writes a one-dimensional array of a known length in parts."""

    def __init__(self, path: Path, dtype: str, length: int) -> None:
        """Create the file and write its header.

        Args:
            path: file to create.
            dtype: such as ``"<f4"``; the byte order is part of the format.
            length: number of values that :meth:`append` receives in total.
        """
        self._dtype = np.dtype(dtype)
        self._missing = length
        self._stream: BinaryIO = path.open("wb")
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (length,)}
        npy.write_array_header_1_0(self._stream, header)

    def append(self, values: NDArray[Any]) -> None:
        """Write the next values."""
        self._missing -= len(values)
        self._stream.write(np.ascontiguousarray(values, dtype=self._dtype).data)

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()
        if kind is None and self._missing:
            raise ValueError(f"{self._missing} values of the announced length were not written")


def save_array(path: Path, values: NDArray[Any], dtype: str) -> None:
    """Write a whole array at once."""
    with ArrayWriter(path, dtype, len(values)) as writer:
        writer.append(values)
