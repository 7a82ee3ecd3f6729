"""The README's examples do what it says."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import pytest

import fumehood_agent
from fumehood_agent import Ending, Value, errors, work
from fumehood_agent.builtin import BUILTIN
from tests.unit.agent_sdk.memory_seat import TOOLS, MemorySeat
from tests.unit.agent_sdk.scripted_service import Answer, ScriptedService, failure, value

README = (Path(fumehood_agent.__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SESSION, ASYNCIO, AGENT = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (lambda _: value({"account": {"tier": "gold"}}), ("answer", "the tier is gold")),
        (
            lambda _: failure("not_found", "no such account"),
            ("give_up_reason", "not_found: no such account"),
        ),
    ],
    ids=["value", "failure"],
)
def test_the_first_example(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch, answer: Answer, end: tuple[str, str]
) -> None:
    service.answer = answer
    monkeypatch.setenv("FUMEHOOD_SOCKET", str(service.path))
    exec(SESSION, {})
    (submitted,) = service.submitted
    assert submitted.WhichOneof("end") == end[0]
    assert getattr(submitted, end[0]) == end[1]


def test_the_example_with_asyncio(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUMEHOOD_SOCKET", str(service.path))
    code = compile(ASYNCIO, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    asyncio.run(eval(code, {}))
    assert [each.answer for each in service.submitted] == ["done"]


def test_the_example_with_an_object() -> None:
    names: dict[str, type[fumehood_agent.Agent]] = {}
    exec(AGENT, names)
    seat = MemorySeat(lambda *_: Value({"jobs": []}), tools=TOOLS["scheduling"])
    assert work(names["Agent"](), seat) is Ending.SUBMITTED
    assert seat.calls == [("list_jobs", {})]


def test_every_built_in_agent_is_described() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)) == set(BUILTIN)


def test_the_tree_of_errors_is_the_one_in_the_code() -> None:
    branch = re.compile(r"[├└]── (\w+)")
    defined = {thing.__name__ for thing in vars(errors).values() if isinstance(thing, type)}
    assert branch.findall(README) == branch.findall(errors.__doc__ or "")
    assert {"FumehoodError", "RefusalKind", "Enum", *branch.findall(README)} == defined
