"""Functions stay small; files have no size limit."""

from __future__ import annotations

import ast

from tests.architecture.project import ROOT, python_files

FUNCTION_LINES_MAX = 70


def test_functions_fit_on_a_screen() -> None:
    too_long = [
        f"{path.relative_to(ROOT)}: {node.name} has {lines} lines"
        for path in python_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert too_long == []
