"""Every story, by world and by what it has room for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fumehood.benchmarks.native.generate.draft import Scene
from fumehood.benchmarks.native.generate.templates import crud, files, retrieval, scheduling
from fumehood.benchmarks.seeded_choices import Draws

Story = Callable[[Draws, int], Scene]

WORLDS = ("crud", "retrieval", "files", "scheduling")

TO_BE_DONE: Mapping[str, Sequence[Story]] = {
    "crud": (crud.same_tier, crud.pay_in, crud.close_the_one, crud.fold_into, crud.open_or_move),
    "retrieval": (
        retrieval.say_the_number,
        retrieval.follow_reference,
        retrieval.which_is_more,
        retrieval.all_by_one_author,
    ),
    "files": (
        files.append_line,
        files.change_setting,
        files.add_up,
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
"""Stories that end well."""

TO_BE_LEFT: Mapping[str, Sequence[Story]] = {
    "crud": (crud.settled_only, crud.nobody),
    "retrieval": (retrieval.not_on_the_shelf, retrieval.dangling_reference),
    "files": (files.unless_there, files.nothing_to_copy),
    "scheduling": (scheduling.name_is_taken, scheduling.no_such_minute),
}
"""Stories that, mostly, end with giving up."""

BUSY: Mapping[str, Sequence[Story]] = {
    "crud": (crud.busy_desk,),
    "retrieval": (retrieval.too_many_hits,),
    "files": (files.busy_store,),
    "scheduling": (scheduling.crowded_time,),
}
"""Stories with a rate limit, and with another way."""

READ_FROM: Mapping[str, Sequence[Story]] = {
    "crud": (crud.same_tier, crud.pay_in, crud.fold_into),
    "retrieval": (retrieval.say_the_number, retrieval.follow_reference),
    "files": (
        files.append_line,
        files.change_setting,
        files.add_up,
        files.follow_pointer,
        files.swap,
    ),
    "scheduling": (),
}
"""Stories with a source that may fall silent."""

SILENT: Mapping[str, Sequence[Story]] = {
    "crud": (),
    "retrieval": (),
    "files": (),
    "scheduling": (scheduling.silent_list,),
}
"""Stories with a timeout of their own, and with another way."""
