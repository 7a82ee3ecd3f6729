"""Computes metrics with the functions of a checkout of BrowseComp-Plus.

Only these functions of its script are executed: the script imports the client of a local model.
"""

import ast
import os
import re
from pathlib import Path
from typing import Any

import numpy
from questions import answer, digits

_SCRIPT = Path(
    os.environ["FUMEHOOD_ORIGINALS"], "BrowseComp-Plus/scripts_evaluation/evaluate_run.py"
)
_FUNCTIONS = (
    *("extract_citations_from_response", "compute_citation_metrics", "parse_judge_response"),
    *("calib_err", "calculate_calibration_error"),
)
_tree = ast.parse(_SCRIPT.read_text())
_tree.body = [
    node for node in _tree.body if isinstance(node, ast.FunctionDef) and node.name in _FUNCTIONS
]
_names: dict[str, Any] = {"re": re, "np": numpy, "List": list, "Dict": dict}
exec(compile(_tree, str(_SCRIPT), "exec"), _names)


def verdict_of(question: dict[str, Any]) -> str:
    """Return correctness with precision and recall, or the calibration error of a list."""
    if "stated" in question:
        confidences, right = zip(*question["stated"], strict=True)
        error = _names["calculate_calibration_error"](confidences, right) / 100
        return f"{int(error < 0.5)}:{error:.6f}"
    correct = _names["parse_judge_response"](question["reply"])["correct"]
    cited = _names["extract_citations_from_response"](question["answer"])
    metrics = _names["compute_citation_metrics"](cited, question["relevant"])
    return f"{digits(correct)}:{metrics['precision']:.6f},{metrics['recall']:.6f}"


if __name__ == "__main__":
    answer(verdict_of)
