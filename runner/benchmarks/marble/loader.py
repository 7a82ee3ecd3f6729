"""MARBLE as a benchmark: three of its scenarios, each as a conversation of several seats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from runner.benchmarks.cases import cases_of
from runner.benchmarks.marble.bargaining import ABOUT as ABOUT_BARGAINING
from runner.benchmarks.marble.bargaining import bargaining_case
from runner.benchmarks.marble.database import ABOUT as ABOUT_DATABASE
from runner.benchmarks.marble.database import database_case
from runner.benchmarks.marble.record import Record
from runner.benchmarks.marble.werewolf import ABOUT as ABOUT_WEREWOLF
from runner.benchmarks.marble.werewolf import read_roles, werewolf_cases
from runner.benchmarks.reading import read_records
from runner.benchmarks.records import refuse_duplicates, validated
from runner.core.errors import InputError
from runner.core.json_values import JsonObject
from runner.core.task import About, Case, Suite

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
