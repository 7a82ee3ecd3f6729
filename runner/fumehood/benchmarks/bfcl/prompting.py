"""BFCL's prompts and decoders for models that write calls as text, from its unmodified module.

The module imports clients, parsers of Java and JavaScript, and file helpers that create folders.
None is needed here, so they are replaced while it is imported.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

_MODULE = "bfcl_eval.model_handler.utils"
_PARSERS = "bfcl_eval.model_handler.parser"
_REPLACED = ("bfcl_eval.utils", "tenacity", f"{_PARSERS}.java_parser", f"{_PARSERS}.js_parser")
_NUMBERS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.UAdd, ast.USub)
_ARITHMETIC = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, *_NUMBERS)


@cache
def prompting() -> Any:
    """Return BFCL's module. It evaluates only arithmetic, where BFCL evaluates the agent's code."""
    before = {name: sys.modules.get(name) for name in _REPLACED}
    for name in _REPLACED:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name])["__getattr__"] = _absent
    try:
        module: Any = import_module(_MODULE)
    finally:
        for name, original in before.items():
            sys.modules.pop(name)
            if original is not None:
                sys.modules[name] = original
    module.eval = calculate
    return module


def calculate(source: str) -> Any:
    """Return the value of a sum of texts or of an arithmetic expression.

    Raises:
        ValueError: The source contains anything else.
    """
    nodes = list(ast.walk(ast.parse(source, mode="eval")))
    has_only_numbers = all(
        isinstance(node.value, int | float) for node in nodes if isinstance(node, ast.Constant)
    )
    allowed = _ARITHMETIC if has_only_numbers else (*_ARITHMETIC[:4], ast.Add)
    if not all(isinstance(node, allowed) for node in nodes):
        raise ValueError("is not arithmetic")
    return eval(source, {"__builtins__": {}})


def _absent(name: str) -> None:
    if name.startswith("__"):
        raise AttributeError(name)
