"""From records to cases: whatever is wrong with one is told with its file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from fumehood.benchmarks.in_memory import Notebook, open_task
from fumehood.benchmarks.reading import Placed, Problem, Unreadable
from fumehood.core.errors import InputError
from fumehood.core.task import Case

T = TypeVar("T")


def cases_of(records: Iterable[Placed[T]], case_of: Callable[[T], Case]) -> tuple[Case, ...]:
    """Return each record's case, having opened its task once, so that none fails when it is run.

    Raises:
        Unreadable: a world, a state or a fault plan cannot be used; names the place of the record.
    """
    return tuple(_case(record, case_of) for record in records)


def _case(record: Placed[T], case_of: Callable[[T], Case]) -> Case:
    try:
        return opened(case_of(record.value))
    except InputError as error:
        raise Unreadable(record.place, Problem.INVALID_RECORD, str(error)) from None


def opened(case: Case) -> Case:
    """Return the case after its task was opened once.

    Raises:
        SpecError: world, state or fault plan cannot be used.
    """
    open_task(case.task, Notebook())
    return case
