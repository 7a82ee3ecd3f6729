"""Lists the task templates by world and by the faults that they allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fumehood.benchmarks.native.generate.draft import DraftTask
from fumehood.benchmarks.native.generate.templates import crud, files, retrieval, scheduling
from fumehood.benchmarks.seeded_choices import SeededChoices

Template = Callable[[SeededChoices, int], DraftTask]

WORLDS = ("crud", "retrieval", "files", "scheduling")

SOLVABLE: Mapping[str, Sequence[Template]] = {
    "crud": (crud.same_tier, crud.credit, crud.close_the_one, crud.merge_into, crud.open_or_move),
    "retrieval": (
        retrieval.find_number,
        retrieval.follow_reference,
        retrieval.larger_number,
        retrieval.all_by_one_author,
    ),
    "files": (
        files.append_line,
        files.change_setting,
        files.write_sum,
        files.follow_pointer,
        files.swap,
    ),
    "scheduling": (
        scheduling.shortly_after,
        scheduling.first_free_slot,
        scheduling.valid_or_else,
        scheduling.followers,
    ),
}
"""Solvable templates."""

UNSOLVABLE: Mapping[str, Sequence[Template]] = {
    "crud": (crud.close_if_settled, crud.missing_account),
    "retrieval": (retrieval.unanswered_question, retrieval.dangling_reference),
    "files": (files.create_if_missing, files.missing_source),
    "scheduling": (scheduling.name_is_taken, scheduling.invalid_minute),
}
"""Templates that mostly end with giving up."""

WITH_RATE_LIMIT: Mapping[str, Sequence[Template]] = {
    "crud": (crud.busy_system,),
    "retrieval": (retrieval.too_many_results,),
    "files": (files.busy_store,),
    "scheduling": (scheduling.busy_scheduler,),
}
"""Templates with a rate limit and an alternative."""

WITH_SOURCE: Mapping[str, Sequence[Template]] = {
    "crud": (crud.same_tier, crud.credit, crud.merge_into),
    "retrieval": (retrieval.find_number, retrieval.follow_reference),
    "files": (
        files.append_line,
        files.change_setting,
        files.write_sum,
        files.follow_pointer,
        files.swap,
    ),
    "scheduling": (),
}
"""Templates that read a source which may time out."""

WITH_TIMEOUT: Mapping[str, Sequence[Template]] = {
    "crud": (),
    "retrieval": (),
    "files": (),
    "scheduling": (scheduling.silent_list,),
}
"""Templates with a built-in timeout and an alternative."""
