"""Scores trajectories with AgentBench's result processor and a MariaDB server.

The server has the modes and the collation without padding of MySQL 8, which the original uses.
"""

import asyncio
import atexit
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pymysql
from questions import answer, digits

_FOLDER = Path(os.environ["FUMEHOOD_ORIGINALS"], "AgentBench", "src", "server", "tasks", "dbbench")
_package = ModuleType("dbbench")
_package.__path__ = [str(_FOLDER)]
_interaction = ModuleType("dbbench.interaction")
_interaction.Database = object  # type: ignore[attr-defined]
sys.modules |= {"dbbench": _package, "dbbench.interaction": _interaction}
DBResultProcessor = import_module("dbbench.result_processor").DBResultProcessor

MODES = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)
"""Default of MySQL 8."""
MODIFYING = ("INSERT", "DELETE", "UPDATE")


@cache
def _records(path: str) -> list[Any]:
    return [json.loads(line) for line in Path(path).read_text().strip().split("\n")]


@cache
def _socket() -> str:
    folder = tempfile.mkdtemp()
    options = [
        *("--no-defaults", "--skip-networking", f"--datadir={folder}/data", "--skip-grant-tables"),
        *(f"--socket={folder}/socket", f"--pid-file={folder}/pid", f"--sql-mode={MODES}"),
        *("--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_nopad_ci"),
        *("--innodb-buffer-pool-size=16M", "--user=root", "--innodb-flush-log-at-trx-commit=0"),
    ]
    Path(folder, "data").mkdir()
    server = subprocess.Popen(["mariadbd", *options], stderr=subprocess.DEVNULL)
    atexit.register(server.kill)
    deadline = time.monotonic() + 60
    while not Path(folder, "socket").exists():
        if time.monotonic() > deadline:
            raise TimeoutError("mariadbd does not start")
        time.sleep(0.05)
    return f"{folder}/socket"


class _Database:
    """The methods of the original's database that are needed, with another client."""

    def __init__(self) -> None:
        self._connection = pymysql.connect(unix_socket=_socket(), charset="utf8mb4")
        self.run("DROP DATABASE IF EXISTS task")
        self.run("CREATE DATABASE task")
        self._connection.select_db("task")

    def run(self, sql: str, values: Any = None) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values)
            rows = [*cursor.fetchall()] if cursor.description else []
        self._connection.commit()
        return rows

    async def execute(self, sql: str) -> str:
        try:
            return str(self.run(sql))
        except Exception as error:
            self._connection.rollback()
            return str(error)


def verdict_of(question: dict[str, Any]) -> str:
    """Play a trajectory as the original's ``start_sample`` does."""
    entry = _records(question["file"])[int(question["task"].rsplit("-", 1)[1])]
    database = _Database()
    for table in entry["table"] if isinstance(entry["table"], list) else [entry["table"]]:
        # As in the original's _build_init_sql.
        names = [f"`{column['name']}`" for column in table["table_info"]["columns"]]
        columns = ",".join(f"{name} TEXT" for name in names)
        database.run(f"CREATE TABLE IF NOT EXISTS `{table['table_name']}` ({columns})")
        rows = table["table_info"]["rows"]
        places = ",".join(f"({','.join(['%s'] * len(row))})" for row in rows)
        sql = f"INSERT INTO `{table['table_name']}` ({','.join(names)}) VALUES {places}"
        database.run(sql, [str(value) for row in rows for value in row])
    for move in question["moves"]:
        if "submit" in move:
            break
        values = [*move["args"].values()]
        if move["tool_name"] == "execute_sql" and values and isinstance(values[0], str):
            asyncio.run(database.execute(values[0]))
    kind = entry["type"][0]
    submitted = question["moves"][-1]["submit"]
    if kind in MODIFYING:
        submitted = asyncio.run(DBResultProcessor.calculate_tables_hash_async(database, entry))
    truth = entry["answer_md5" if kind in MODIFYING else "label"]
    return digits(DBResultProcessor.compare_results(submitted, truth, kind))


if __name__ == "__main__":
    answer(verdict_of)
