"""Loads BFCL's ``format_sensitivity``: 200 single-turn entries, each in 26 forms of prompt.

The agent has no tools: functions are part of the prompt, and its answer contains calls as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from fumehood.benchmarks.bfcl.package import (
    Entry,
    join_messages,
    package_folder,
    read_entries,
)
from fumehood.benchmarks.bfcl.prompting import prompting
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Task

CATEGORY = "format_sensitivity"
_FORM = "ret_fmt={}&tool_call_tag={}&func_doc_fmt={}&prompt_fmt={}&style={}"
FORMS = (
    *(
        _FORM.format(answer, has_tag, document, "plaintext", "classic")
        for answer in ("python", "json", "verbose_xml", "concise_xml")
        for has_tag in (True, False)
        for document in ("python", "xml", "json")
    ),
    _FORM.format("python", False, "json", "markdown", "classic"),
    _FORM.format("python", False, "json", "plaintext", "experimental"),
)
"""Source: ``bfcl_eval.utils.get_all_format_sensitivity_configs``."""
_TYPES = {bool: "boolean", int: "integer", float: "float", str: "string", list: "array"}
Call = tuple[str, dict[str, Any]]


def format_cases(
    functions_of: Callable[[Entry], list[Any]], gold_calls: Callable[[Entry], Sequence[Call]]
) -> Iterator[Case]:
    """Yield the tasks in BFCL's order.

    Args:
        functions_of: Returns the function documents of an entry.
        gold_calls: Returns an entry's gold as names and arguments.
    """
    path = package_folder() / "data" / f"BFCL_v4_{CATEGORY}.json"
    for category, ids in json.loads(path.read_text(encoding="utf-8")).items():
        entries = [entry for entry in read_entries(category) if entry.value["id"] in set(ids)]
        for entry in entries:
            for form in FORMS:
                yield _case(entry, category, form, functions_of(entry), gold_calls(entry))


def _case(
    entry: Entry, category: str, form: str, functions: list[Any], calls: Sequence[Call]
) -> Case:
    prompt = prompting().formulate_system_prompt(
        format_sensitivity_config=form, functions=functions
    )
    question = "\n\n".join(map(join_messages, entry.value["question"]))
    answer, has_tag, *_ = (item.split("=")[1] for item in form.split("&"))
    text = _TEXTS[answer](calls)
    task = Task(
        task_id=f"{entry.value['id']}.{FORMS.index(form)}",
        world="bfcl_calls",
        harness_mode="native",
        initial_state={"functions": []},
        seed=1,
        seats=(SeatSpec(instruction=f"{prompt}\n\n{question}", budget=Budget(model_calls=1)),),
        tags={"category": CATEGORY, "form": form},
    )
    criterion: JsonObject = {
        "op": "bfcl_format",
        "ground_truth": entry.answer,
        "functions": functions,
        "category": category,
        "form": form,
    }
    submitted = f"<TOOLCALL>{text}</TOOLCALL>" if has_tag == "True" else text
    return Case(task, Gold("bfcl", (criterion,), oracle=({"submit": submitted},)))


def _python_text(calls: Sequence[Call]) -> str:
    texts = (
        f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        for name, arguments in calls
    )
    return f"[{', '.join(texts)}]"


def _json_text(calls: Sequence[Call]) -> str:
    return json.dumps([{"function": name, "parameters": arguments} for name, arguments in calls])


def _verbose_xml(calls: Sequence[Call]) -> str:
    return _xml(calls, "<params>{}</params>", "<param name={} value={} type={}/>", quoteattr)


def _concise_xml(calls: Sequence[Call]) -> str:
    return _xml(calls, "{}", "<param name={0} type={2}>{1}</param>", escape)


def _xml(
    calls: Sequence[Call], parameters: str, parameter: str, quote: Callable[[str], str]
) -> str:
    texts = []
    for name, arguments in calls:
        written = (
            parameter.format(
                quoteattr(key), quote(str(value)), quoteattr(_TYPES.get(type(value), "dict"))
            )
            for key, value in arguments.items()
        )
        texts.append(
            f"<function name={quoteattr(name)}>{parameters.format(''.join(written))}</function>"
        )
    return f"<functions>{''.join(texts)}</functions>"


_TEXTS: dict[str, Callable[[Sequence[Call]], str]] = {
    "python": _python_text,
    "json": _json_text,
    "verbose_xml": _verbose_xml,
    "concise_xml": _concise_xml,
}
