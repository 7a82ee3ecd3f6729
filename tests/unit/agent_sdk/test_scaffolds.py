"""What scaffolds make of what a model says, and what they leave out when it has said much."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fumehood_agent.errors import Ended
from fumehood_agent.loading import load_class
from fumehood_agent.scaffolds.chat_model import ContextOverflow, ModelRefused, WorkOver
from fumehood_agent.scaffolds.context import Context
from fumehood_agent.scaffolds.dialects import ModelReply, WantedCall
from fumehood_agent.scaffolds.settings import ModelSettings
from fumehood_agent.scaffolds.table import SCAFFOLDS
from fumehood_agent.seat import Failure, ModelProblem, Remaining, Reply, Task, Tool, Value

Message = dict[str, Any]


class Speaker:
    """A model that says what it is given, in order; the last thing again and again."""

    def __init__(
        self, *says: str | Sequence[tuple[str, str]], truncated: bool = False, **settings: Any
    ) -> None:
        self._says = says
        self._truncated = truncated
        self.settings = ModelSettings(**settings)
        self.heard: list[Sequence[Message]] = []

    def ask(self, messages: Sequence[Message], tools: Sequence[Message] = ()) -> ModelReply:
        said = self._says[min(len(self.heard), len(self._says) - 1)]
        self.heard.append(list(messages))
        if isinstance(said, str):
            message = {"role": "assistant", "content": said}
            return ModelReply(said, (), message, self._truncated)
        calls = tuple(WantedCall(f"c{at}", name, text) for at, (name, text) in enumerate(said))
        return ModelReply("", calls, {"role": "assistant", "content": "", "tool_calls": []})


class Shop:
    """A seat with one tool that doubles, and fails beyond 100; ends after ``calls``."""

    ended = False

    def __init__(self, calls: int = 1000) -> None:
        self.task = Task("Double.", (Tool("double", {"type": "object"}),), Remaining())
        self.made: list[Mapping[str, Any]] = []
        self.reported: list[ModelProblem] = []
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

    def stop(self, problem: ModelProblem) -> bool:
        return self._finish("stop", problem.value)

    def report(self, problem: ModelProblem) -> None:
        self.reported.append(problem)

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


class TeamShop(Shop):
    """A shop whose seat leads a team; each member repeats its order."""

    def submit(self, answer: str = "") -> bool:
        if not answer.startswith("@"):
            return super().submit(answer)
        member, _, order = answer[1:].partition(": ")
        tools = (*self.task.tools, Tool("ask_b", {"type": "object"}))
        self.task = Task(f"{member}: I did {order}", tools, Remaining(), turn=self.task.turn + 1)
        return True


def test_each_member_of_a_team_is_a_tool_whose_result_is_its_answer() -> None:
    orders = [("ask_a", '{"order": "this"}'), ("double", '{"n": 4}'), ("ask_a", '{"order": " "}')]
    model, shop = Speaker(orders, [("ask_b_", '{"order": "that"}')], "Done."), TeamShop()
    load_class("builtin:lead")(model, members=["a", "b"]).run(shop)
    assert shop.end == ("submit", "Done.")
    assert shop.made == [{"n": 4}]
    results = [
        [message["content"] for message in messages if message["role"] == "tool"]
        for messages in model.heard[1:]
    ]
    assert results[0] == ["a: I did this", '{"n": 8}', "The order must not be empty."]
    assert results[1][3:] == ["b: I did that"]


def test_the_work_of_a_leader_ends_with_its_conversation() -> None:
    model, shop = Speaker([("ask_a", '{"order": "this"}')]), Shop()
    load_class("builtin:lead")(model, members=["a"]).run(shop)
    assert shop.end == ("submit", "@a: this")


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
        settings = ModelSettings()

        def ask(self, messages: Sequence[Message], tools: Sequence[Message] = ()) -> ModelReply:
            raise WorkOver("out_of_budget")

    assert run(scaffold, Broke(), Shop()).made == []


def test_a_model_that_never_ends_is_stopped_at_the_turn_limit() -> None:
    model = Speaker([("double", "{}")], turns=7)
    shop = run("react", model, Shop())
    assert shop.end == ("stop", "turn_limit")
    assert shop.reported == [ModelProblem.TURN_LIMIT]
    assert len(model.heard) == 7


@pytest.mark.parametrize("scaffold", SCAFFOLDS)
def test_a_reply_that_was_cut_is_never_an_answer(scaffold: str) -> None:
    model = Speaker("The answer is", truncated=True, unusable_replies=3)
    shop = run(scaffold, model, Shop())
    assert shop.end == ("stop", "reply_truncated")
    assert len(model.heard) == {"single_shot": 1, "plan_act": 4}.get(scaffold, 3)


def test_arguments_that_are_never_json_end_the_work() -> None:
    model = Speaker([("double", "{")], unusable_replies=3)
    assert run("react", model, Shop()).end == ("stop", "arguments_unparseable")
    assert len(model.heard) == 3


def test_one_usable_reply_resets_the_count_of_unusable_ones() -> None:
    bad, good = [("double", "{")], [("double", "{}")]
    model = Speaker(bad, bad, good, bad, bad, good, "Done.", unusable_replies=3)
    assert run("react", model, Shop()).end == ("submit", "Done.")


def test_text_that_is_neither_a_call_nor_an_answer_is_reported() -> None:
    model = Speaker("Hello.", "Action: double\nInput: {n", unusable_replies=2)
    shop = run("react_text", model, Shop())
    assert shop.end == ("stop", "arguments_unparseable")
    assert shop.reported == [ModelProblem.REPLY_UNPARSEABLE, ModelProblem.ARGUMENTS_UNPARSEABLE]


@pytest.mark.parametrize("scaffold", SCAFFOLDS)
@pytest.mark.parametrize(
    ("error", "problem"),
    [(ContextOverflow, "context_overflow"), (ModelRefused, "request_refused")],
)
def test_a_request_that_the_provider_refuses_stops_the_work(
    scaffold: str, error: type[Exception], problem: str
) -> None:
    class Refusing:
        settings = ModelSettings()

        def ask(self, messages: Sequence[Message], tools: Sequence[Message] = ()) -> ModelReply:
            raise error("no")

    assert run(scaffold, Refusing(), Shop()).end == ("stop", problem)


def test_a_simulated_user_never_stops_the_conversation_by_an_error() -> None:
    model = Speaker("Well", truncated=True)
    end = run("simulated_user", model, Shop()).end
    assert end is not None
    assert end[0] == "submit"


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


def test_without_a_strategy_nothing_is_left_out() -> None:
    context = Context(chars_max=10, strategy="none")
    for letter in "abc":
        context.add_turn({"content": letter * 100})
    assert [message["content"][0] for message in context.messages()] == ["a", "b", "c"]


def test_a_long_conversation_is_replaced_by_its_summary() -> None:
    summarised: list[Sequence[Message]] = []

    def summarise(messages: Sequence[Message]) -> str:
        summarised.append(messages)
        return "so far"

    opening = {"role": "user", "content": "the task"}
    context = Context(opening, chars_max=380, strategy="summarise", summarise=summarise)
    for letter in "abc":
        context.add_turn({"role": "assistant", "content": letter * 100})
    contents = [message["content"] for message in context.messages()]
    assert contents == [
        "the task",
        "[Summary of the conversation so far: so far]",
        "c" * 100,
    ]
    assert [message["content"][0] for message in summarised[0][:3]] == ["t", "a", "b"]
