"""dbbench on SQLite and on MariaDB, side by side: gold, published queries, and where the dialects part.

``make benchmarks-parity`` runs this. Arguments are files of records or checkouts of AgentBench; without any,
the split ``dev`` of the folder of public data is taken.
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
    "SELECT YEAR(day) FROM words",
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
"""Statements that say where the dialects part, and some where they do not."""

REFUSED = "refused:"


def main() -> int:
    """Compare, print, and return how many gold verdicts differ."""
    different = 0
    for path in sys.argv[1:] or [str(data_folder() / "agentbench-dbbench" / "dev.jsonl")]:
        try:
            different += _compare(path)
        except InputError as error:
            print(f"left out  {path}: {error}")
    tables: list[Json] = [WORDS]
    for probe in PROBES:
        print(_told(probe, {"tables": tables}) or f"same      {probe}")
    return different


def _compare(path: str) -> int:
    """Print how two databases do on one file, and return how many gold verdicts differ."""
    here, there = (load_suite(f"dbbench:{server}{path}").cases for server in ("", "mariadb:"))
    verdicts = [(_verdict(one), _verdict(other)) for one, other in zip(here, there, strict=True)]
    for what, changes in (("changes", True), ("answers", False)):
        told = [
            verdict
            for case, verdict in zip(here, verdicts, strict=True)
            if _changes(case) is changes
        ]
        right = [sum(verdict[side] is True for verdict in told) for side in (0, 1)]
        print(f"{path}: gold {what}: SQLite {right[0]}/{len(told)}, MariaDB {right[1]}/{len(told)}")
    queries = list(_queries(Path(path), here))
    print(f"{path}: published queries answered alike: {queries.count(None)}/{len(queries)}")
    print(*filter(None, queries), sep="\n")
    return sum(one is not other for one, other in verdicts)


def _queries(path: Path, cases: tuple[Case, ...]) -> Iterator[str | None]:
    """Yield for every question with a published query what differs, or None."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line, case in zip(lines, cases, strict=False):
        query = json.loads(line).get("sql", {}).get("query")
        if query is not None and not _changes(case):
            yield _told(query, case.task.initial_state)


def _told(query: str, state: JsonObject) -> str | None:
    here, there = (_said(world(copy_object(state)), query) for world in (Sql, MariaDbSql))
    if here == there or (here.startswith(REFUSED) and there.startswith(REFUSED)):
        return None
    return f"DIFFERS   {query}\n          SQLite:  {here[:90]}\n          MariaDB: {there[:90]}"


def _changes(case: Case) -> bool:
    return case.task.tags["type"] in MODIFYING


def _verdict(case: Case) -> bool | None:
    return score_evidence(
        case.task, case.gold, play_in_memory(case.task, case.gold.oracle or ())
    ).success


def _said(world: Sql, query: str) -> str:
    result = world.call(ToolCall("execute_sql", {"query": query}))
    return (
        str(result.output["response"])
        if isinstance(result, Value)
        else f"{REFUSED} {result.message}"
    )


if __name__ == "__main__":
    sys.exit(main())
