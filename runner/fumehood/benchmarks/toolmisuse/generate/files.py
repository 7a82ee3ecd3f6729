"""Goals over a store of text files."""

from __future__ import annotations

from fumehood.benchmarks.seeded_choices import Draws
from fumehood.benchmarks.toolmisuse.generate.goal import Entity, Goal
from fumehood.benchmarks.toolmisuse.generate.words import ENDINGS, PLACES, THINGS
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
    "Open {path} and stop there.",
    "Fetch content of {path}.",
    "Please read {path} for me.",
    "Somebody has to open {path} and look.",
    "The next shift wants you to read {path}.",
)
_LIST = (
    "List the folder {path}.",
    "Show the entries of {path}.",
    "List what files {path} holds.",
)


def write_file(entity: Entity, draws: Draws) -> Goal:
    """Put a text into a new file."""
    stem = f"{draws.pick(THINGS)}_{entity.split}_{entity.number}"
    path = f"/{draws.pick(PLACES)}/{stem}.{draws.pick(ENDINGS)}"
    content = f"entry-{entity.split}-{entity.number}-{draws.below(900) + 100}"
    return Goal(
        instruction=draws.pick(_WRITE).format(path=path, content=content),
        state=_store(entity, draws, {}),
        tool_name="write_file",
        arguments={"path": path, "content": content},
        checks=({"op": "map_value_equals", "path": "files", "key": path, "value": content},),
        output={"path": path},
    )


def read_file(entity: Entity, draws: Draws) -> Goal:
    """Read one file."""
    path = f"{_folder(entity, draws)}/README.md"
    content = f"{draws.pick(THINGS)} notes {draws.below(10_000)}"
    return Goal(
        instruction=draws.pick(_READ).format(path=path),
        state=_store(entity, draws, {path: content}),
        tool_name="read_file",
        arguments={"path": path},
        checks=(),
        output={"path": path, "content": content},
    )


def list_dir(entity: Entity, draws: Draws) -> Goal:
    """List one folder."""
    folder = _folder(entity, draws)
    names = sorted(draws.some(THINGS, 2))
    return Goal(
        instruction=draws.pick(_LIST).format(path=folder),
        state=_store(entity, draws, {f"{folder}/{name}.txt": name for name in names}),
        tool_name="list_dir",
        arguments={"path": folder},
        checks=(),
        output={"entries.0": f"{names[0]}.txt"},
    )


def _folder(entity: Entity, draws: Draws) -> str:
    return f"/{draws.pick(PLACES)}/{entity.split}_{entity.number}"


def _store(entity: Entity, draws: Draws, files: JsonObject) -> JsonObject:
    store: JsonObject = dict(files)
    for step in range(1, entity.rivals + 1):
        store[f"/{draws.pick(PLACES)}/{draws.pick(THINGS)}_{entity.number + step}.txt"] = _line(
            draws
        )
    return {"files": store}


def _line(draws: Draws) -> str:
    return f"{draws.pick(THINGS)} {draws.pick(PLACES)} {draws.below(1000)}"
