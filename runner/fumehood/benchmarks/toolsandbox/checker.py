"""Runs the scenarios, tools and evaluation of a checkout of ToolSandbox, in a separate process.

A question contains the moves of an episode. A child process plays all of them, so that no process
keeps the state of an episode.
"""

from __future__ import annotations

import datetime
import os
import pickle
import random
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from fumehood.benchmarks.toolsandbox.names import AGENT, PACKAGES, PARTS, USER
from fumehood.benchmarks.toolsandbox.play import (
    Clock,
    messages_of,
    original,
    play,
    random_id,
    role,
    score,
)
from fumehood.benchmarks.toolsandbox.reference import reference_moves
from fumehood.supervised.late_imports import import_late

INSTALL = "see the page of the benchmark toolsandbox"
_LISTS = ("tool_allow_list", "tool_augmentation_list")
"""Attributes of a scenario's context that decide which tools are offered, and how."""
_WEB_TOOLS = "tool_sandbox.tools.rapid_api_search_tools"
_OF_VENDORS = """
    requests langchain_core langchain_core.messages langchain_core.pydantic_v1 openai openai.types
    openai.types.chat openai.types.chat.chat_completion_message_tool_call
""".split()  # noqa: SIM905
"""Modules that are imported for models and web services, which this process does not use."""
_IMPORTED_LATE = """
    asyncio base64 calendar cmath code contextvars csv decimal email.parser
    bz2 fractions getopt getpass gettext glob gzip heapq hmac html.entities http.client lzma
    http.cookiejar http.cookies importlib.metadata importlib.readers ipaddress logging mmap
    multiprocessing.reduction numbers optparse pkgutil platform pprint pydoc queue secrets sqlite3
    ssl stringprep sysconfig textwrap timeit tokenize unicodedata unittest urllib.request uuid
    xml.dom.minidom xml.etree.ElementTree xml.sax.saxutils zipfile
""".split()  # noqa: SIM905
"""Modules of Python that the packages import when this process can no longer read them."""
_ONE_THREAD = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


_imported: dict[str, Any] = {}
"""The last checkout: its ``folder``, the ``scenarios`` of the part ``base``, pickled, and all
``tasks`` with their tools."""


def load() -> None:
    """Choose the time zone and the number of threads, and replace the packages of vendors."""
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"), HOME="/", TQDM_DISABLE="1", TZ="UTC")
    time.tzset()
    import_late(*_IMPORTED_LATE)
    tempfile.tempdir = "/tmp"  # Packages ask for it. Python would try to write a file.
    for name in _OF_VENDORS:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name])["__getattr__"] = _record_class


