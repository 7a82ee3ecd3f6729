"""Loads dbbench's record files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fumehood.benchmarks.dbbench.world_mariadb import preload
from fumehood.benchmarks.shared.reading import Place, Placed, Problem, Unreadable, read_records
from fumehood.benchmarks.shared.records import cases_of, validated
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task

SPLITS = ("standard", "dev")
MARIADB = "mariadb"
"""Before the path: plays MySQL by MariaDB and not by SQLite."""
INSIDE = Path("data", "dbbench")
"""Where a checkout of AgentBench has its files."""
ABOUT = About(
    licence="Apache-2.0 (THUDM/AgentBench)",
    criterion="the original's rules, written anew: answers as sets with a tolerance of 0.01, tables by MD5",
    judged="the submitted answer of a question; of a change, all rows of its tables after it was submitted",
)


class DbBench:
    """Argument: ``[mariadb:]PATH[:SPLIT]``: a file of records, a folder of them, a checkout of AgentBench."""

    def load(self, argument: str) -> Suite:
        """Return the records as a suite; every task is opened once, so that none fails later."""
        first, _, rest = argument.partition(":")
        on_mariadb = first == MARIADB
        argument = rest if on_mariadb else argument
        if not argument:
            raise InputError(
                "dbbench needs its records: dbbench:FILE, or dbbench:CHECKOUT of THUDM/AgentBench; "
                "with dbbench:mariadb:FILE they are played by MariaDB"
            )
        path = _file(argument)
        records = [validated(record, Record) for record in read_records(path)]
        if not records:
            raise Unreadable(Place(path), Problem.NOT_FOUND, "holds no task")
        # Records have no names, so they are called by their place, as the original does.
        named = [
            Placed((f"{path.stem}-{at}", each.value), each.place) for at, each in enumerate(records)
        ]
        # Opened in SQLite, so that no server is started to read a file.
        cases = cases_of(named, _case)
        if not on_mariadb:
            return Suite(f"dbbench:{path.stem}", cases, about=ABOUT)
        preload()
        return Suite(f"dbbench:mariadb:{path.stem}", tuple(map(_on_mariadb, cases)), about=ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Look for two keys that no other format has."""
        return {"add_description", "table"} <= record.keys()


def _case(named: tuple[str, Record]) -> Case:
    return case_of(*named)


def _on_mariadb(case: Case) -> Case:
    return replace(case, task=replace(case.task, world="sql_mariadb"))


def _file(argument: str) -> Path:
    """Return the file that an argument names.

    Raises:
        InputError: there is no such file; says where it was looked for.
    """
    head, _, split = argument.rpartition(":")
    splits: tuple[str, ...] = SPLITS
    root = Path(argument)
    if head and not root.exists() and Path(head).is_dir():
        splits, root = (split,), Path(head)
    if not root.is_dir():
        return root
    found = [root / inside / f"{name}.jsonl" for name in splits for inside in ("", INSIDE)]
    for path in found:
        if path.is_file():
            return path
    raise InputError(f"{root} holds no records of dbbench; looked for {', '.join(map(str, found))}")


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


WORLD = "sql"
PROFILE = "native"
SCORER = "dbbench"
ROUNDS = 15
"""Of the original's configuration. A refused statement costs no more than any other."""
BUDGET = Budget(steps=ROUNDS, calls=ROUNDS, retries=ROUNDS)
INSTRUCTION = """\
Work on a MySQL database with the tool execute_sql, one statement a call; you get what the database says, \
cut where it is long. When you are done, submit your final answer: if you were asked something, the exact \
values as a JSON list of texts, such as ["42"], and nothing else; if you were told to change the database, \
anything.

{about}Question: {question}"""


def case_of(task_id: str, record: Record) -> Case:
    """Return the record as a task and its gold."""
    modifies = record.kind in MODIFYING
    label: list[Json] = [*record.label]
    criterion: JsonObject = {"op": "dbbench_answer", "label": label}
    if modifies:
        criterion = {"op": "dbbench_tables", "md5": record.answer_md5}
    task = Task(
        task_id=task_id,
        world=WORLD,
        harness_mode=PROFILE,
        initial_state={"tables": [_table(table) for table in record.tables]},
        fault_plan=(),
        seed=0,
        seats=(SeatSpec(instruction=_instruction(record), budget=BUDGET),),
        tags={"type": record.kind},
    )
    return Case(task, Gold(SCORER, (criterion,), oracle=_oracle(record, modifies)))


def _oracle(record: Record, modifies: bool) -> tuple[JsonObject, ...]:
    if not modifies:
        return ({"submit": json.dumps(record.label, ensure_ascii=False)},)
    calls = tuple(
        JsonObject({"tool_name": "execute_sql", "args": {"query": query}}) for query in record.label
    )
    return (*calls, {"submit": "done"})


def _instruction(record: Record) -> str:
    hints = (("Evidence", record.evidence), ("About the table", record.add_description))
    about = "".join(f"{name}: {text}\n" for name, text in hints if text)
    return INSTRUCTION.format(about=about, question=record.description)


def _table(table: Table) -> JsonObject:
    columns: list[Json] = [column.name for column in table.table_info.columns]
    # The original writes Python's text of every value, whatever its type.
    rows: list[Json] = [[str(value) for value in row] for row in table.table_info.rows]
    return {"name": table.table_name, "columns": columns, "rows": rows}
