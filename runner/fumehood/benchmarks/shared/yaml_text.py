"""Parses YAML of users and of benchmarks, without the features that make small files dangerous."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import yaml

_LEVELS_MAX = 200
"""Libyaml composes nested values recursively, without a limit."""
_EARLY_END = re.compile(
    r"(expected .*), but (?:got|found) '<stream end>'|found unexpected end of stream"
)


class PlainLoader(yaml.SafeLoader):
    """Rejects aliases and repeated keys.

    Nested aliases let a file of a few hundred bytes describe billions of nodes, and the original
    loader keeps the last value of a repeated key.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node, unless it is an alias."""
        if self.check_event(yaml.AliasEvent):
            event: yaml.AliasEvent = self.peek_event()  # type: ignore[no-untyped-call]
            problem = f"the alias *{event.anchor} is not supported"
            raise yaml.composer.ComposerError(None, None, problem, self.get_mark())
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


class JsonLoader(PlainLoader):
    """Reads ``no``, ``on`` and ``2024-01-31`` as text. Source: the core schema of YAML 1.2."""


JsonLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    JsonLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), [*_first, ""]
    )


def line_of(text: str, location: Sequence[str | int]) -> int:
    """Return the line, from 1, of the innermost part of a location that a YAML text contains."""
    try:
        node = yaml.compose(text, JsonLoader)
    except yaml.YAMLError:  # JSON that is not YAML, such as one with tabs.
        return 1
    line = node.start_mark.line if node else 0
    for step in location:
        pairs: list[tuple[yaml.Node, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            pairs = [(key, value) for key, value in node.value if key.value == str(step)]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            pairs = [(item, item) for item in node.value[step : step + 1]]
        if not pairs:
            break
        key, node = pairs[0]
        line = key.start_mark.line
    return line + 1


def lines_of_items(text: str) -> list[int]:
    """Return the lines, from 1, of the items of a YAML list that ``load_yaml`` accepts."""
    node = yaml.compose(text, _chosen(text, JsonLoader))
    return [item.start_mark.line + 1 for item in node.value] if node else []


def load_yaml(text: str, loader: type[PlainLoader] = PlainLoader) -> Any:
    """Return the content of a YAML text.

    Raises:
        yaml.YAMLError: the text is not YAML, repeats a key, or has an alias.
        RecursionError: it is nested too deeply.
    """
    return yaml.load(text, _chosen(text, loader))


def line_and_problem(text: str, error: yaml.MarkedYAMLError) -> tuple[int, str]:
    """Return the line, from 1 to the last one, and the problem of a text that is not YAML."""
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    problem = str(error.problem)
    if end := _EARLY_END.fullmatch(problem):
        problem = "the file ends too early" + (f": {end[1]}" if end[1] else "")
    return min(line, len(text.splitlines()) or 1), problem


def _chosen(text: str, loader: Any) -> Any:
    """Return the fastest loader that treats a text as ``loader`` does."""
    return _in_libyaml(loader) if _suits_libyaml(text) else loader


def _suits_libyaml(text: str) -> bool:
    """Return True if libyaml is installed, and can parse a text without resolving an alias."""
    if not yaml.__with_libyaml__:
        return False
    depth = 0
    try:
        for event in yaml.parse(text, yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > _LEVELS_MAX or isinstance(event, yaml.AliasEvent):
                return False
    except yaml.YAMLError:  # The other parser describes the error.
        return False
    return True


@cache
def _in_libyaml(loader: type[PlainLoader]) -> Any:
    """Return a loader with the same constructors that parses several times as fast."""
    fast: Any = type(f"Fast{loader.__name__}", (yaml.CSafeLoader,), {})
    fast.yaml_constructors = loader.yaml_constructors
    fast.yaml_implicit_resolvers = loader.yaml_implicit_resolvers
    return fast


def _construct_unique(loader: PlainLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for position, key in enumerate(keys):
        mark = node.value[position][0].start_mark
        if isinstance(key, list | dict):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a scalar", mark)
        if key in keys[:position]:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} is repeated", mark
            )
    return {
        key: loader.construct_object(value, deep=True)
        for key, (_, value) in zip(keys, node.value, strict=True)
    }


PlainLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_unique)