def _record_class(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return SimpleNamespace


def prepare(places: dict[str, Any]) -> None:
    """Import a checkout and build its scenarios, unless it was the last one."""
    folder = places["folder"]
    if _imported.get("folder") == folder:
        return
    _imported.clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "tool_sandbox"]:
        del sys.modules[name]
    # Some packages import and read further files when they are used.
    sys.path[:0] = [folder, str(Path(folder, PACKAGES))]
    import_module("dill")
    for name in ("scenarios", "roles.execution_environment"):
        original(name)
    of_episode = SimpleNamespace(**{**vars(datetime), "datetime": Clock})
    for name, module in [*sys.modules.items()]:
        if name.startswith("tool_sandbox."):
            replaced = {"datetime": of_episode, "uuid4": random_id}
            vars(module).update({key: replaced[key] for key in replaced if hasattr(module, key)})
    # polars does not work in a child of a process that used it.
    scenarios, tasks = _from_child(lambda: _in_pool(_build))
    _imported.update(folder=folder, scenarios=scenarios, tasks=tasks)


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question.

    Args:
        question: ``op`` is ``tasks`` (all, with reference solutions), ``tools`` (of a task),
            ``call`` (play ``moves`` and return the reply to the last) or ``score`` (evaluate
            ``moves``).
    """
    return dict(_in_pool(lambda: _answer(question)))


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    tasks = _imported["tasks"]
    match question:
        case {"op": "tasks"}:
            return {
                "scenarios": {name: _describe(_scenario(name)) for name in _imported["scenarios"]},
                "tasks": [{"name": name, **task, "tools": None} for name, task in tasks.items()],
            }
        case {"op": "tools", "task": name}:
            return {"tools": tasks[name]["tools"]}
        case {"op": "call", "task": name, "moves": moves}:
            return play(_scenario(name), moves).reply()
    return score(_scenario(question["task"]), question["moves"])


def _build() -> tuple[dict[str, bytes], dict[str, dict[str, Any]]]:
    """Return the scenarios that need no network, and the tools of their parts."""
    random.seed(0)
    suite, dill = original("scenarios"), import_module("dill")
    # The parts differ only in the tools that they offer.
    suite.copy = SimpleNamespace(deepcopy=_Offer)
    published = suite.named_scenarios(original("common.tool_discovery").ToolBackend.DEFAULT)
    scenarios = {
        name: scenario
        for name, scenario in published.items()
        if not isinstance(scenario, _Offer) and _WEB_TOOLS not in _modules(scenario)
    }
    tasks = {
        f"{name}{end}": {
            **{"base": name, "part": part},
            **_offered(published[f"{name}{end}"].starting_context, scenario.starting_context),
        }
        for name, scenario in scenarios.items()
        for part, end in PARTS.items()
    }
    return {name: dill.dumps(each) for name, each in scenarios.items()}, tasks


class _Offer:
    """The part of a scenario's copy that differs: the names of the tools that it offers."""

    def __init__(self, scenario: Any) -> None:
        context = scenario.starting_context
        self.starting_context = SimpleNamespace(**{key: [*getattr(context, key)] for key in _LISTS})
        self.categories = [*scenario.categories]


def _modules(scenario: Any) -> set[str]:
    tools = scenario.starting_context.name_to_tool
    return {tools[name].__module__ for name in scenario.starting_context.tool_allow_list}


def _offered(offer: Any, context: Any) -> dict[str, Any]:
    for key in _LISTS:
        setattr(context, key, getattr(offer, key))
    original("common.execution_context").set_current_context(context)
    convert = original("common.tool_conversion").convert_to_openai_tools
    tools = {
        seat: [tool["function"] for tool in convert(role(seat, []).get_available_tools())]
        for seat in (AGENT, USER)
    }
    return {
        "tools": tools,
        "names": {seat: [tool["name"] for tool in tools[seat]] for seat in tools},
        "shown_as": {
            name: context.get_agent_facing_tool_name(name) for name in context.tool_allow_list
        },
        **{key: getattr(offer, key) for key in _LISTS},
    }


def _describe(scenario: Any) -> dict[str, Any]:
    keys = ("sender", "recipient", "content", "visible_to")
    messages = messages_of(scenario.starting_context)
    return {
        "categories": sorted({str(category).lower() for category in scenario.categories}),
        "messages": [{key: row[key] for key in keys} for row in messages],
        "messages_max": scenario.max_messages,
        "moves": reference_moves(scenario),
    }


def _scenario(name: str) -> Any:
    """Return a new copy of a scenario."""
    task = _imported["tasks"][name]
    scenario = import_module("dill").loads(_imported["scenarios"][task["base"]])
    for key in _LISTS:
        setattr(scenario.starting_context, key, task[key])
    return scenario


def _in_pool(compute: Callable[[], Any]) -> Any:
    """Compute in the thread of polars: otherwise each of thousands of operations changes threads,
    which takes a minute on a busy machine."""
    polars: Any = sys.modules.get("polars")
    if polars is None:
        return compute()
    results: list[Any] = []
    first, second = (polars.col(name) for name in ("first", "second"))

    def run(column: Any) -> Any:
        results.append(compute())
        return column

    polars.DataFrame({"first": [0], "second": [0]}).select(first.map_batches(run), second)
    return results[0]


def _from_child(compute: Callable[[], Any]) -> Any:
    """Return what a function computes in a child of this process, or raise RuntimeError."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "wb") as stream:
            try:
                pickle.dump((compute(), ""), stream)
            except BaseException as error:
                pickle.dump((None, repr(error)), stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        result, failure = pickle.load(stream)
    os.waitpid(child, 0)
    if failure:
        raise RuntimeError(failure)
    return result
