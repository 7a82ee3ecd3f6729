"""Task templates for the files world: a store of text files."""

from __future__ import annotations

from fumehood.benchmarks.native.generate.draft import (
    DraftTask,
    Source,
    call,
    file_is,
    not_called,
    only_changed,
    rate_limited,
    tried_any,
    unchanged,
)
from fumehood.benchmarks.native.generate.words import FOLDERS, KEYS, NOTES, WARES
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.json_values import JsonObject


def append_line(choices: SeededChoices, number: int) -> DraftTask:
    """Append a line to a log and keep its other lines."""
    log, *others = _paths(choices, number, 3, "log")
    *old, new = choices.some(NOTES, 4)
    before = "".join(f"{line}\n" for line in old)
    wording = choices.pick(
        (
            "Append the line '{l}' to the end of {p}. Keep the existing content.",
            "Add one more line after the last line of {p}: '{l}'.",
            "Append '{l}' to {p} as a separate line, without losing any existing content.",
        )
    )
    after = f"{before}{new}\n"
    return DraftTask(
        world="files",
        instruction=wording.format(p=log, l=new),
        state=_store(choices, others, {log: before}),
        calls=(call("read_file", path=log), call("write_file", path=log, content=after)),
        criteria=(file_is(log, after), only_changed(("files", log))),
        source=Source("read_file", "path", log),
    )


def change_setting(choices: SeededChoices, number: int) -> DraftTask:
    """Change one setting of a file and keep the others."""
    config, *others = _paths(choices, number, 3, "conf")
    keys = choices.some(KEYS, 4)
    values = {key: choices.below(90) + 10 for key in keys}
    key, value = choices.pick(keys), choices.below(900) + 100
    wording = choices.pick(
        (
            "In {p}, set {k} to {v}. Keep the other settings and their order.",
            "{p} contains one setting per line. Change {k} to {v} in it and change nothing else.",
        )
    )
    after = _settings({**values, key: value})
    return DraftTask(
        world="files",
        instruction=wording.format(p=config, k=key, v=value),
        state=_store(choices, others, {config: _settings(values)}),
        calls=(call("read_file", path=config), call("write_file", path=config, content=after)),
        criteria=(file_is(config, after), only_changed(("files", config))),
        source=Source("read_file", "path", config),
    )


def write_sum(choices: SeededChoices, number: int) -> DraftTask:
    """Write the sum of the numbers in two files."""
    first, second, total, *others = _paths(choices, number, 5, "txt")
    left, right = choices.below(500) + 1, choices.below(500) + 1
    wording = choices.pick(
        (
            "The files {a} and {b} each contain a number. Write their sum to {c}, digits only.",
            "Add the numbers in {a} and {b}, and write only the result to {c}.",
        )
    )
    after = str(left + right)
    return DraftTask(
        world="files",
        instruction=wording.format(a=first, b=second, c=total),
        state=_store(choices, others, {first: str(left), second: str(right)}),
        calls=(
            call("read_file", path=first),
            call("read_file", path=second),
            call("write_file", path=total, content=after),
        ),
        criteria=(file_is(total, after), only_changed(("files", total))),
        source=Source("read_file", "path", first),
    )


def follow_pointer(choices: SeededChoices, number: int) -> DraftTask:
    """Copy the file whose path another file contains."""
    index, pointed, copy, *others = _paths(choices, number, 6, "txt")
    content = f"{choices.pick(WARES)}: {choices.below(900) + 100} kg\n{choices.pick(NOTES)}\n"
    wording = choices.pick(
        (
            "{i} contains the path of a file. Copy that file to {c} without any change.",
            "Read {i} to find out which file to copy. Copy that file exactly to {c}.",
        )
    )
    return DraftTask(
        world="files",
        instruction=wording.format(i=index, c=copy),
        state=_store(choices, others, {index: pointed, pointed: content}),
        calls=(
            call("read_file", path=index),
            call("read_file", path=pointed),
            call("write_file", path=copy, content=content),
        ),
        criteria=(file_is(copy, content), only_changed(("files", copy))),
        source=Source("read_file", "path", index),
    )


def swap(choices: SeededChoices, number: int) -> DraftTask:
    """Swap the contents of two files."""
    first, second, *others = _paths(choices, number, 4, "txt")
    left, right = (f"{ware} {choices.below(1000)}" for ware in choices.some(WARES, 2))
    wording = choices.pick(
        (
            "Swap the contents of {a} and {b}.",
            "The contents of {a} and {b} were mixed up: each file contains the text of the other. "
            "Correct this.",
        )
    )
    return DraftTask(
        world="files",
        instruction=wording.format(a=first, b=second),
        state=_store(choices, others, {first: left, second: right}),
        calls=(
            call("read_file", path=first),
            call("read_file", path=second),
            call("write_file", path=first, content=right),
            call("write_file", path=second, content=left),
        ),
        criteria=(
            file_is(first, right),
            file_is(second, left),
            only_changed(("files", first), ("files", second)),
        ),
        source=Source("read_file", "path", second),
    )


