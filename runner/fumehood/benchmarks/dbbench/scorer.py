"""Scores dbbench: compares answers and hashes tables by AgentBench's rules.

The original passes the agent's text to Python's ``eval``. Here the text is read as a literal, or
split in the way in which the original splits text that it cannot evaluate. An expression such as
``[1+1]`` is therefore not evaluated.
"""

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
"""Criterion of a question; ``label`` lists the right values."""
TABLES = "dbbench_tables"
"""Criterion of a change; ``md5`` is the digest of the task's tables at the end."""


class DbBench:
    """Scorer of dbbench. Both criteria require an answer, as in the original."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score and the native metrics."""
        if not any(item.get("op") in (ANSWER, TABLES) for item in gold.criteria):
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
            isinstance(value, str) for value in label
        ):
            # The original requires an answer. It would read an empty text as 0.
            return bool(answer.strip()) and same_answer(answer, [str(value) for value in label])
        case {"op": "dbbench_tables", "md5": str(digest)}:
            actual = tables_digest(_tables(evidence.final_state.get("tables")), _expected(task))
            return actual == digest_of_label(digest)
    raise SpecError(
        f"criteria[{index}]", "must be dbbench_answer with label, or dbbench_tables with md5"
    )


def _expected(task: Task) -> list[tuple[str, list[str]]]:
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
"""A row of one value that is not a literal, as MySQL's client shows it."""
HASH_CHARS = 5
JOINED_CHARS_MAX = 1024
"""Default of MySQL's ``group_concat_max_len``."""
ZERO_TEXTS = frozenset(
    {"", "none", "null", "undefined", "nan", "inf", "infinity", "-inf", "-infinity"}
)
"""Texts that count as 0, in any case."""
ANSWER_CHARS_MAX = 20_000
"""Longer text is not parsed as a literal."""


def same_answer(answer: str, label: Sequence[str]) -> bool:
    """Return whether an answer is right. Order, differences up to 0.01, commas and per cent signs
    do not count."""
    actual, expected = read_answer(answer), [_normalise(value) for value in label]
    numbers = _numbers(actual), _numbers(expected)
    if numbers[0] is not None and numbers[1] is not None:
        return _same_numbers(numbers[0], numbers[1])
    if len(actual) == len(expected) == 1:
        return actual == expected
    return set(actual) == set(expected)


def read_answer(text: str) -> list[str]:
    """Return the values of an answer; text that is not a list is one value."""
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return [_normalise(stripped)]
    try:
        values = ast.literal_eval(stripped) if len(stripped) <= ANSWER_CHARS_MAX else None
        if isinstance(values, list):
            only_rows = all(isinstance(item, tuple) for item in values)
            return [
                _normalise(str(_unpack(item)))
                for item in values
                if not (only_rows and _is_omitted_row(item))
            ]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    match = _ONE_VALUE.fullmatch(stripped)
    return [_normalise(part) for part in ([match[1]] if match else _split(stripped[1:-1]))]


def tables_digest(
    tables: Sequence[Json], expected: Iterable[tuple[str, Sequence[str]]]
) -> str | None:
    """Return one digest of several tables.

    Args:
        tables: Tables of the final state.
        expected: Name and columns of each table to include.

    Returns:
        None if a table or a column is missing.
    """
    by_name = {table["name"]: table for table in tables if isinstance(table, dict)}
    digests = [_table_digest(by_name.get(name), columns) for name, columns in expected]
    known = [digest for digest in digests if digest is not None]
    return "_".join(sorted(known)) if len(known) == len(digests) else None


def digest_of_label(text: str) -> str:
    """Return a recorded digest without the brackets of MySQL's client: ``[('…',)]``."""
    return text.strip().strip("[]()").split(",")[0].strip().strip("'\"")


def _table_digest(table: Json, columns: Sequence[str]) -> str | None:
    match table:
        case {"columns": [*names], "rows": [*rows]} if set(columns) <= set(map(str, names)):
            indices = [names.index(column) for column in columns]
        case _:
            return None
    hashes = sorted(
        _row_hash([row[index] for index in indices]) for row in rows if isinstance(row, list)
    )
    # The original's query returns NULL for an empty table.
    return _md5(",".join(hashes)[:JOINED_CHARS_MAX]) if hashes else "None"


def _row_hash(cells: Sequence[Json]) -> str:
    return _md5(",".join(str(cell) for cell in cells if cell is not None))[:HASH_CHARS]


def _md5(text: str) -> str:
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _unpack(item: object) -> object:
    return item[0] if isinstance(item, tuple) and len(item) == 1 else item


def _is_omitted_row(item: object) -> bool:
    """Return whether the original omits this item of a list of rows: a row of several values."""
    return isinstance(item, tuple) and len(item) != 1


def _normalise(value: str) -> str:
    text = value.strip().strip("'\"").strip()
    if text.endswith("%"):
        return text[:-1].strip()
    if not text.startswith("[") and not text.endswith("]"):
        text = text.replace(",", "")
    return "0" if text.lower() in ZERO_TEXTS else text


def _numbers(values: Sequence[str]) -> list[float] | None:
    try:
        return [float(value) for value in values]
    except ValueError:
        return None


def _same_numbers(actual: Sequence[float], expected: Sequence[float]) -> bool:
    remaining = list(expected)
    for value in actual:
        indices = (at for at, other in enumerate(remaining) if abs(value - other) <= TOLERANCE)
        match = next(indices, None)
        if match is None:
            return False
        del remaining[match]
    return not remaining


def _split(text: str) -> Iterable[str]:
    """Yield the non-empty parts of a text between unquoted commas."""
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
