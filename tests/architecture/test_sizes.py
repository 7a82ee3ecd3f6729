"""Files and functions that fit into a head."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.project import ROOT, python_files

FUNCTION_LINES = 70
FILE_LINES = 300
CORE_FILE_LINES = 150

FILES = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in python_files()]


@pytest.mark.parametrize("path", FILES)
def test_a_file_has_one_subject(path: Path) -> None:
    limit = CORE_FILE_LINES if path.is_relative_to(ROOT / "runner" / "core") else FILE_LINES
    assert len(path.read_text(encoding="utf-8").splitlines()) <= limit


@pytest.mark.parametrize("path", FILES)
def test_functions_fit_on_a_screen(path: Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    too_long = [
        f"{function.name}: {lines} lines"
        for function in functions
        if (lines := (function.end_lineno or function.lineno) - function.lineno + 1) > FUNCTION_LINES
    ]
    assert too_long == []
