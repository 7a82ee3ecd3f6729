"""BFCL's prompts and decoders for models that write calls as text, from its unmodified module."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

from fumehood.benchmarks.bfcl.imports import UTILS, import_with

_MODULE = "bfcl_eval.model_handler.utils"
_PARSERS = "bfcl_eval.model_handler.parser"
_REPLACED = (UTILS, "tenacity", f"{_PARSERS}.java_parser", f"{_PARSERS}.js_parser")
_NUMBERS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.UAdd, ast.USub)
_ARITHMETIC = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, *_NUMBERS)


@cache
def prompting() -> Any:
    """Return BFCL's module. It evaluates only arithmetic, where BFCL evaluates the agent's code."""
    module = import_with(_MODULE, {name: {} for name in _REPLACED})
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
