"""Scores dbbench."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from hashlib import md5

from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.criteria import Criterion
from fumehood.scorers.native import NativeScorer, task_metrics

ANSWER = "dbbench_answer"
"""``label`` lists the right values."""
TABLES = "dbbench_tables"
"""``md5`` is the digest of the task's own tables when all is done."""


class DbBench:
    """The original's two criteria; both need an answer, for without one the original judges nothing."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the verdict and the native metrics."""
        if not any(each.get("op") in (ANSWER, TABLES) for each in gold.criteria):
            return NativeScorer().score(task, gold, evidence)
        end = evidence.ends.get(task.seats[0].name)
        checks = {"end:answered": isinstance(end, Finished)}
        for index, criterion in enumerate(gold.criteria):
            answer = end.answer if isinstance(end, Finished) else ""
            checks[f"check_{index}:{criterion.get('op')}"] = _holds(
                index, criterion, task, evidence, answer
            )
        success = all(checks.values())
        return Score(success, checks, task_metrics(task, evidence, success))


def _holds(index: int, criterion: Criterion, task: Task, evidence: Evidence, answer: str) -> bool:
    match criterion:
        case {"op": "dbbench_answer", "label": [*label]} if all(
            isinstance(each, str) for each in label
        ):
            # The original's tool cannot be called without an answer, and would take an empty text for 0.
            return bool(answer.strip()) and same_answer(answer, [str(each) for each in label])
        case {"op": "dbbench_tables", "md5": str(digest)}:
            left = tables_digest(_tables(evidence.final_state.get("tables")), _wanted(task))
            return left == digest_of_label(digest)
    raise SpecError(
        f"criteria[{index}]", "must be dbbench_answer with label, or dbbench_tables with md5"
    )


def _wanted(task: Task) -> list[tuple[str, list[str]]]:
    return [
        (name, [str(column) for column in columns])
        for table in _tables(task.initial_state.get("tables"))
        if isinstance(table, dict)
        and isinstance(name := table.get("name"), str)
        and isinstance(columns := table.get("columns"), list)
    ]


def _tables(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


TOLERANCE = 1e-2
_ONE_VALUE = re.compile(r"\[+\(([^(]*),\)\]+")
"""A row of one value, as MySQL's client shows it, that is no literal."""
HASH_CHARS = 5
JOINED_CHARS_MAX = 1024
"""MySQL's usual ``group_concat_max_len``."""
NOTHING = frozenset(
    {"", "none", "null", "undefined", "nan", "inf", "infinity", "-inf", "-infinity"}
)
"""What counts as 0, whatever its case."""
ANSWER_CHARS_MAX = 20_000
"""Longer text is not read as a list."""


def same_answer(answer: str, label: Sequence[str]) -> bool:
    """Tell whether an answer is right: order does not count, nor do 0.01, commas and per cent signs."""
    given, wanted = read_answer(answer), [_plain(value) for value in label]
    numbers = _numbers(given), _numbers(wanted)
    if numbers[0] is not None and numbers[1] is not None:
        return _same_numbers(numbers[0], numbers[1])
    if len(given) == len(wanted) == 1:
        return given == wanted
    return set(given) == set(wanted)


def read_answer(text: str) -> list[str]:
    """Return the values that an answer lists; one value where it is no list."""
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return [_plain(stripped)]
    try:
        found = ast.literal_eval(stripped) if len(stripped) <= ANSWER_CHARS_MAX else None
        if isinstance(found, list):
            return [_plain(str(_only(item))) for item in found if not _is_row(found, item)]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    one = _ONE_VALUE.fullmatch(stripped)
    return [_plain(part) for part in ([one[1]] if one else _split(stripped[1:-1]))]


def tables_digest(
    tables: Sequence[Json], wanted: Iterable[tuple[str, Sequence[str]]]
) -> str | None:
    """Return the digest of some tables together.

    Args:
        tables: as the world left them.
        wanted: name and columns of each table that counts.

    Returns:
        None where one of them, or a column, is gone.
    """
    by_name = {table["name"]: table for table in tables if isinstance(table, dict)}
    digests = [_table_digest(by_name.get(name), columns) for name, columns in wanted]
    known = [digest for digest in digests if digest is not None]
    return "_".join(sorted(known)) if len(known) == len(digests) else None


def digest_of_label(text: str) -> str:
    """Return the digest in a recorded one, which may still be in MySQL's brackets: ``[('…',)]``."""
    return text.strip().strip("[]()").split(",")[0].strip().strip("'\"")


def _table_digest(table: Json, columns: Sequence[str]) -> str | None:
    match table:
        case {"columns": [*there], "rows": [*rows]} if set(columns) <= set(map(str, there)):
            places = [there.index(column) for column in columns]
        case _:
            return None
    hashes = sorted(
        _row_hash([row[place] for place in places]) for row in rows if isinstance(row, list)
    )
    # Of no rows the original's query makes NULL.
    return _md5(",".join(hashes)[:JOINED_CHARS_MAX]) if hashes else "None"


def _row_hash(cells: Sequence[Json]) -> str:
    return _md5(",".join(str(cell) for cell in cells if cell is not None))[:HASH_CHARS]


def _md5(text: str) -> str:
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _only(item: object) -> object:
    return item[0] if isinstance(item, tuple) and len(item) == 1 else item


def _is_row(found: Sequence[object], item: object) -> bool:
    """Tell whether the original leaves a value out: a row of several, among nothing but rows."""
    only_rows = all(isinstance(each, tuple) for each in found)
    return only_rows and isinstance(item, tuple) and len(item) != 1


def _plain(value: str) -> str:
    text = value.strip().strip("'\"").strip()
    if text.endswith("%"):
        return text[:-1].strip()
    if not text.startswith("[") and not text.endswith("]"):
        text = text.replace(",", "")
    return "0" if text.lower() in NOTHING else text


def _numbers(values: Sequence[str]) -> list[float] | None:
    try:
        return [float(value) for value in values]
    except ValueError:
        return None


def _same_numbers(given: Sequence[float], wanted: Sequence[float]) -> bool:
    left = list(wanted)
    for value in given:
        near = next((at for at, other in enumerate(left) if abs(value - other) <= TOLERANCE), None)
        if near is None:
            return False
        del left[near]
    return not left


def _split(text: str) -> Iterable[str]:
    """Yield the parts of a list between commas that are in no quotes; empty parts are left out."""
    current, quoted = "", False
    for char in text:
        if char in "'\"":
            quoted = not quoted
        elif char == "," and not quoted:
            if current:
                yield current
            current = ""
        else:
            current += char
    if current:
        yield current
