"""Compares dbbench on SQLite and on MariaDB: gold, published queries, and differences of the
dialects.

``make benchmarks-parity`` runs this. Arguments are files of records or checkouts of AgentBench. The
default is the split ``dev`` in the folder of public data.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from fumehood.benchmarks.dbbench.tasks import MODIFYING
from fumehood.benchmarks.dbbench.world import Sql
from fumehood.benchmarks.dbbench.world_mariadb import MariaDbSql
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.task import Case
from fumehood.core.tools import ToolCall, Value
from fumehood.scorers.registry import score_evidence
from tests.parts.benchmark_data import data_folder

WORDS: JsonObject = {
    "name": "words",
    "columns": ["word", "number", "day"],
    "rows": [
        ["Ann", "10", "2001-02-03"],
        ["ann", "9", "2001-12-24"],
        ["Béa", "1,000", "x"],
        ["zoe ", None, ""],
    ],
}
PROBES = (
    "SELECT word FROM words WHERE word = 'BEA'",
    "SELECT word FROM words WHERE word LIKE 'an%'",
    "SELECT MAX(number) FROM words",
    "SELECT word FROM words WHERE number > 5",
    "SELECT SUM(number) FROM words",
    "SELECT 7 / 2",
    "SELECT LENGTH('é')",
    "SELECT word || '!' FROM words",
    "SELECT word FROM words WHERE word REGEXP '^a'",
    "SELECT YEAR(day), MONTH(day) FROM words",
    "SELECT 7 DIV 2, 7 MOD 2, TRUNCATE(1.57, 1)",
    "SELECT LCASE(word), UCASE(word) FROM words # comment",
    "SELECT LOCATE('N', word), LEFT(word, 1), RIGHT(word, 1) FROM words",
    "SELECT STR_TO_DATE('1 May 2001', '%d %M %Y')",
    "SELECT SUBSTRING_INDEX('a,b', ',', 1)",
    "SELECT GROUP_CONCAT(word SEPARATOR ';') FROM words",
    "SELECT word FROM WORDS",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
    "SHOW CREATE TABLE words",
    "INSERT INTO words SET word = 'x'",
    "INSERT IGNORE INTO words VALUES ('x', 'y', 'z')",
    "TRUNCATE TABLE words",
)
"""Statements for which the dialects may differ."""

REJECTED = "rejected:"


def main() -> int:
    """Print the comparison and return the number of different gold scores."""
    different = 0
    for path in sys.argv[1:] or [str(data_folder() / "agentbench-dbbench" / "dev.jsonl")]:
        try:
            different += _compare(path)
        except InputError as error:
            print(f"skipped   {path}: {error}")
    tables: list[Json] = [WORDS]
    for probe in PROBES:
        print(_difference(probe, {"tables": tables}) or f"same      {probe}")
    return different


def _compare(path: str) -> int:
    """Compare both databases on one file and return the number of different gold scores."""
    sqlite, mariadb = (
        load_suite(f"dbbench:{database}:{path}").cases for database in ("sqlite", "mariadb")
    )
    scores = [(_success(one), _success(other)) for one, other in zip(sqlite, mariadb, strict=True)]
    for kind, changes in (("changes", True), ("answers", False)):
        pairs = [
            pair for case, pair in zip(sqlite, scores, strict=True) if _is_change(case) is changes
        ]
        solved = [sum(pair[side] is True for pair in pairs) for side in (0, 1)]
        print(
            f"{path}: gold {kind}: SQLite {solved[0]}/{len(pairs)}, "
            f"MariaDB {solved[1]}/{len(pairs)}"
        )
    queries = list(_query_differences(Path(path), sqlite))
    print(f"{path}: published queries with equal results: {queries.count(None)}/{len(queries)}")
    print(*filter(None, queries), sep="\n")
    return sum(one is not other for one, other in scores)


def _query_differences(path: Path, cases: tuple[Case, ...]) -> Iterator[str | None]:
    """Yield the difference, or None, for every question with a published query."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line, case in zip(lines, cases, strict=False):
        query = json.loads(line).get("sql", {}).get("query")
        if query is not None and not _is_change(case):
            yield _difference(query, case.task.initial_state)


def _difference(query: str, state: JsonObject) -> str | None:
    sqlite, mariadb = (_result(world(copy_object(state)), query) for world in (Sql, MariaDbSql))
    if sqlite == mariadb or (sqlite.startswith(REJECTED) and mariadb.startswith(REJECTED)):
        return None
    return f"DIFFERS   {query}\n          SQLite:  {sqlite[:90]}\n          MariaDB: {mariadb[:90]}"


def _is_change(case: Case) -> bool:
    return case.task.tags["type"] in MODIFYING


def _success(case: Case) -> bool | None:
    return score_evidence(
        case.task, case.gold, play_in_memory(case.task, case.gold.oracle or ())
    ).success


def _result(world: Sql, query: str) -> str:
    result = world.call(ToolCall("execute_sql", {"query": query}))
    return (
        str(result.output["response"])
        if isinstance(result, Value)
        else f"{REJECTED} {result.message}"
    )


if __name__ == "__main__":
    sys.exit(main())
