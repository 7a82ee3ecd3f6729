"""Loads dbbench's records, from a checkout of AgentBench or from other files in its format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from fumehood.benchmarks.dbbench.mariadb_server import has_mariadb, mariadbd
from fumehood.benchmarks.shared.checkout import first_file
from fumehood.benchmarks.shared.published_record import PublishedRecord
from fumehood.benchmarks.shared.reading import (
    Place,
    Problem,
    Unreadable,
    read_records,
)
from fumehood.benchmarks.shared.records import cases_of, numbered
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task

SPLITS = ("standard", "dev")
MARIADB, LENIENT, SQLITE = "mariadb", "mariadb_lenient", "sqlite"
DATABASES = {
    MARIADB: "MariaDB with MySQL 8's strict mode",
    LENIENT: "MariaDB with an empty sql_mode",
    SQLITE: "SQLite as MySQL",
}
"""Prefix of a suite argument → its description."""
WORLDS = {MARIADB: "sql_mariadb", LENIENT: "sql_mariadb", SQLITE: "sql"}
DATA_FOLDER = Path("data", "dbbench")
"""Folder of the records in a checkout of AgentBench."""
MODIFYING = frozenset({"INSERT", "UPDATE", "DELETE"})
ROUNDS = 15
"""Limit in the original's configuration. A rejected statement counts like any other."""
BUDGET = Budget(steps=ROUNDS, calls=ROUNDS, retries=ROUNDS)
ABOUT = About(
    licence="Apache-2.0 (THUDM/AgentBench)",
    criterion=(
        "the original's rules, reimplemented: answers as sets with a tolerance of 0.01, "
        "tables by MD5"
    ),
    scored_on="the submitted answer of a question; all rows of the tables after a change",
)
INSTRUCTION = """\
Work on a MySQL database with the tool execute_sql. Send one statement per call. The result is the \
database's reply, which is cut if it is long. When you are done, submit your final answer. For a \
question, submit the exact values as a JSON list of strings, such as ["42"], and nothing else. For \
a change of the database, submit any text.

{hints}Question: {question}"""


class Column(PublishedRecord):
    """A column. Its published type is not read: every column is text, as in the original."""

    name: str


class TableInfo(PublishedRecord):
    """The content of a table."""

    columns: list[Column] = Field(min_length=1)
    rows: list[list[Any]]


class Table(PublishedRecord):
    """One table."""

    table_name: str
    table_info: TableInfo

    @model_validator(mode="after")
    def _rows_are_complete(self) -> Table:
        width = len(self.table_info.columns)
        if any(len(row) != width for row in self.table_info.rows):
            raise ValueError(f"table_info.rows: must have {width} values each, one per column")
        return self


class Record(PublishedRecord):
    """One published question or change."""

    description: str
    add_description: str = ""
    evidence: str = ""
    type: list[str] = Field(min_length=1)
    """The first is INSERT, UPDATE, DELETE, or a kind of question."""
    label: list[str] = Field(min_length=1)
    """The right values, or statements that make the right change."""
    answer_md5: str | None = None
    """Digest of the tables after the right change."""
    table: Table | list[Table]

    @property
    def kind(self) -> str:
        """The type that decides how the task is scored."""
        return self.type[0]

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        return self.table if isinstance(self.table, list) else [self.table]

    @model_validator(mode="after")
    def _change_has_a_digest(self) -> Record:
        if self.kind in MODIFYING and not self.answer_md5:
            raise ValueError(f"answer_md5: is required for a record of type {self.kind}")
        return self


class DbBench:
    """The benchmark ``dbbench``.

    Its argument is ``[mariadb:|mariadb_lenient:|sqlite:]PATH[:SPLIT]``, where PATH is a file of
    records, a folder of such files, or a checkout of AgentBench. Without a database, ``mariadb`` is
    used if MariaDB is installed.
    """

    source = "THUDM/AgentBench 578c5e9, your checkout"

    def load(self, argument: str) -> Suite:
        """Return the records as a suite."""
        first, _, rest = argument.partition(":")
        if first in DATABASES:
            database, argument = first, rest
        else:
            database = MARIADB if has_mariadb() else SQLITE
        if not argument:
            raise InputError(
                f"dbbench: the argument must be [{'|'.join(f'{name}:' for name in DATABASES)}]"
                "PATH[:SPLIT], where PATH is a file of records or a checkout of THUDM/AgentBench"
            )
        path = _find_file(argument)
        # Records have no identifiers. Their index is used, as in the original.
        named = numbered(read_records(path), Record, f"{path.stem}-")
        if not named:
            raise Unreadable(Place(path), Problem.NOT_FOUND, "contains no records")
        # The tasks are validated on SQLite, so that reading a file starts no server.
        cases = cases_of(named, lambda item: _case(*item))
        if database != SQLITE:
            mariadbd()
            strict: JsonObject = {"strict": False} if database == LENIENT else {}
            cases = tuple(
                replace(
                    case,
                    task=replace(
                        case.task,
                        world=WORLDS[database],
                        initial_state={**case.task.initial_state, **strict},
                    ),
                )
                for case in cases
            )
        about = replace(ABOUT, scored_on=f"{ABOUT.scored_on}; on {DATABASES[database]}")
        return Suite(f"dbbench:{database}:{path.stem}", cases, about=about)

    def recognises(self, record: JsonObject) -> bool:
        """Return whether the record has two keys that only dbbench's records have."""
        return {"add_description", "table"} <= record.keys()


def _find_file(argument: str) -> Path:
    """Return the file that ``PATH[:SPLIT]`` names."""
    head, _, split = argument.rpartition(":")
    splits: tuple[str, ...] = SPLITS
    root = Path(argument)
    if head and not root.exists() and Path(head).is_dir():
        splits, root = (split,), Path(head)
    if not root.is_dir():
        return root
    names = [folder / f"{name}.jsonl" for name in splits for folder in (Path(), DATA_FOLDER)]
    return first_file(root, names)


def _case(task_id: str, record: Record) -> Case:
    modifies = record.kind in MODIFYING
    label: list[Json] = [*record.label]
    criterion: JsonObject = {"op": "dbbench_answer", "label": label}
    if modifies:
        criterion = {"op": "dbbench_tables", "md5": record.answer_md5}
    task = Task(
        task_id=task_id,
        world=WORLDS[SQLITE],
        harness_mode="native",
        initial_state={"tables": [_table(table) for table in record.tables]},
        seats=(SeatSpec(instruction=_instruction(record), budget=BUDGET),),
        tags={"type": record.kind},
    )
    return Case(task, Gold("dbbench", (criterion,), oracle=_oracle(record, modifies)))


def _oracle(record: Record, modifies: bool) -> tuple[JsonObject, ...]:
    if not modifies:
        return ({"submit": json.dumps(record.label, ensure_ascii=False)},)
    calls: tuple[JsonObject, ...] = tuple(
        {"tool_name": "execute_sql", "args": {"query": query}} for query in record.label
    )
    return (*calls, {"submit": "done"})


def _instruction(record: Record) -> str:
    hints = (("Evidence", record.evidence), ("About the table", record.add_description))
    text = "".join(f"{name}: {hint}\n" for name, hint in hints if hint)
    return INSTRUCTION.format(hints=text, question=record.description)


def _table(table: Table) -> JsonObject:
    columns: list[Json] = [column.name for column in table.table_info.columns]
    # The original stores Python's text of every value.
    rows: list[Json] = [[str(value) for value in row] for row in table.table_info.rows]
    return {"name": table.table_name, "columns": columns, "rows": rows}
