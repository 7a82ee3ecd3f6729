"""From a record of dbbench to a task and its gold."""

from __future__ import annotations

import json

from fumehood.benchmarks.dbbench.record import MODIFYING, Record, Table
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Task

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
        profile=PROFILE,
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
