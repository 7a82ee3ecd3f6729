"""Records of dbbench as they are published: one JSON object a line, of which not every key counts."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

MODIFYING = frozenset({"INSERT", "UPDATE", "DELETE"})


class _Published(BaseModel):
    """Keys that nothing reads are left alone: the publisher has more of them than the original's own code."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Column(_Published):
    """Its published type is not read: every column is text, as in the original."""

    name: str


class TableInfo(_Published):
    """What is in a table."""

    columns: list[Column] = Field(min_length=1)
    rows: list[list[Any]]


class Table(_Published):
    """One table."""

    table_name: str
    table_info: TableInfo

    @model_validator(mode="after")
    def _rows_are_full(self) -> Table:
        width = len(self.table_info.columns)
        if any(len(row) != width for row in self.table_info.rows):
            raise ValueError(
                f"table_info.rows: must have {width} values each, one for every column"
            )
        return self


class Record(_Published):
    """One question or change."""

    description: str
    add_description: str = ""
    evidence: str = ""
    type: list[str] = Field(min_length=1)
    """Of which the first counts: INSERT, UPDATE, DELETE, or a kind of question."""
    label: list[str] = Field(min_length=1)
    """The right values, or statements that make the right change."""
    answer_md5: str | None = None
    """Of the tables after the right change."""
    table: Table | list[Table]

    @property
    def kind(self) -> str:
        """What decides how it is judged."""
        return self.type[0]

    @property
    def tables(self) -> list[Table]:
        """All its tables."""
        return self.table if isinstance(self.table, list) else [self.table]

    @model_validator(mode="after")
    def _can_be_judged(self) -> Record:
        if self.kind in MODIFYING and not self.answer_md5:
            raise ValueError("answer_md5: is missing, though the record is about a change")
        return self
