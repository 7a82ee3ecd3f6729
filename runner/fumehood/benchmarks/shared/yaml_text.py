"""Parses YAML of users and of benchmarks, without the features that make small files dangerous."""

from __future__ import annotations

from typing import Any

import yaml


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


def load_yaml(text: str) -> Any:
    """Return the content of a YAML text.

    Raises:
        yaml.YAMLError: the text is not YAML, repeats a key, or has an alias.
        RecursionError: it is nested too deeply.
    """
    return yaml.load(text, PlainLoader)


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
