"""Reads JSON and text files of benchmarks; every error is one line that names file, line and
field."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from fumehood.benchmarks.shared.validation_errors import FieldError
from fumehood.benchmarks.shared.yaml_text import (
    JsonLoader,
    line_and_problem,
    line_of,
    lines_of_items,
    load_yaml,
)
from fumehood.core.errors import InputError
from fumehood.core.json_values import finite_number, no_constant, unique_keys

T_co = TypeVar("T_co", covariant=True)

YAML_SUFFIXES = (".yaml", ".yml")
DEPTH_LIMIT = 100
"""Limit of nested lists and objects in a record, so that records can be copied and sent safely."""


class Problem(Enum):
    """What is wrong with a file."""

    NOT_FOUND = "not_found"
    NOT_A_FILE = "not_a_file"
    INVALID_UTF8 = "invalid_utf8"
    INVALID_JSON = "invalid_json"
    INVALID_RECORD = "invalid_record"
    """The file is JSON, but the record does not have the format."""
    DUPLICATE_ID = "duplicate_id"
    NOT_AS_PUBLISHED = "not_as_published"
    """The content differs from the published file or from the manifest."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a record."""

    path: Path
    line: int | None = None
    """Line number from 1; None for the file as a whole."""
    index: int | None = None
    """Index from 0 in the JSON list of the file; None if the file is no list."""
    shared: Path | None = None
    """File that states what tasks share; None if the record states everything itself."""
    shared_keys: tuple[str, ...] = ()
    """Keys of the record whose values come from ``shared``."""

    def of_field(self, field: str) -> Place:
        """Return where a field of the record is stated, such as ``policy.rules[0]``."""
        steps = [int(step) if step.isdecimal() else step for step in re.findall(r"\w+", field)]
        if self.shared is None or not steps or steps[0] not in self.shared_keys:
            return self
        return Place(self.shared, line_of(read_text(self.shared), steps))

    def __str__(self) -> str:
        """Return ``file:line``, or ``file[index]`` for an item of a JSON list."""
        if self.index is not None:
            return f"{self.path}[{self.index}]"
        return str(self.path) if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Placed(Generic[T_co]):
    """A value with the place that it was read from."""

    value: T_co
    place: Place


class Unreadable(InputError):
    """A file, or a record in it, that cannot be used."""

    def __init__(
        self, place: Place, problem: Problem, reason: str, errors: Sequence[FieldError] = ()
    ) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.problem = problem
        self.errors = tuple(errors)
        """All errors of the record; the message states the first."""


class Mistakes(InputError):
    """All mistakes of a suite; the message states the first."""

    def __init__(self, mistakes: Sequence[InputError]) -> None:
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        super().__init__(f"{mistakes[0]}{more}")
        self.mistakes = tuple(mistakes)


def read_records(path: Path, *, lenient: bool = False) -> Iterator[Placed[Any]]:
    """Yield the JSON values of a file, in order.

    A ``.json`` or ``.yaml`` file contains one record or a list of records. Any other file contains
    one record per line. Lines end with LF, CR or both; blank lines are skipped.

    Args:
        path: the file.
        lenient: accept what Python's JSON reader accepts: NaN, Infinity, numbers out of range,
            duplicate keys (the last one counts), lone surrogates and any depth.

    Raises:
        Unreadable: the file cannot be read, or is not JSON.
    """
    if path.suffix in YAML_SUFFIXES:
        text = read_text(path)
        value = _parse_yaml(text, path)
        if not isinstance(value, list):
            yield Placed(value, Place(path))
            return
        for start, item in zip(lines_of_items(text), value, strict=True):
            yield Placed(item, Place(path, start))
        return
    if path.suffix == ".json":
        value = _parse(read_text(path), Place(path), lenient)
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield Placed(item, Place(path, index=index))
        else:
            yield Placed(value, Place(path))
        return
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        text = line.strip()
        if text:
            place = Place(path, number)
            yield Placed(_parse(text, place, lenient), place)


def read_json(path: Path) -> Any:
    """Return the value of a third-party JSON file, read leniently.

    Raises:
        Unreadable: the file cannot be read, or is not JSON.
    """
    return _parse(read_text(path), Place(path), lenient=True)


def read_list(path: Path) -> list[Placed[Any]]:
    """Return the records of a third-party JSON file, read leniently.

    Raises:
        Unreadable: the file cannot be read, or is not a list with records.
    """
    values = read_json(path)
    if not isinstance(values, list) or not values:
        raise Unreadable(Place(path), Problem.INVALID_RECORD, "must be a list with records")
    return [Placed(value, Place(path, index=index)) for index, value in enumerate(values)]


def read_text(path: Path) -> str:
    """Return the content of a text file, decompressed if its name ends in ``.gz``.

    Raises:
        Unreadable: it cannot be read.
    """
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", newline=None) as file:
            return str(file.read())
    except FileNotFoundError:
        raise Unreadable(Place(path), Problem.NOT_FOUND, "there is no such file") from None
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8: byte {error.object[error.start]:#04x} at offset {error.start}"
        raise Unreadable(Place(path), Problem.INVALID_UTF8, reason) from None
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise Unreadable(Place(path), Problem.NOT_A_FILE, reason) from None
    except (EOFError, zlib.error) as error:
        raise Unreadable(Place(path), Problem.NOT_A_FILE, f"cannot be unpacked: {error}") from None


def _parse(text: str, place: Place, lenient: bool) -> Any:
    try:
        if lenient:
            return json.loads(text)
        value = json.loads(
            text,
            object_pairs_hook=unique_keys,
            parse_float=finite_number,
            parse_constant=no_constant,
        )
        _refuse_lone_surrogates(text, value)
    except json.JSONDecodeError as error:
        error_place = place if place.line is not None else Place(place.path, error.lineno)
        reason = f"is not JSON: {error.msg} (column {error.colno})"
        raise Unreadable(error_place, Problem.INVALID_JSON, reason) from None
    except RecursionError:
        raise Unreadable(place, Problem.INVALID_JSON, "is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(place, Problem.INVALID_JSON, f"is not JSON: {error}") from None
    # A text with fewer brackets is not nested deeper, and most records have few.
    if text.count("{") + text.count("[") > DEPTH_LIMIT and _is_deeper(value, DEPTH_LIMIT):
        raise Unreadable(
            place, Problem.INVALID_JSON, f"is nested more than {DEPTH_LIMIT} levels deep"
        )
    return value


def _parse_yaml(text: str, path: Path) -> Any:
    place, reason = Place(path), ""
    try:
        # As JSON text, so that the same values are refused.
        return _parse(json.dumps(load_yaml(text, JsonLoader)), place, lenient=False)
    except yaml.MarkedYAMLError as error:
        line, reason = line_and_problem(text, error)
        place = Place(path, line)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
    except (TypeError, ValueError) as error:
        reason = f"contains what JSON does not have: {error}"
    except RecursionError:
        reason = "is nested too deeply"
    raise Unreadable(place, Problem.INVALID_JSON, f"is not YAML: {reason}")


def _refuse_lone_surrogates(text: str, value: Any) -> None:
    # They can come from escapes only; a string that contains one cannot be sent to an agent.
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("a string contains a lone surrogate") from None


def _is_deeper(value: Any, levels: int) -> bool:
    containers = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        containers = [
            item
            for container in containers
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not containers:
            return False
    return bool(containers)
