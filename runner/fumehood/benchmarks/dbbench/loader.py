"""Files of dbbench records as a benchmark: of a checkout of AgentBench, or any others in that format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fumehood.benchmarks.cases import cases_of
from fumehood.benchmarks.dbbench.record import Record
from fumehood.benchmarks.dbbench.task import case_of
from fumehood.benchmarks.dbbench.world_mariadb import preload
from fumehood.benchmarks.reading import Place, Placed, Problem, Unreadable, read_records
from fumehood.benchmarks.records import validated
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import About, Case, Suite

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
