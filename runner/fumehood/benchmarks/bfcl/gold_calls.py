"""BFCL's gold calls, written in Python, as moves of the oracle."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from fumehood.core.json_values import Json


def move_of(call: str, parameters: Mapping[str, Sequence[str]]) -> Mapping[str, Json]:
    """Return a gold call as a move.

    Args:
        call: such as ``cd(folder='document')``; arguments without a name are bound in the order in which the
            function's document has them.
        parameters: names of the parameters of each function, in their order.

    Raises:
        ValueError: it is no call of a function with literal arguments.
    """
    tree = ast.parse(call.strip(), mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise ValueError(f"not a call: {call}")
    name = tree.func.id
    bound = dict(zip(parameters[name], map(_literal, tree.args), strict=False))
    named = {str(each.arg): _literal(each.value) for each in tree.keywords}
    return {"tool_name": name, "args": {**bound, **named}}


def _literal(node: ast.expr) -> Any:
    return _without_tuples(ast.literal_eval(node))


def _without_tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_tuples(each) for each in value]
    return (
        {key: _without_tuples(each) for key, each in value.items()}
        if isinstance(value, dict)
        else value
    )
