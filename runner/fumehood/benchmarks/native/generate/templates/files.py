"""Stories over a store of text files."""

from __future__ import annotations

from fumehood.benchmarks.native.generate.draft import (
    Scene,
    Source,
    call,
    file_is,
    not_called,
    only_changed,
    tried_any,
    unchanged,
)
from fumehood.benchmarks.native.generate.words import FOLDERS, KEYS, NOTES, WARES
from fumehood.benchmarks.seeded_choices import Draws
from fumehood.core.json_values import JsonObject


def append_line(draws: Draws, number: int) -> Scene:
    """Add a line to a log without losing the others."""
    log, *others = _paths(draws, number, 3, "log")
    *old, new = draws.some(NOTES, 4)
    before = "".join(f"{line}\n" for line in old)
    asked = draws.pick(
        (
            "Add the line '{l}' at the end of {p}. What is there already has to stay.",
            "{p} gets one more line, after all the others: '{l}'.",
            "Append '{l}' as a line of its own to {p}, which must not lose anything.",
        )
    )
    after = f"{before}{new}\n"
    return Scene(
        world="files",
        instruction=asked.format(p=log, l=new),
        state=_store(draws, others, {log: before}),
        calls=(call("read_file", path=log), call("write_file", path=log, content=after)),
        criteria=(file_is(log, after), only_changed(("files", log))),
        source=Source("read_file", "path", log),
    )


def change_setting(draws: Draws, number: int) -> Scene:
    """Change one setting of a file and keep the others."""
    config, *others = _paths(draws, number, 3, "conf")
    keys = draws.some(KEYS, 4)
    values = {key: draws.below(90) + 10 for key in keys}
    key, value = draws.pick(keys), draws.below(900) + 100
    asked = draws.pick(
        (
            "In {p}, set {k} to {v}. The other settings stay, and so does their order.",
            "{p} holds settings, one a line. Change {k} to {v} there and nothing else.",
        )
    )
    after = _settings({**values, key: value})
    return Scene(
        world="files",
        instruction=asked.format(p=config, k=key, v=value),
        state=_store(draws, others, {config: _settings(values)}),
        calls=(call("read_file", path=config), call("write_file", path=config, content=after)),
        criteria=(file_is(config, after), only_changed(("files", config))),
        source=Source("read_file", "path", config),
    )


def add_up(draws: Draws, number: int) -> Scene:
    """Write the sum of two numbers that stand in two files."""
    first, second, total, *others = _paths(draws, number, 5, "txt")
    left, right = draws.below(500) + 1, draws.below(500) + 1
    asked = draws.pick(
        (
            "{a} and {b} hold a number each. Write their sum, digits only, to {c}.",
            "Add up the numbers in {a} and {b} and put nothing but the result into {c}.",
        )
    )
    after = str(left + right)
    return Scene(
        world="files",
        instruction=asked.format(a=first, b=second, c=total),
        state=_store(draws, others, {first: str(left), second: str(right)}),
        calls=(
            call("read_file", path=first),
            call("read_file", path=second),
            call("write_file", path=total, content=after),
        ),
        criteria=(file_is(total, after), only_changed(("files", total))),
        source=Source("read_file", "path", first),
    )


def follow_pointer(draws: Draws, number: int) -> Scene:
    """Copy the file whose name another file holds."""
    index, pointed, copy, *others = _paths(draws, number, 6, "txt")
    content = f"{draws.pick(WARES)}: {draws.below(900) + 100} kg\n{draws.pick(NOTES)}\n"
    asked = draws.pick(
        (
            "{i} names a file. Make {c} an exact copy of the file it names.",
            "Which file is meant stands in {i}. Copy that file to {c}, to the letter.",
        )
    )
    return Scene(
        world="files",
        instruction=asked.format(i=index, c=copy),
        state=_store(draws, others, {index: pointed, pointed: content}),
        calls=(
            call("read_file", path=index),
            call("read_file", path=pointed),
            call("write_file", path=copy, content=content),
        ),
        criteria=(file_is(copy, content), only_changed(("files", copy))),
        source=Source("read_file", "path", index),
    )


