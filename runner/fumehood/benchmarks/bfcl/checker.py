"""Runs BFCL's unmodified checkers in a separate process."""

from __future__ import annotations

import keyword
import sys
from collections import defaultdict
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

from fumehood.benchmarks.bfcl.prompting import prompting

INSTALL = "pip install 'fumehood[bfcl]' && pip install --no-deps 'bfcl-eval==2026.3.23'"

_CHECKER = "bfcl_eval.eval_checker"
_SOURCES = f"{_CHECKER}.multi_turn_eval.func_source_code"
_ATTEMPT = "attempt"
"""Name of the simulators' instances, which no other question uses: each has its own process."""


def load() -> None:
    """Import the checkers and all simulators; raises ImportError if a package is missing."""
    # The single-turn checker reads naming options from this module, which imports all providers'
    # clients. Tools are offered with "_" in place of ".", prompts contain the original names.
    registry = ModuleType("bfcl_eval.constants.model_config")
    registry.MODEL_CONFIG_MAPPING = defaultdict(  # type: ignore[attr-defined]
        lambda: SimpleNamespace(underscore_to_dot=True),
        {_PROMPTED: SimpleNamespace(underscore_to_dot=False)},
    )
    prompting()
    sys.modules[registry.__name__] = registry
    import_module(f"{_CHECKER}.multi_turn_eval.multi_turn_checker")
    import_module(f"{_CHECKER}.ast_eval.ast_checker")
    import_module(f"{_CHECKER}.agentic_eval.agentic_checker")
    backend = import_module("bfcl_eval.constants.executable_backend_config")
    for path in backend.CLASS_FILE_PATH_MAPPING.values():
        if not path.startswith((f"{_SOURCES}.memory", f"{_SOURCES}.web")):
            import_module(path)


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Return BFCL's verdict: ``valid`` and, if it is false, ``error_type``."""
    verdict = _CHECKS[question["op"]](question)
    return {"valid": verdict["valid"] is True, "error_type": verdict.get("error_type")}


def _multi_turn(question: dict[str, Any]) -> dict[str, Any]:
    checker = import_module(f"{_CHECKER}.multi_turn_eval.multi_turn_checker")
    decoded = [[[python_source(*call)] for call in turn] for turn in question["turns"]]
    entry = question["entry"]
    verdict: dict[str, Any] = checker.multi_turn_checker(
        decoded, question["ground_truth"], entry, entry["id"].rsplit("_", 1)[0], _ATTEMPT
    )
    return verdict


def _single_turn(question: dict[str, Any]) -> dict[str, Any]:
    checker = import_module(f"{_CHECKER}.ast_eval.ast_checker")
    language = import_module("bfcl_eval.constants.enums").Language
    verdict: dict[str, Any] = checker.ast_checker(
        question["functions"],
        [{name: arguments} for name, arguments in question["calls"]],
        question["ground_truth"],
        language[question["language"]],
        question["category"],
        _ATTEMPT,
    )
    return verdict


def _format(question: dict[str, Any]) -> dict[str, Any]:
    """Decode and check calls in a text. Source: ``_evaluate_single_ast_entry`` of BFCL."""
    enums = import_module("bfcl_eval.constants.enums")
    answer_form, has_tag, *_ = prompting().parse_prompt_variation_params(question["form"])
    try:
        calls = prompting().default_decode_ast_prompting(
            question["answer"], enums.ReturnFormat(answer_form), has_tag
        )
    except Exception:  # BFCL catches every exception in the same way.
        return {"valid": False, "error_type": "ast_decoder:decoder_failed"}
    if not all(isinstance(arguments, dict) for call in calls for arguments in call.values()):
        return {"valid": False, "error_type": "ast_decoder:decoder_wrong_output_format"}
    checker = import_module(f"{_CHECKER}.ast_eval.ast_checker")
    verdict: dict[str, Any] = checker.ast_checker(
        question["functions"],
        calls,
        question["ground_truth"],
        enums.Language.PYTHON,
        question["category"],
        _PROMPTED,
    )
    return verdict


def _agentic(question: dict[str, Any]) -> dict[str, Any]:
    checker = import_module(f"{_CHECKER}.agentic_eval.agentic_checker")
    if not question["answer"]:
        # Source: the caller of agentic_checker in BFCL.
        return {"valid": False, "error_type": "agentic:no_last_message"}
    verdict: dict[str, Any] = checker.agentic_checker(question["answer"], question["ground_truth"])
    return verdict


UNKNOWN_CALL = "unknown_function()"
"""A call that fails in BFCL's executor, as every call of an unknown function does."""
_PROMPTED = "prompted"
"""Name of a model that receives functions in its prompt."""
_CHECKS = {
    "bfcl_format": _format,
    "bfcl_memory": _agentic,
    "bfcl_multi_turn": _multi_turn,
    "bfcl_single_turn": _single_turn,
    "bfcl_web_search": _agentic,
}


def python_source(name: str, arguments: dict[str, Any]) -> str:
    """Return a call as Python source, as BFCL records it: a checked name with literal arguments.

    A call with a name that is not a Python identifier becomes one that fails: BFCL counts it, and
    no function has such a name or parameter.
    """
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in (name, *arguments)):
        return UNKNOWN_CALL
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
