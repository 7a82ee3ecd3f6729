"""Loads ToolSandbox from a checkout: every task has an agent's seat and a user's seat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from fumehood.benchmarks.shared.checkout import checkout_folder
from fumehood.benchmarks.shared.reading import Place, Placed
from fumehood.benchmarks.shared.records import validated
from fumehood.benchmarks.toolsandbox.names import AGENT, END_TOOL, PACKAGES, PARTS, USER
from fumehood.benchmarks.toolsandbox.scorer import OP
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InfraError, InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import SCRIPT, About, Case, Suite, Task
from fumehood.third_party.process import checker

USAGE = "toolsandbox[:PART]:CHECKOUT"
GO_ON = "Please do what you can."
AGENT_INSTRUCTION = """\
{prompt}

The text you submit is sent to the user, and the user's reply is your next turn.

The user says: """
USER_INSTRUCTION = """\
{prompt}

You have already said to User B: {opening}

An example of such a conversation, with another task: {example}"""
END_OF_RULES = "want User B to complete: "
SPEAKERS = {"SYSTEM": "The task", "USER": "You", "AGENT": "User B"}
_NOT_SAID = re.compile(r"It should|leak|You do not have|User B")
"""Sentences of a user's task that the scripted user does not say."""
ABOUT = About(
    licence="Apple's sample code licence (apple/ToolSandbox), from your checkout",
    criterion="the original's milestones and minefields, unmodified, in an unprivileged process",
    scored_on="databases, calls and messages after each step, in the order of a graph",
)


class Scenario(BaseModel):
    """A scenario, which all parts of the suite contain."""

    categories: tuple[str, ...]
    messages: tuple[dict[str, Any], ...]
    """Before the episode."""
    messages_max: int
    moves: tuple[dict[str, Any], ...]
    """The reference solution."""

    def text(self, sender: str, recipient: str) -> str:
        """Return the last message between two roles."""
        between = [each for each in self.messages if each["sender"] == sender]
        return str([each for each in between if each["recipient"] == recipient][-1]["content"])


class Record(BaseModel):
    """A scenario with the tools of a part."""

    name: str
    base: str
    part: str
    names: dict[str, tuple[str, ...]]
    """By seat, the names of its tools."""
    shown_as: dict[str, str]
    """Name of each tool → the name that the agent sees."""


class Description(BaseModel):
    """All scenarios and tasks of a checkout."""

    scenarios: dict[str, Scenario]
    tasks: tuple[Record, ...]


class ToolSandbox:
    """The benchmark ``toolsandbox``. Its argument is ``[PART:]CHECKOUT``."""

    source = "apple/ToolSandbox 165848b, your checkout"

    def load(self, argument: str) -> Suite:
        """Return the tasks of a part, or all tasks."""
        part, _, folder = argument.partition(":")
        if part not in PARTS:
            part, folder = "", argument
        checkout = checkout_folder(folder, contains="tool_sandbox", usage=USAGE)
        place = str(checkout.resolve())
        checkout_folder(place, contains=PACKAGES, usage=f"{USAGE}; see the page of toolsandbox")
        try:
            description = checker(OP).ask({"op": "tasks", "folder": place})
        except InfraError as error:
            raise InputError(
                f"{place}: not a complete checkout that all users can read, see the page of "
                f"toolsandbox: {error}"
            ) from None
        described = validated(Placed(description, Place(checkout)), Description).value
        cases = tuple(
            _case(record, described.scenarios[record.base], place)
            for record in described.tasks
            if part in ("", record.part)
        )
        return Suite(":".join(("toolsandbox", part)).rstrip(":"), cases, about=ABOUT)


def _case(record: Record, scenario: Scenario, folder: str) -> Case:
    prompt, opening = scenario.text("SYSTEM", "USER"), scenario.text("USER", "AGENT")
    examples = [each for each in scenario.messages if each["visible_to"] == ["USER"]]
    budget = Budget(calls=scenario.messages_max)
    to_agent = AGENT_INSTRUCTION.format(prompt=scenario.text("SYSTEM", "AGENT"))
    example = "\n".join(_example(examples))
    to_user = USER_INSTRUCTION.format(prompt=prompt, opening=opening, example=example)
    task = Task(
        task_id=record.name,
        world="toolsandbox",
        harness_mode="native",
        initial_state={
            **{"folder": folder, "task": record.name},
            **{"opening": opening, "messages_max": scenario.messages_max},
        },
        seats=(
            SeatSpec(name=AGENT, instruction=to_agent, budget=budget, tools=record.names[AGENT]),
            SeatSpec(name=USER, instruction=to_user, budget=budget, tools=record.names[USER]),
        ),
        tags={
            **{"domain": "phone", "part": record.part, "scenario": record.base},
            "user_turns": "several" if "multiple_user_turn" in scenario.categories else "one",
            "insufficient_information": "insufficient_information" in scenario.categories,
        },
        conversation=ConversationSpec("world", {}),
        counterparts={USER: SCRIPT},
        scripts={USER: tuple(_script(scenario, prompt.partition(END_OF_RULES)[2]))},
    )
    oracle = tuple(
        {**move, "tool_name": record.shown_as[move["tool_name"]]}
        if "tool_name" in move and move.get("seat") != USER
        else move
        for move in scenario.moves
    )
    return Case(task, Gold(OP, ({"op": OP},), solvable=True, oracle=oracle))


def _example(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        said, speaker = message["content"], SPEAKERS[message["sender"]]
        yield f"{speaker}: {said.partition(END_OF_RULES)[2] or said}"


def _script(scenario: Scenario, task: str) -> Iterator[JsonObject]:
    """Yield the moves of the scripted user, who states the task if there are several turns."""
    if "multiple_user_turn" in scenario.categories:
        sentences = re.split(r"(?<=[.?!])\s+", task)
        yield {"submit": " ".join(each for each in sentences if not _NOT_SAID.search(each))}
        yield {"submit": GO_ON}
    yield {"tool_name": END_TOOL, "args": {}}
    yield {"submit": ""}
