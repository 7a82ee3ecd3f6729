"""Goals in the files world: a store of text files."""

from __future__ import annotations

from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.benchmarks.toolmisuse.generate.goal import ENDINGS, PLACES, THINGS, Entity, Goal
from fumehood.core.json_values import JsonObject

_WRITE = (
    "Write '{content}' to {path}.",
    "Create file {path} containing '{content}'.",
    "Store the text '{content}' in {path}.",
    "Please write '{content}' into {path}.",
    "Create file {path}; its content is '{content}'.",
    "Store the text '{content}' under {path}.",
)
_READ = (
    "Read {path}.",
    "Open {path} and do nothing else.",
    "Fetch content of {path}.",
    "Please read {path} for me.",
    "Open {path} and check its content.",
    "Read {path} for the next shift.",
)
_LIST = (
    "List the folder {path}.",
    "Show the entries of {path}.",
    "List the files in {path}.",
)


def write_file(entity: Entity, choices: SeededChoices) -> Goal:
    """Write a text to a new file."""
    stem = f"{choices.pick(THINGS)}_{entity.split}_{entity.number}"
    path = f"/{choices.pick(PLACES)}/{stem}.{choices.pick(ENDINGS)}"
    content = f"entry-{entity.split}-{entity.number}-{choices.below(900) + 100}"
    return Goal(
        instruction=choices.pick(_WRITE).format(path=path, content=content),
        state=_store(entity, choices, {}),
        tool_name="write_file",
        arguments={"path": path, "content": content},
        checks=({"op": "map_value_equals", "path": "files", "key": path, "value": content},),
        output={"path": path},
    )


def read_file(entity: Entity, choices: SeededChoices) -> Goal:
    """Read one file."""
    path = f"{_folder(entity, choices)}/README.md"
    content = f"{choices.pick(THINGS)} notes {choices.below(10_000)}"
    return Goal(
        instruction=choices.pick(_READ).format(path=path),
        state=_store(entity, choices, {path: content}),
        tool_name="read_file",
        arguments={"path": path},
        checks=(),
        output={"path": path, "content": content},
    )


def list_dir(entity: Entity, choices: SeededChoices) -> Goal:
    """List one folder."""
    folder = _folder(entity, choices)
    names = sorted(choices.some(THINGS, 2))
    return Goal(
        instruction=choices.pick(_LIST).format(path=folder),
        state=_store(entity, choices, {f"{folder}/{name}.txt": name for name in names}),
        tool_name="list_dir",
        arguments={"path": folder},
        checks=(),
        output={"entries.0": f"{names[0]}.txt"},
    )


def _folder(entity: Entity, choices: SeededChoices) -> str:
    return f"/{choices.pick(PLACES)}/{entity.split}_{entity.number}"


def _store(entity: Entity, choices: SeededChoices, files: JsonObject) -> JsonObject:
    store: JsonObject = dict(files)
    for step in range(1, entity.rivals + 1):
        store[f"/{choices.pick(PLACES)}/{choices.pick(THINGS)}_{entity.number + step}.txt"] = _line(
            choices
        )
    return {"files": store}


def _line(choices: SeededChoices) -> str:
    return f"{choices.pick(THINGS)} {choices.pick(PLACES)} {choices.below(1000)}"
