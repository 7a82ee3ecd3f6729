"""What scaffolds make of what a model says, and what they leave out when it has said much."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fumehood_agent.errors import Ended
from fumehood_agent.loading import load_class
from fumehood_agent.scaffolds.chat_model import ModelReply, WantedCall, WorkOver
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.table import SCAFFOLDS
from fumehood_agent.seat import Failure, Remaining, Reply, Task, Tool, Value

Message = dict[str, Any]


class Speaker:
    """A model that says what it is given, in order; the last thing again and again."""

    def __init__(self, *says: str | Sequence[tuple[str, str]]) -> None:
        self._says = says
        self.heard: list[Sequence[Message]] = []

    def ask(self, messages: Sequence[Message], tools: Sequence[Message] = ()) -> ModelReply:
        said = self._says[min(len(self.heard), len(self._says) - 1)]
        self.heard.append(list(messages))
        if isinstance(said, str):
            return ModelReply(said, (), {"role": "assistant", "content": said})
        calls = tuple(WantedCall(f"c{at}", name, text) for at, (name, text) in enumerate(said))
        return ModelReply("", calls, {"role": "assistant", "content": "", "tool_calls": []})


class Shop:
    """A seat with one tool that doubles, and fails beyond 100; ends after ``calls``."""

    ended = False

    def __init__(self, calls: int = 1000) -> None:
        self.task = Task("Double.", (Tool("double", {"type": "object"}),), Remaining())
        self.made: list[Mapping[str, Any]] = []
        self.end: tuple[str, str] | None = None
        self._calls = calls

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        if self.end is not None:
            raise Ended
        self.made.append(arguments)
        number = arguments.get("n", 0)
        result = (
            Failure("too_many", "n is at most 100") if number > 100 else Value({"n": 2 * number})
        )
        return Reply(result, Remaining(), ended=len(self.made) >= self._calls)

    def submit(self, answer: str = "") -> bool:
        return self._finish("submit", answer)

    def give_up(self, reason: str) -> bool:
        return self._finish("give_up", reason)

    def _finish(self, how: str, text: str) -> bool:
        counted, self.end = self.end is None, self.end or (how, text)
        return counted


def run(scaffold: str, model: Any, shop: Shop) -> Shop:
    load_class(f"builtin:{scaffold}")(model).run(shop)
    return shop


def last_heard(model: Speaker) -> str:
    return json.dumps(model.heard[-1])


def test_the_model_receives_results_and_failures() -> None:
    model = Speaker([("double", '{"n": 4}'), ("double", '{"n": 101}')], "It is 8.")
    assert run("react", model, Shop()).end == ("submit", "It is 8.")
    assert '{\\"n\\": 8}' in last_heard(model)
    assert "too_many" in last_heard(model)


def test_earlier_messages_are_kept_in_later_turns() -> None:
    model, shop = Speaker([("double", '{"n": 4}')], "It is 8."), Shop()
    agent = load_class("builtin:react")(model)
    agent.run(shop)
    shop.task = Task("And again.", shop.task.tools, Remaining(), turn=2)
    agent.run(shop)
    words = [message["content"] for message in model.heard[-1]]
    assert words[1] == "Double."
    assert words[-2:] == ["It is 8.", "And again."]


@pytest.mark.parametrize("wrong", ["{", "[]", '"n"'])
def test_invalid_arguments_are_answered_and_not_sent(wrong: str) -> None:
    model = Speaker([("double", wrong)], "Enough.")
    assert run("react", model, Shop()).made == []
    assert "JSON" in last_heard(model)


@pytest.mark.parametrize("scaffold", SCAFFOLDS)
def test_no_model_request_follows_the_end_of_the_work(scaffold: str) -> None:
    text = (
        'Action: double\nInput: {"n": 1}'
        if scaffold == "react_text"
        else "```\ncall('double', n=1)\n```"
    )
    said: Any = text if scaffold in ("react_text", "code") else [("double", '{"n": 1}')] * 3
    model = Speaker(*(["A plan."] if scaffold == "plan_act" else []), said)
    shop = run(scaffold, model, Shop(calls=1))
    assert len(shop.made) == 1
    assert len(model.heard) == (2 if scaffold == "plan_act" else 1)


@pytest.mark.parametrize("scaffold", SCAFFOLDS)
def test_an_exhausted_model_budget_does_not_crash_the_agent(scaffold: str) -> None:
    class Broke:
        def ask(self, messages: Sequence[Message], tools: Sequence[Message] = ()) -> ModelReply:
            raise WorkOver("out_of_budget")

    assert run(scaffold, Broke(), Shop()).made == []


def test_a_model_that_never_ends_gives_up() -> None:
    end = run("react", Speaker([("double", "{}")]), Shop()).end
    assert end == ("give_up", "no end after 64 turns")


def test_text_after_an_action_is_ignored() -> None:
    said = 'I try.\nAction: double\nInput: {"n": 3}\nObservation: {"n": 999}\nAnswer: 999'
    shop = run("react_text", Speaker(said, "Answer: 6"), Shop())
    assert (shop.made, shop.end) == ([{"n": 3}], ("submit", "6"))


def test_names_are_kept_between_pieces_of_code() -> None:
    model = Speaker(
        "```python\nx = call('double', n=2)['n']\nprint('x is', x)\n```",
        "```python\ntry:\n    call('double', n=101 + x)\n"
        "except ToolFailed as error:\n    print(error)\n```",
        "```python\n1 / 0\n```",
        "```python\nsubmit(x)\nprint('never')\n```",
    )
    assert run("code", model, Shop()).end == ("submit", "4")
    for words in ("x is 4", "too_many: n is at most 100", "ZeroDivisionError"):
        assert words in last_heard(model)


def test_the_oldest_turns_are_removed_first_and_the_task_never() -> None:
    context = Context({"role": "user", "content": "the task"}, chars_max=600)
    for number in range(10):
        context.add_turn({"role": "assistant", "content": f"turn {number} " + "x" * 100})
    messages = context.messages()
    assert len(json.dumps(messages)) <= 600
    assert messages[0]["content"] == "the task"
    assert messages[1]["content"] == "[7 earlier turns left out]"
    assert [str(message["content"])[:6] for message in messages[2:]] == [
        "turn 7",
        "turn 8",
        "turn 9",
    ]


def test_the_newest_turn_is_kept_at_any_length() -> None:
    context = Context(chars_max=10)
    context.add_turn({"content": "a" * 100})
    context.add_turn({"content": "b" * 100})
    assert [message["content"][0] for message in context.messages()] == ["[", "b"]


def test_a_long_answer_of_a_tool_is_cut_at_its_end() -> None:
    assert Context(result_chars_max=4).cut("abcdefg") == "abcd\n[3 characters left out]"
    assert Context(result_chars_max=4).cut("abcd") == "abcd"
