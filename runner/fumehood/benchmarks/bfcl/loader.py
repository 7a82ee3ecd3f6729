"""The suite argument ``bfcl:CATEGORY``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from fumehood.benchmarks.bfcl import memory_tasks as memory
from fumehood.benchmarks.bfcl import multi_turn, single_turn
from fumehood.benchmarks.bfcl.entries import Entry, entries
from fumehood.benchmarks.bfcl.memory_written import memories
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import About, Case, Suite

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
MEMORY = About(
    licence=LICENCE,
    criterion="BFCL's own agentic_checker, unmodified, in a process without privileges",
    judged="whether the last answer has one of the right answers in it; not what is in the memory",
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
MEMORIES = ("memory_kv", "memory_rec_sum")
CHATS = "chats"
"""Of a memory: the conversations alone, without a question."""
LEFT_OUT = {
    "memory_vector": "it needs sentence-transformers, faiss and a model to download (gigabytes); "
    "take bfcl:memory_kv or bfcl:memory_rec_sum",
    "web_search": "it needs the live web through a paid search service, so no score could be had twice; "
    "for questions over documents that stay the same see docs/snapshots.md",
}
"""Category → why it is not here."""


class Bfcl:
    """Argument: a category; of a memory also ``CATEGORY:chats`` or ``CATEGORY:FOLDER``."""

    def load(self, argument: str) -> Suite:
        """Return the entries of a category."""
        category, _, more = argument.partition(":")
        for left_out, reason in LEFT_OUT.items():
            if category.startswith(left_out):
                raise InputError(f"bfcl:{argument} is left out: {reason}")
        if category in MEMORIES:
            return Suite(f"bfcl:{argument}", tuple(_of_memory(category, more)), about=MEMORY)
        if argument not in CATEGORIES:
            known = ", ".join((*CATEGORIES, *MEMORIES))
            raise InputError(f"bfcl:CATEGORY, where CATEGORY is one of {known}; got {argument!r}")
        case_of = CATEGORIES[argument]
        cases = tuple(case_of(entry, argument) for entry in entries(argument))
        about = MULTI_TURN if case_of is multi_turn.case_of else SINGLE_TURN
        return Suite(f"bfcl:{argument}", cases, about=about)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: the entries are read from BFCL's package."""
        return False


def _of_memory(category: str, more: str) -> Iterable[Case]:
    if not more:
        return memory.whole(category)
    if more == CHATS:
        return memory.conversations(category)
    remembered = memories(Path(more), memory.class_of(category), memory.SCENARIOS)
    return memory.after(category, remembered)
