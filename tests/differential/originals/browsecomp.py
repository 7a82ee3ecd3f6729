"""Computes citation metrics with the functions of a checkout of BrowseComp-Plus.

Only these functions of its script are executed: the script imports the client of a local model.
"""

import ast
import os
import re
from pathlib import Path
from typing import Any

from questions import answer

_SCRIPT = Path(
    os.environ["FUMEHOOD_ORIGINALS"], "BrowseComp-Plus/scripts_evaluation/evaluate_run.py"
)
_FUNCTIONS = ("extract_citations_from_response", "compute_citation_metrics")
_tree = ast.parse(_SCRIPT.read_text())
_tree.body = [
    node for node in _tree.body if isinstance(node, ast.FunctionDef) and node.name in _FUNCTIONS
]
_names: dict[str, Any] = {"re": re, "List": list, "Dict": dict}
exec(compile(_tree, str(_SCRIPT), "exec"), _names)


def verdict_of(question: dict[str, Any]) -> str:
    """Return precision and recall; the answer passes if it cites a relevant document."""
    cited = _names[_FUNCTIONS[0]](question["answer"])
    metrics = _names[_FUNCTIONS[1]](cited, question["relevant"])
    precision, recall = metrics["precision"], metrics["recall"]
    return f"{int(precision > 0)}:{precision:.6f},{recall:.6f}"


if __name__ == "__main__":
    answer(verdict_of)
