"""What a module of an agent holds, read without running a line of it. Knows nothing about boxes."""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterator
from pathlib import Path

from fumehood.core.errors import InputError


def require_name(folder: Path, module: str, name: str) -> None:
    """Make sure that a module can be read and binds a name, as far as its text tells.

    Args:
        folder: where the module is looked for.
        module: dotted.
        name: of a class, or of anything that is called like one.

    Raises:
        InputError: there is no such module, its text is no Python, or nothing in it has the name; names the
            line, or the nearest name.
    """
    path = _file_of(folder, module)
    tree = _parsed(path)
    bound = set(_bound(tree.body))
    # What comes by a star or on demand is seen by running it alone.
    if name in bound or bound & {"*", "__getattr__"}:
        return
    classes = [statement.name for statement in tree.body if isinstance(statement, ast.ClassDef)]
    near = difflib.get_close_matches(name, bound, n=1)
    hint = (
        f"did you mean {module}:{near[0]}?"
        if near
        else f"its classes: {', '.join(classes) or 'none'}"
    )
    raise InputError(f"{path} has no {name!r}; {hint}")


def _file_of(folder: Path, module: str) -> Path:
    path = folder.joinpath(*module.split("."))
    for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):
        if file.is_file():
            return file
    raise InputError(f"there is no module {module!r} in {folder}; run the command where it lies")


def _parsed(path: Path) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno or 1}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{path}: is not readable Python: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _bound(statements: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that a module's own statements bind, those of its functions and classes left out."""
    for statement in statements:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
        else:
            yield from _assigned(statement)
            yield from _bound(_inner(statement))


def _inner(statement: ast.stmt) -> list[ast.stmt]:
    """Return the statements of a block, such as ``if`` or ``try``, its handlers' included."""
    parts = list(ast.iter_child_nodes(statement))
    handled = [part for part in parts if isinstance(part, ast.ExceptHandler | ast.match_case)]
    blocks = [*parts, *(inner for part in handled for inner in part.body)]
    return [node for node in blocks if isinstance(node, ast.stmt)]


def _assigned(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement assigns to."""
    for target in (*getattr(statement, "targets", ()), getattr(statement, "target", None)):
        if isinstance(target, ast.AST):
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
