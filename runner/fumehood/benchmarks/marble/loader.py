"""MARBLE as a benchmark: three of its scenarios, each as a conversation of several seats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from fumehood.benchmarks.cases import cases_of
from fumehood.benchmarks.marble.record import Record
from fumehood.benchmarks.marble.tasks_bargaining import ABOUT as ABOUT_BARGAINING
from fumehood.benchmarks.marble.tasks_bargaining import bargaining_case
from fumehood.benchmarks.marble.tasks_database import ABOUT as ABOUT_DATABASE
from fumehood.benchmarks.marble.tasks_database import database_case
from fumehood.benchmarks.marble.tasks_werewolf import ABOUT as ABOUT_WEREWOLF
from fumehood.benchmarks.marble.tasks_werewolf import read_roles, werewolf_cases
from fumehood.benchmarks.reading import read_records
from fumehood.benchmarks.records import refuse_duplicates, validated
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import About, Case, Suite

OF_RECORDS: Mapping[str, tuple[Callable[[Record], Case], About]] = {
    "bargaining": (bargaining_case, ABOUT_BARGAINING),
    "database": (database_case, ABOUT_DATABASE),
}
WEREWOLF = "werewolf"


class Marble:
    """Argument: ``database:FILE``, ``bargaining:FILE`` or ``werewolf[:CONFIG]``."""

    def load(self, argument: str) -> Suite:
        """Return the tasks of a scenario."""
        scenario, _, path = argument.partition(":")
        if scenario == WEREWOLF:
            roles = read_roles(Path(path)) if path else None
            return Suite(f"marble:{WEREWOLF}", werewolf_cases(roles), about=ABOUT_WEREWOLF)
        if scenario not in OF_RECORDS or not path:
            raise InputError(
                f"say marble:database:FILE, marble:bargaining:FILE or marble:werewolf[:CONFIG]: {argument!r}"
            )
        case_of, about = OF_RECORDS[scenario]
        records = [validated(record, Record) for record in read_records(Path(path))]
        refuse_duplicates(records)
        for record in records:
            if record.value.scenario != scenario:
                raise InputError(
                    f"{record.place}: is of the scenario {record.value.scenario}, not {scenario}"
                )
        return Suite(f"marble:{scenario}", cases_of(records, case_of), about=about)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: MARBLE's own records of other scenarios look the same."""
        return False
