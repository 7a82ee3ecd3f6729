"""Converts JSON values to validated records and records to cases; every error names file and
line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from fumehood.benchmarks.shared.in_memory import open_task
from fumehood.benchmarks.shared.reading import Mistakes, Place, Placed, Problem, Unreadable
from fumehood.benchmarks.shared.validation_errors import field_errors
from fumehood.core.errors import InputError, SpecError
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.task import Case

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class StrictRecord(BaseModel):
    """Base of record models: refuses unknown keys and converts no value (``"3"`` is not a
    number)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Identified(Protocol):
    """A record with the ID of its task."""

    @property
    def task_id(self) -> str:
        """Unique among the records that are read together."""
        ...


def validated(record: Placed[Any], model: type[M]) -> Placed[M]:
    """Return the record as an instance of the model.

    Raises:
        Unreadable: the record is invalid. The message states the first error and the number of
            others; the exception carries all.
    """
    try:
        return Placed(model.model_validate(record.value), record.place)
    except ValidationError as error:
        errors = field_errors(error, model)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    raise Unreadable(record.place, Problem.INVALID_RECORD, f"{errors[0]}{more}", errors)


def numbered(
    records: Iterable[Placed[Any]], model: type[M], prefix: str
) -> list[Placed[tuple[str, M]]]:
    """Return the records, validated, each with its task ID: ``prefix`` and its index.

    Raises:
        Unreadable: a record is invalid.
    """
    return [
        Placed((f"{prefix}{index}", validated(record, model).value), record.place)
        for index, record in enumerate(records)
    ]


def refuse_duplicates(records: Iterable[Placed[Identified]]) -> None:
    """Raise if two records have the same task ID.

    Raises:
        Unreadable: at the second record; names the place of the first.
    """
    seen: dict[str, Place] = {}
    for record in records:
        task_id = record.value.task_id
        first = seen.setdefault(task_id, record.place)
        if first is not record.place:
            reason = f"task_id: {task_id!r} is already used at {first}"
            raise Unreadable(record.place, Problem.DUPLICATE_ID, reason)


def cases_of(records: Iterable[Placed[T]], case_of: Callable[[T], Case]) -> tuple[Case, ...]:
    """Return the case of each record. Each task is opened once, so that errors show before a run.

    Raises:
        Unreadable: a world, a state or a fault plan cannot be used; names the place of the record.
    """
    cases: list[Case] = []
    mistakes: dict[str, Unreadable] = {}
    for record in records:
        try:
            cases.append(_placed_case(record, case_of))
        except Unreadable as mistake:
            mistakes[str(mistake)] = mistake  # That of a shared part occurs once.
    if mistakes:
        first, *others = mistakes.values()
        raise Mistakes([first, *others]) if others else first
    return tuple(cases)


def opened(case: Case) -> Case:
    """Return the case after opening its task once.

    Raises:
        SpecError: world, state or fault plan cannot be used.
    """
    open_task(case.task, MemoryRecorder())
    return case


def _placed_case(record: Placed[T], case_of: Callable[[T], Case]) -> Case:
    try:
        return opened(case_of(record.value))
    except InputError as error:
        place = record.place.of_field(error.field if isinstance(error, SpecError) else "")
        raise Unreadable(place, Problem.INVALID_RECORD, str(error)) from None
