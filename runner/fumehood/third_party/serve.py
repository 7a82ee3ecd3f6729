"""The process of a checker: imports it, and answers each question in a forked process."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject

CHECKERS = {
    "agentdojo": "fumehood.benchmarks.agentdojo.checker",
    "bfcl": "fumehood.benchmarks.bfcl.checker",
    "bfcl_embeddings": "fumehood.benchmarks.bfcl.embedding_checker",
    "dbbench": "fumehood.benchmarks.dbbench.translator",
    "declared": "fumehood.worlds.declared_checker",
    "safetybench": "fumehood.benchmarks.safetybench.checker",
    "tau2": "fumehood.benchmarks.tau2.checker",
    "taubench": "fumehood.benchmarks.taubench.checker",
    "toolsandbox": "fumehood.benchmarks.toolsandbox.checker",
}
"""Name → module with ``load()``, which imports all dependencies, and ``check(question)``.

An optional ``prepare(places)`` runs before the fork, so that later questions can use its result."""

_module: list[ModuleType] = []


def load(arguments: JsonObject) -> None:
    """Import the checker of a name.

    Raises:
        InputError: a required package is not installed.
    """
    module = import_module(CHECKERS[str(arguments["name"])])
    try:
        module.load()
    except ImportError as error:
        missing = error.name or error
        raise InputError(f"{missing} is not installed: {module.INSTALL}") from None
    _module.append(module)


def prepare(places: JsonObject) -> None:
    """Let the checker read the files of a question."""
    _module[-1].prepare(places)


def answer(question: JsonObject) -> JsonObject:
    """Answer one question."""
    reply: JsonObject = _module[-1].check(question)
    return reply
