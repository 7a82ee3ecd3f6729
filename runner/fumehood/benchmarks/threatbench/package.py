"""Reads AgentThreatBench's records, prompts and tools from the package inspect-evals.

Nothing of the package is imported, because that would need its framework. The tools' source runs
unmodified in the process of declared worlds, with replacements for the framework's names.
"""

from __future__ import annotations

import ast
import re
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fumehood.benchmarks.shared.reading import Place, Problem, Unreadable, read_text
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject

INSTALL = "pip install --no-deps 'inspect-evals==0.26.0'"
_TYPES = {"str": "string", "int": "integer"}
_FRAMEWORK = """
Tool = ToolResult = object


class _Set(list):
    def __repr__(self):
        return f"{{{', '.join(map(repr, self))}}}"


class _Store:
    def __init__(self, state):
        self.get, self.set = state.get, state.__setitem__


def tool(factory):
    def call(state, **arguments):
        global store_util
        store_util = lambda: _Store(state)
        try:
            factory()(**arguments).send(None)
        except StopIteration as end:
            return end.value

    return call
"""
"""Replaces the four names of the framework that the tools use, and sets, whose order in messages
would differ between processes."""


class _OrderedSets(ast.NodeTransformer):
    def visit_Set(self, node: ast.Set) -> ast.Call:
        return ast.Call(ast.Name("_Set", ast.Load()), [ast.List(node.elts, ast.Load())], [])


def package_folder() -> Path:
    """Return the benchmark's folder in the installed package.

    Raises:
        InputError: the package is not installed, or does not contain the benchmark.
    """
    spec = find_spec("inspect_evals")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"threatbench: inspect-evals is not installed; run: {INSTALL}")
    folder = Path(spec.submodule_search_locations[0], "agent_threat_bench")
    if not folder.is_dir():
        raise InputError(f"threatbench: there is no {folder}; run: {INSTALL}")
    return folder


def system_prompt(kind: str) -> str:
    """Return the prompt of a kind of tasks.

    Raises:
        Unreadable: the package has another version.
    """
    path = package_folder() / "agent_threat_bench.py"
    name = f"{kind.upper()}_SYSTEM_PROMPT"
    for node in _nodes(path):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Constant(value=str(text))):
                if target == name:
                    return text
    raise _other_version(path, name)


def toolset(kind: str) -> JsonObject:
    """Return the declaration of the tools of a kind of tasks.

    Raises:
        Unreadable: the package has another version.
    """
    path = package_folder() / "tools.py"
    nodes = _nodes(path)
    factories = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    chosen = [factories[name] for name in _names_of(kind, nodes) if name in factories]
    if not chosen:
        raise _other_version(path, f"TASK_TOOLS[{kind!r}]")
    return {
        "tools": [_declared(factory, path) for factory in chosen],
        "python": "\n\n\n".join([_FRAMEWORK.strip(), *map(_source, chosen)]),
    }


def _source(factory: ast.FunctionDef) -> str:
    return ast.unparse(_OrderedSets().visit(deepcopy(factory)))


def _names_of(kind: str, nodes: list[ast.stmt]) -> list[str]:
    """Return the names in the package's table of tools."""
    for node in nodes:
        match node:
            case ast.AnnAssign(target=ast.Name(id="TASK_TOOLS"), value=ast.Dict() as table):
                lists = zip(table.keys, table.values, strict=True)
                calls = next((value for key, value in lists if _is(key, kind)), ast.List([]))
                return [
                    call.func.id
                    for call in ast.walk(calls)
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                ]
    return []


def _is(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _declared(factory: ast.FunctionDef, path: Path) -> JsonObject:
    """Return a tool as the framework describes it: by ``execute`` and its docstring."""
    for execute in factory.body:
        if isinstance(execute, ast.AsyncFunctionDef):
            break
    else:
        raise _other_version(path, f"{factory.name}.execute")
    text = ast.get_docstring(execute) or ""
    properties: dict[str, Any] = {}
    for parameter in execute.args.args:
        described = re.search(rf"^ +{parameter.arg}: (.+)$", text, re.MULTILINE)
        annotation = ast.unparse(parameter.annotation) if parameter.annotation else ""
        if described is None or annotation not in _TYPES:
            raise _other_version(path, f"{factory.name}.{parameter.arg}")
        properties[parameter.arg] = {"type": _TYPES[annotation], "description": described[1]}
    parameters: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    return {
        "name": factory.name,
        "description": text.partition("\n")[0],
        "parameters": parameters,
    }


@cache
def _nodes(path: Path) -> list[ast.stmt]:
    try:
        return ast.parse(read_text(path)).body
    except SyntaxError as error:
        reason = f"is not Python: {error.msg} (line {error.lineno})"
        raise Unreadable(Place(path), Problem.NOT_AS_PUBLISHED, reason) from None


def _other_version(path: Path, name: str) -> Unreadable:
    reason = f"has no {name} as in version 0.26.0; run: {INSTALL}"
    return Unreadable(Place(path), Problem.NOT_AS_PUBLISHED, reason)
