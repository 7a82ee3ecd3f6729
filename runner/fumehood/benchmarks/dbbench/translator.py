"""Translates a MySQL statement to SQLite with sqlglot, in a separate process.

Agents write the statements, and sqlglot's parser takes exponential time for some of them.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

INSTALL = "pip install sqlglot"
TRANSLATION_CPU_S = 1.0
RECURSION_DEPTH_MAX = 4000
"""About 200 nested parentheses."""
OWN_FUNCTIONS = {
    "CHARACTER_LENGTH": "char_length",
    "CHAR_LENGTH": "char_length",
    "DATE": "date",
    "LEFT": "mysql_left",
    "LENGTH": "octet_length",
    "LOCATE": "locate",
    "RIGHT": "mysql_right",
    "TRUNCATE": "mysql_truncate",
}
"""MySQL function → the function of ``sqlite.py`` or SQLite that implements it.

sqlglot would translate these to SQLite functions with another result or fewer arguments."""


def load() -> None:
    """Translate once, so that sqlglot imports all modules that it needs."""
    sys.setrecursionlimit(RECURSION_DEPTH_MAX)
    translate("SELECT `a`, LEFT(`b`, 1) FROM `c` WHERE `d` = 'e' GROUP BY 1 HAVING COUNT(*) > 1")
    translate("SHOW FULL COLUMNS FROM `a`")
    translate("(")


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Translate ``statement``; a statement that takes too long ends this process."""
    signal.setitimer(signal.ITIMER_PROF, TRANSLATION_CPU_S)
    return translate(question["statement"])


def translate(statement: str) -> dict[str, str]:
    """Return the translation of a statement.

    Returns:
        One key: ``sql`` is a statement for SQLite, ``tables`` asks for the names of the tables,
        ``columns`` names the table whose columns are asked for, ``rejected`` is a message.
    """
    dialect = MySQL()
    try:
        trees = _PARSER(dialect=dialect).parse(dialect.tokenize(statement), statement)
        parsed = [tree for tree in trees if tree is not None]
        if len(parsed) != 1:
            return {"rejected": "send exactly one statement per call"}
        return _translated(parsed[0])
    except SqlglotError as error:
        return {"rejected": f"syntax error: {str(error).splitlines()[0]}"}
    except RecursionError:
        return {"rejected": "the statement nests too deeply"}


def _own_parser(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    return lambda arguments: exp.Anonymous(this=name, expressions=arguments)


_PARSER: Any = type(
    "MySqlParser",
    (MySQL.Parser,),
    {
        "FUNCTIONS": {
            **MySQL.Parser.FUNCTIONS,
            **{mysql: _own_parser(name) for mysql, name in OWN_FUNCTIONS.items()},
        }
    },
)


def _compare_as_number(node: exp.Expr) -> exp.Expr:
    """Return a comparison with a number as MySQL evaluates it: both sides become floats."""
    if isinstance(node.parent, exp.Update | exp.OnConflict) and node.arg_key == "expressions":
        return node  # An assignment.
    match node:
        case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
            sides = {"this": node.this, "expression": node.expression}
        case exp.Between():
            sides = {key: node.args[key] for key in ("this", "low", "high")}
        case _:
            return node
    if any(isinstance(side, exp.Literal) and side.is_number for side in sides.values()):
        for key, side in sides.items():
            if isinstance(side, exp.Column):
                node.set(key, exp.cast(side, exp.DataType.Type.DOUBLE))
    return node


def _quote_digits(node: exp.Expr) -> exp.Expr:
    """Quote a name that begins with a digit, which SQLite accepts only in quotes."""
    if isinstance(node, exp.Identifier) and node.name[:1].isdigit():
        node.set("quoted", True)
    return node


def _translated(tree: exp.Expr) -> dict[str, str]:
    if isinstance(tree, exp.Show) and tree.name == "TABLES":
        return {"tables": ""}
    if isinstance(tree, exp.Show) and tree.name == "COLUMNS":
        return {"columns": tree.args["target"].name}
    if isinstance(tree, exp.Describe) and isinstance(tree.this, exp.Table):
        return {"columns": tree.this.name}
    if isinstance(tree, exp.TruncateTable):
        tree = exp.delete(tree.expressions[0])
    tree = tree.transform(_compare_as_number).transform(_quote_digits)
    dialect = SQLite()
    # SQLite reads an unknown name in double quotes as a string.
    dialect.IDENTIFIER_START = dialect.IDENTIFIER_END = "`"
    generator = dialect.generator(unsupported_level=ErrorLevel.RAISE, comments=False)
    return {"sql": generator.generate(tree)}