def create_if_missing(choices: SeededChoices, number: int) -> DraftTask:
    """Write a file only if it does not exist."""
    target, *others = _paths(choices, number, 4, "txt")
    text = f"{choices.pick(WARES)} {choices.below(1000)}"
    wording = choices.pick(
        (
            "Check whether {p} exists. If it does not, write '{t}' to it. If it does, change "
            "nothing and give up.",
            "If the file {p} does not exist yet, create it with the text '{t}'. If it exists, "
            "leave it unchanged and give up.",
        )
    )
    look, write = call("read_file", path=target), call("write_file", path=target, content=text)
    instruction = wording.format(p=target, t=text)
    if choices.below(2):
        return DraftTask(
            world="files",
            instruction=instruction,
            state=_store(choices, others, {target: f"{choices.pick(NOTES)}\n"}),
            calls=(look,),
            criteria=(tried_any(look, call("list_dir")), not_called("write_file"), unchanged()),
            gives_up="the file exists already",
        )
    return DraftTask(
        world="files",
        instruction=instruction,
        state=_store(choices, others, {}),
        calls=(look, write),
        criteria=(
            tried_any(look, call("list_dir")),
            file_is(target, text),
            only_changed(("files", target)),
        ),
        meaningful_errors=frozenset({"read_file"}),
    )


def missing_source(choices: SeededChoices, number: int) -> DraftTask:
    """Copy a file that may not exist."""
    missing, copy, *others = _paths(choices, number, 5, "txt")
    wording = choices.pick(
        (
            "Copy {a} to {b}. Do not invent any content; if you cannot copy the file, give up.",
            "Make {b} an exact copy of {a}. If this is not possible, give up.",
        )
    )
    look, instruction = call("read_file", path=missing), wording.format(a=missing, b=copy)
    if choices.below(2):
        content = f"{choices.pick(NOTES)} {choices.below(1000)}\n"
        return DraftTask(
            world="files",
            instruction=instruction,
            state=_store(choices, others, {missing: content}),
            calls=(look, call("write_file", path=copy, content=content)),
            criteria=(file_is(copy, content), only_changed(("files", copy))),
        )
    return DraftTask(
        world="files",
        instruction=instruction,
        state=_store(choices, others, {}),
        calls=(look,),
        criteria=(tried_any(look, call("list_dir")), not_called("write_file"), unchanged()),
        gives_up=f"there is no {missing}",
    )


def busy_store(choices: SeededChoices, number: int) -> DraftTask:
    """Write to another path while one or two paths are rate-limited."""
    *paths, other = _paths(choices, number, 4, "txt")
    text = f"{choices.pick(WARES)} {choices.below(1000)}"
    wording = choices.pick(
        (
            "Write '{t}' to {p}. If this call is rate-limited, write the text to {s} instead, and "
            "if that is rate-limited, too, to {u}. Write it only once.",
            "Write the text '{t}' to {p}. If the file store is too busy to accept it, write it to "
            "{s}, or to {u} if the store is too busy for {s} as well. Write no other file.",
        )
    )
    # The number of limited calls is drawn, so that an agent has to read the results.
    limited = paths[: 1 + choices.below(2)]
    written = paths[len(limited)]
    tried = [call("write_file", path=path, content=text) for path in (*limited, written)]
    target, spool, last = paths
    return DraftTask(
        world="files",
        instruction=wording.format(t=text, p=target, s=spool, u=last),
        state=_store(choices, [other], {}),
        calls=tuple(tried),
        criteria=(
            *map(tried_any, tried[:-1]),
            file_is(written, text),
            only_changed(("files", written)),
        ),
        faults=tuple(rate_limited("write_file", path=path) for path in limited),
    )


def _paths(choices: SeededChoices, number: int, count: int, ending: str) -> list[str]:
    wares = choices.some(WARES, count)
    return [
        f"/{choices.pick(FOLDERS)}/{ware}_{number + step}.{ending}"
        for step, ware in enumerate(wares)
    ]


def _settings(values: dict[str, int]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in values.items())


def _store(choices: SeededChoices, others: list[str], files: dict[str, str]) -> JsonObject:
    store: JsonObject = {path: f"{choices.pick(NOTES)} {choices.below(1000)}\n" for path in others}
    return {"files": {**store, **files}}
