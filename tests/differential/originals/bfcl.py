"""Scores trajectories with the package bfcl-eval, as its ``eval_runner`` does.

All calls of a turn are one message of a model that calls functions. ``eval_runner`` itself imports
the clients of all model providers, so its loops over messages are repeated here; checkers and
decoders are the package's.
"""

import itertools
import os
import sys
import tempfile
from collections import defaultdict
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from questions import answer, digits
from results import results_digest

os.environ["BFCL_PROJECT_ROOT"] = tempfile.mkdtemp()
_models = ModuleType("bfcl_eval.constants.model_config")
# As for the models that call functions: names are sent with "_" in place of ".".
_models.MODEL_CONFIG_MAPPING = defaultdict(  # type: ignore[attr-defined]
    lambda: SimpleNamespace(underscore_to_dot=True)
)
_models.MODEL_CONFIG_MAPPING["prompted"] = SimpleNamespace(underscore_to_dot=False)  # type: ignore[attr-defined]
sys.modules[_models.__name__] = _models
for _name in ("java_parser", "js_parser"):
    # They need parsers of other languages.
    _parser = ModuleType(f"bfcl_eval.model_handler.parser.{_name}")
    _parser.parse_java_function_call = _parser.parse_javascript_function_call = None  # type: ignore[attr-defined]
    sys.modules[_parser.__name__] = _parser

# Both sides use the same index and the same small embedding model.
_path = Path(__file__).parents[3] / "runner/fumehood/benchmarks/bfcl/vectors.py"
_spec = spec_from_file_location("vectors", _path)
assert _spec is not None
assert _spec.loader is not None
vectors = module_from_spec(_spec)
_spec.loader.exec_module(vectors)
for _name, _attributes in {
    "faiss": {"IndexFlatIP": vectors.FlatIndex, "IndexIDMap": vectors.FlatIndex},
    "sentence_transformers": {"SentenceTransformer": lambda *_, **__: vectors.HashedWords()},
}.items():
    sys.modules[_name] = ModuleType(_name)
    vars(sys.modules[_name]).update(_attributes)

from bfcl_eval.constants.enums import Language, ReturnFormat  # noqa: E402
from bfcl_eval.eval_checker.agentic_eval.agentic_checker import agentic_checker  # noqa: E402
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # noqa: E402
from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.memory_vector import (  # noqa: E402
    MemoryAPI_vector,
)
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import (  # noqa: E402
    multi_turn_checker,
)
from bfcl_eval.model_handler.utils import (  # noqa: E402
    convert_to_function_call,
    default_decode_ast_prompting,
    parse_prompt_variation_params,
)
from bfcl_eval.utils import (  # noqa: E402
    get_all_format_sensitivity_configs,
    load_dataset_entry,
    load_ground_truth_entry,
)

FORM_CATEGORIES = (
    *("simple_python", "parallel_multiple", "multiple", "parallel"),
    *("live_simple", "live_multiple", "live_parallel_multiple", "live_parallel"),
)
LANGUAGES = {"simple_java": Language.JAVA, "simple_javascript": Language.JAVASCRIPT}
_attempts = itertools.count()


@cache
def _entries(category: str) -> dict[str, Any]:
    # As eval_runner.py, which needs the types of parameters in Java and JavaScript.
    entries = load_dataset_entry(
        category, include_prereq=False, include_language_specific_hint=False
    )
    return {entry["id"]: entry for entry in entries}


@cache
def _gold(category: str) -> dict[str, Any]:
    return {entry["id"]: entry["ground_truth"] for entry in load_ground_truth_entry(category)}


def verdict_of(question: dict[str, Any]) -> str:  # noqa: PLR0911 (one per category)
    """Return "1" or "0"."""
    category, task, moves = question["category"], question["task"], question["moves"]
    if category.startswith(("memory", "web_search")):
        # eval_runner._evaluate_single_agentic_entry
        last = moves[-1].get("submit")
        group = "memory" if category.startswith("memory") else "web_search"
        gold = _gold(category)[task.replace(category, group)]
        verdict = digits(last and agentic_checker(last, gold)["valid"])
        return f"{verdict}:{_vector_results(moves)}" if category == "memory_vector" else verdict
    if category == "format_sensitivity":
        return _in_a_form(task, moves[-1].get("submit", ""))
    calls = [move for move in moves if "tool_name" in move]
    if "relevance" in category:
        # eval_runner._evaluate_single_relevance_entry
        return digits(bool(calls) != ("irrelevance" in category))
    entry, gold = _entries(category)[task], _gold(category)[task]
    if not category.startswith("multi_turn"):
        if not calls:
            return "0"  # Not a list of calls: eval_runner.py, decoder_wrong_output_format.
        decoded = [{call["tool_name"]: call["args"]} for call in calls]
        language = LANGUAGES.get(category, Language.PYTHON)
        checked = ast_checker(entry["function"], decoded, gold, language, category, "any")
        return digits(checked["valid"])
    turns = _turns(moves)
    if len(turns) != len(gold):
        return "0"
    # The simulators are kept in variables of the module by the name of the model.
    model = f"attempt{next(_attempts)}"
    entry = {key: value for key, value in entry.items() if key != "function"}
    return digits(multi_turn_checker(turns, gold, entry, category, model)["valid"])


def _in_a_form(task: str, text: str) -> str:
    """Decode calls in a text. Source: eval_runner._evaluate_single_ast_entry."""
    task, number = task.split(".")
    category = next(name for name in FORM_CATEGORIES if task.startswith(f"{name}_"))
    form = get_all_format_sensitivity_configs()[int(number)]
    answer_form, has_tag, *_ = parse_prompt_variation_params(form)
    try:
        calls = default_decode_ast_prompting(text, ReturnFormat(answer_form), has_tag)
    except Exception:
        return "0"
    if not isinstance(calls, list) or not all(
        isinstance(call, dict) and all(isinstance(value, dict) for value in call.values())
        for call in calls
    ):
        return "0"
    checked = ast_checker(
        _entries(category)[task]["function"],
        calls,
        _gold(category)[task],
        Language.PYTHON,
        category,
        "prompted",
    )
    return digits(checked["valid"])


def _vector_results(moves: list[dict[str, Any]]) -> str:
    """Return the digest of what the tools of an empty memory with embeddings answer."""
    memory = MemoryAPI_vector()
    results: list[Any] = []
    for move in moves:
        if "tool_name" not in move:
            continue
        try:
            results.append(["value", getattr(memory, move["tool_name"])(**move["args"])])
        except Exception:
            results.append(["raised", None])
    return results_digest(results)


def _turns(moves: list[dict[str, Any]]) -> list[list[list[str]]]:
    turns: list[list[dict[str, Any]]] = [[]]
    for move in moves:
        if "submit" in move:
            turns.append([])
        else:
            turns[-1].append({move["tool_name"]: move["args"]})
    return [[convert_to_function_call(calls)] if calls else [] for calls in turns[:-1]]


if __name__ == "__main__":
    answer(verdict_of)
