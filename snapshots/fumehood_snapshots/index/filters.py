"""Filters documents by field values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fumehood_snapshots.errors import Refusal, RefusalCode, SnapshotDamagedError
from fumehood_snapshots.format import layout
from fumehood_snapshots.format.arrays import map_array
from fumehood_snapshots.format.strings import StringTable, table_files

Filter = Mapping[str, str | Sequence[str]]
"""Field → required value, or a list of allowed values. All fields must match."""


class FieldTable:
    """The memory-mapped field columns of one snapshot."""

    def __init__(self, root: Path, names: Sequence[str], document_count: int) -> None:
        """Map the columns.

        Args:
            root: the snapshot's folder.
            names: of the fields, in the order of their numbers.
            document_count: length of each column.

        Raises:
            SnapshotDamagedError: the length of a column differs.
        """
        self._columns = {name: _Column(root, number) for number, name in enumerate(names)}
        if any(len(column.codes) != document_count for column in self._columns.values()):
            raise SnapshotDamagedError("the field columns do not match the documents")
        self._document_count = document_count

    def matching(self, wanted: Filter) -> NDArray[np.bool_]:
        """Return a Boolean per document.

        Raises:
            Refusal: no document has such a field.
        """
        mask = np.ones(self._document_count, dtype=np.bool_)
        for name, value in wanted.items():
            if name not in self._columns:
                known = ", ".join(self._columns) or "none"
                raise Refusal(
                    RefusalCode.INVALID_ARGUMENT,
                    f"unknown filter field {name!r}; available: {known}",
                )
            mask &= self._columns[name].has_any([value] if isinstance(value, str) else value)
        return mask


class _Column:
    def __init__(self, root: Path, number: int) -> None:
        self.values = StringTable(
            *(root / name for name in table_files(layout.field_values(number)))
        )
        self.codes: NDArray[Any] = map_array(root / layout.field_codes(number), "<i4")

    def has_any(self, values: Sequence[str]) -> NDArray[np.bool_]:
        codes = [code for code in map(self.values.find, values) if code is not None]
        return np.isin(self.codes, codes) if len(codes) != 1 else self.codes == codes[0]
