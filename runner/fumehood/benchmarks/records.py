"""From JSON values to records of a model, each still knowing where it stands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from fumehood.benchmarks.reading import Place, Placed, Problem, Unreadable
from fumehood.benchmarks.validation_errors import field_errors

M = TypeVar("M", bound=BaseModel)


class Identified(Protocol):
    """A record that says which task it is about."""

    @property
    def task_id(self) -> str:
        """Unique among the records that are read together."""
        ...


def validated(record: Placed[Any], model: type[M]) -> Placed[M]:
    """Return the record as the model has it: checked, defaults filled in.

    Raises:
        Unreadable: it is not valid; tells the first misfit, how many more there are, and carries all.
    """
    try:
        return Placed(model.model_validate(record.value), record.place)
    except ValidationError as error:
        misfits = field_errors(error, model)
    more = f" (and {len(misfits) - 1} more)" if len(misfits) > 1 else ""
    raise Unreadable(record.place, Problem.INVALID_RECORD, f"{misfits[0]}{more}", misfits)


def refuse_duplicates(records: Iterable[Placed[Identified]]) -> None:
    """Raise if two records are about one task.

    Raises:
        Unreadable: at the second of them; names the first.
    """
    seen: dict[str, Place] = {}
    for record in records:
        task_id = record.value.task_id
        first = seen.setdefault(task_id, record.place)
        if first is not record.place:
            reason = f"task_id: {task_id!r} was used before, at {first}"
            raise Unreadable(record.place, Problem.DUPLICATE_ID, reason)
