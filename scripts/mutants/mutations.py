"""Finds the places of a module at which one token can be changed.

Annotations, decorators, docstrings, f-strings and texts with a blank are left out: the first have
no effect at run time, and the last are wording.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "*"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_ENCODINGS = frozenset({"utf-8", "ascii", "latin-1"})
"""Codecs ignore the added sign in their names."""
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_STATEMENTS: dict[type[ast.stmt], tuple[str, str]] = {
    ast.Break: ("break", "continue"),
    ast.Continue: ("continue", "break"),
}


@dataclass(frozen=True, slots=True, order=True)
class Mutation:
    """One changed token."""

    file: str
    """Relative to the checkout."""
    line: int
    start: int
    """Offset in the file, bytes."""
    end: int
    before: str
    after: str
    text: str
    """The line, without indentation."""

    def apply(self, source: bytes) -> bytes:
        """Return the file with the change."""
        assert source[self.start : self.end].decode() == self.before
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} -> {self.after or '(nothing)'}"


def mutations(file: str, source: bytes) -> Iterator[Mutation]:
    """Yield every mutation of a module."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + column

    left_out = {id(part) for node in _left_out(tree) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        for start, end, after in _changes(node, source, offset):
            number = source.count(b"\n", 0, start) + 1
            before = source[start:end].decode()
            text = lines[number - 1].decode().strip()
            yield Mutation(file, number, start, end, before, after, text)


def _left_out(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from node.decorator_list
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns:
            yield node.returns
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation:
            yield node.annotation
        if isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom)):
            yield node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node
        if isinstance(node, ast.Call) and _callee(node) in ("TypeVar", "NewType", "cast"):
            yield node


def _callee(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _changes(node: ast.AST, source: bytes, offset: object) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and new text of each change at a node.

    Args:
        node: of the syntax tree.
        source: the file.
        offset: returns the offset of a line and a column.
    """
    assert callable(offset)

    def span(part: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            offset(part.lineno, part.col_offset),
            offset(part.end_lineno, part.end_col_offset),
        )

    def between(left: ast.expr, right: ast.expr, token: str) -> Iterator[tuple[int, int]]:
        start, end = span(left)[1], span(right)[0]
        pattern = r"\s+".join(map(re.escape, token.split()))
        pattern = rf"\b{pattern}\b" if token[0].isalpha() else pattern
        found = re.search(pattern.encode(), source[start:end])
        if found:
            yield start + found.start(), start + found.end()

    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        for left, operator, right in zip(parts, node.ops, parts[1:], strict=False):
            before, after = _COMPARISONS[type(operator)]
            yield from ((*place, after) for place in between(left, right, before))
    elif isinstance(node, ast.BoolOp):
        before, after = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from ((*place, after) for place in between(left, right, before))
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        before, after = _OPERATORS[type(node.op)]
        yield from ((*place, after) for place in between(node.left, node.right, before))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        start, _ = span(node)
        yield start, start + len("not "), ""
    elif isinstance(node, ast.Constant):
        after = _other_constant(node.value, source[slice(*span(node))])
        if after:
            yield (*span(node), after)
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield (*span(node), _NAMES[node.id])
    elif isinstance(node, ast.stmt) and type(node) in _STATEMENTS:
        yield (*span(node), _STATEMENTS[type(node)][1])


def _other_constant(value: object, text: bytes) -> str:
    """Return another constant; empty for none."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + 1)
    if isinstance(value, float):
        return str(value + 1)
    is_word = isinstance(value, str) and value and not re.search(r"\s", value)
    if value in _ENCODINGS:
        return ""
    if is_word and text[:1] in b"\"'" and text[:3] not in (b'"""', b"'''"):
        return text[:1].decode() + "~" + text[1:].decode()
    return ""
