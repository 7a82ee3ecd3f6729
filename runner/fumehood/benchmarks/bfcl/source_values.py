"""Values of BFCL's Java and JavaScript categories, which agents write as source text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from fumehood.benchmarks.bfcl.imports import CONFIG, UTILS, import_with

LANGUAGES = {"simple_java": "JAVA", "simple_javascript": "JAVASCRIPT"}
"""Category → member of ``bfcl_eval.constants.enums.Language``."""
_SUFFIXES = {"long": "L", "float": "f"}
"""Of numbers in Java."""


def offered_functions(functions: Sequence[Mapping[str, Any]], category: str) -> list[Any]:
    """Return function documents as BFCL shows them: all parameters are texts, with a description
    of their type."""
    utils = import_with(UTILS, {CONFIG: {}, "filelock": {}})
    shown: list[Any] = utils._func_doc_language_specific_pre_processing(
        deepcopy([*functions]), category
    )
    return shown


def written_arguments(
    arguments: Mapping[str, Any], properties: Mapping[str, Any], category: str
) -> dict[str, Any]:
    """Return gold arguments as source text that BFCL's converters read as the same values.

    Args:
        arguments: Values by parameter.
        properties: Documents of the parameters.
        category: ``simple_java`` or ``simple_javascript``.
    """
    write = _java if category == "simple_java" else _javascript
    return {name: write(value, properties.get(name, {})) for name, value in arguments.items()}


def _java(value: Any, document: Mapping[str, Any]) -> str:
    kind, items = document.get("type"), document.get("items", {})
    match value:
        case dict():
            puts = (f'put("{key}", {_literal(item)});' for key, item in value.items())
            return f"new HashMap<String, Object>() {{{{ {' '.join(puts)} }}}}"
        case list() if kind == "Array":
            # BFCL's converter does not remove the quotes of texts in an array.
            return f"new {items['type']}[]{{{_joined(value, _java, items)}}}"
        case list():
            written = _joined(value, _java_item, items)
            return f"new ArrayList<>(Arrays.asList({written}))"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _scalar(value) + (_SUFFIXES.get(str(kind), "") if is_number else "")


def _java_item(value: Any, document: Mapping[str, Any]) -> str:
    quoted = document.get("type") in ("String", "char")
    return _literal(value) if quoted else _java(value, document)


def _javascript(value: Any, document: Mapping[str, Any]) -> str:
    match value:
        case dict():
            pairs = (f"{json.dumps(key)}: {_javascript_item(item)}" for key, item in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list():
            return f"[{_joined(value, lambda item, _: _javascript_item(item), {})}]"
    is_long = document.get("type") == "Bigint" and isinstance(value, int)
    return f"{value}n" if is_long else _scalar(value)


def _javascript_item(value: Any) -> str:
    return _javascript(value, {}) if isinstance(value, list | dict) else _literal(value)


def _joined(
    values: Iterable[Any],
    write: Callable[[Any, Mapping[str, Any]], str],
    document: Mapping[str, Any],
) -> str:
    return ", ".join(write(value, document) for value in values)


def _scalar(value: Any) -> str:
    # A text or the name of a variable has no quotes: the converters do not remove them.
    return value if isinstance(value, str) else _literal(value)


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else json.dumps(value)