def swap(draws: Draws, number: int) -> Scene:
    """Swap what two files hold."""
    first, second, *others = _paths(draws, number, 4, "txt")
    left, right = (f"{ware} {draws.below(1000)}" for ware in draws.some(WARES, 2))
    asked = draws.pick(
        (
            "Swap what {a} and {b} hold.",
            "{a} and {b} were mixed up: each holds what the other should. Put that right.",
        )
    )
    return Scene(
        world="files",
        instruction=asked.format(a=first, b=second),
        state=_store(draws, others, {first: left, second: right}),
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


def unless_there(draws: Draws, number: int) -> Scene:
    """Write a file, but only where none is."""
    target, *others = _paths(draws, number, 4, "txt")
    text = f"{draws.pick(WARES)} {draws.below(1000)}"
    asked = draws.pick(
        (
            "Write '{t}' to {p}, unless {p} is there already: then change nothing and give up. Look first.",
            "If there is no {p} yet, create it with the text '{t}'. If there is one, give up and leave it.",
        )
    )
    look, write = call("read_file", path=target), call("write_file", path=target, content=text)
    instruction = asked.format(p=target, t=text)
    if draws.below(2):
        return Scene(
            world="files",
            instruction=instruction,
            state=_store(draws, others, {target: f"{draws.pick(NOTES)}\n"}),
            calls=(look,),
            criteria=(tried_any(look, call("list_dir")), not_called("write_file"), unchanged()),
            gives_up="the file is there already",
        )
    return Scene(
        world="files",
        instruction=instruction,
        state=_store(draws, others, {}),
        calls=(look, write),
        criteria=(
            tried_any(look, call("list_dir")),
            file_is(target, text),
            only_changed(("files", target)),
        ),
        telling=frozenset({"read_file"}),
    )


def nothing_to_copy(draws: Draws, number: int) -> Scene:
    """Copy a file that does not exist."""
    missing, copy, *others = _paths(draws, number, 5, "txt")
    asked = draws.pick(
        (
            "Copy {a} to {b}. Do not make anything up.",
            "{b} is to hold exactly what {a} holds.",
        )
    )
    look = call("read_file", path=missing)
    return Scene(
        world="files",
        instruction=asked.format(a=missing, b=copy),
        state=_store(draws, others, {}),
        calls=(look,),
        criteria=(tried_any(look, call("list_dir")), not_called("write_file"), unchanged()),
        gives_up=f"there is no {missing}",
    )


def busy_store(draws: Draws, number: int) -> Scene:
    """Write to the spool where the store is too busy."""
    target, spool, *others = _paths(draws, number, 4, "txt")
    text = f"{draws.pick(WARES)} {draws.below(1000)}"
    asked = draws.pick(
        (
            "Write '{t}' to {p}. If that is too much for the store at the moment, write it to {s} instead.",
            "Put the text '{t}' into {p}, or, when the store is too busy for that, into {s}.",
        )
    )
    first, second = (call("write_file", path=path, content=text) for path in (target, spool))
    return Scene(
        world="files",
        instruction=asked.format(t=text, p=target, s=spool),
        state=_store(draws, others, {}),
        calls=(first, second),
        criteria=(
            tried_any(first),
            file_is(spool, text),
            only_changed(("files", spool)),
        ),
        faults=(
            {
                "fault_type": "rate_limit",
                "trigger": {"on_tool": "write_file", "when_arg_matches": {"path": target}},
                "payload": {"retry_after_ms": 60_000},
            },
        ),
    )


def _paths(draws: Draws, number: int, count: int, ending: str) -> list[str]:
    wares = draws.some(WARES, count)
    return [
        f"/{draws.pick(FOLDERS)}/{ware}_{number + step}.{ending}" for step, ware in enumerate(wares)
    ]


def _settings(values: dict[str, int]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in values.items())


def _store(draws: Draws, others: list[str], files: dict[str, str]) -> JsonObject:
    store: JsonObject = {path: f"{draws.pick(NOTES)} {draws.below(1000)}\n" for path in others}
    return {"files": {**store, **files}}
