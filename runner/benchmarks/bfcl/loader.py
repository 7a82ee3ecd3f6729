"""The suite argument ``bfcl:CATEGORY``."""

from __future__ import annotations

from collections.abc import Callable

from runner.benchmarks.bfcl import multi_turn, single_turn
from runner.benchmarks.bfcl.entries import Entry, entries
from runner.core.errors import InputError
from runner.core.json_values import JsonObject
from runner.core.task import About, Case, Suite

LICENCE = "Apache-2.0 (bfcl-eval 2026.3.23, Gorilla, UC Berkeley)"
MULTI_TURN = About(
    licence=LICENCE,
    criterion="BFCL's own multi_turn_checker, unmodified, in a process without privileges",
    judged="after every turn, all simulators' public attributes and what the calls answered; no words",
)
SINGLE_TURN = About(
    licence=LICENCE,
    criterion="BFCL's own ast_checker, unmodified; for (ir)relevance, whether anything was called",
    judged="names and arguments of the calls; nothing is carried out",
)

CATEGORIES: dict[str, Callable[[Entry, str], Case]] = {
    "multi_turn_base": multi_turn.case_of,
    "multi_turn_miss_func": multi_turn.case_of,
    "multi_turn_miss_param": multi_turn.case_of,
    "multi_turn_long_context": multi_turn.case_of,
    "simple_python": single_turn.case_of,
    "multiple": single_turn.case_of,
    "parallel": single_turn.case_of,
    "parallel_multiple": single_turn.case_of,
    "live_simple": single_turn.case_of,
    "live_multiple": single_turn.case_of,
    "live_parallel": single_turn.case_of,
    "live_parallel_multiple": single_turn.case_of,
    "irrelevance": single_turn.case_of,
    "live_irrelevance": single_turn.case_of,
    "live_relevance": single_turn.case_of,
}


class Bfcl:
    """Argument: a category."""

    def load(self, argument: str) -> Suite:
        """Return the entries of a category."""
        if argument not in CATEGORIES:
            raise InputError(
                f"bfcl:CATEGORY, where CATEGORY is one of {', '.join(CATEGORIES)}; got {argument!r}"
            )
        case_of = CATEGORIES[argument]
        cases = tuple(case_of(entry, argument) for entry in entries(argument))
        about = MULTI_TURN if case_of is multi_turn.case_of else SINGLE_TURN
        return Suite(f"bfcl:{argument}", cases, about=about)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: the entries are read from BFCL's package."""
        return False
