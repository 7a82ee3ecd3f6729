"""Writes a small checkout with the layout of τ-bench: a shop with two orders."""

from __future__ import annotations

import json
from pathlib import Path

BASE = """
from litellm import completion
from tau_bench.types import Action


def load_user(**wanted):
    raise AssertionError("the user has its own seat")


class Response:
    def __init__(self, observation, done=False, reward=0.0):
        self.observation, self.done, self.reward = observation, done, reward


class Env:
    def __init__(self, load_data, tools, tasks, wiki):
        self.load_data, self.data, self.tasks, self.wiki = load_data, load_data(), tasks, wiki
        self.tools = {tool.get_info()["function"]["name"]: tool for tool in tools}
        self.tools_info = [tool.get_info() for tool in tools]
        self.terminate_tools = ["transfer_to_human_agents"]
        self.user = load_user(user_strategy="llm", model="any", provider=None)
        self.task_index, self.task, self.actions = 0, tasks[0], []

    def step(self, action):
        self.actions.append(action)
        if action.name == "respond":
            return Response(self.user.step(action.kwargs["content"]))
        try:
            shown = self.tools[action.name].invoke(self.data, **action.kwargs)
        except Exception as error:
            shown = f"Error: {error}"
        done = action.name in self.terminate_tools
        return Response(shown, done, self.calculate_reward().reward if done else 0.0)

    def calculate_reward(self):
        before = json_of(self.data)
        self.data = self.load_data()
        messages = [one.kwargs["content"] for one in self.actions if one.name == "respond"]
        for action in self.task.actions:
            if action.name not in self.terminate_tools:
                self.step(action)
        right = before == json_of(self.data)
        said = [any(wanted in text for text in messages) for wanted in self.task.outputs]
        right = right and all(said)
        return Response("", reward=float(right))


def json_of(data):
    import json

    return json.dumps(data, sort_keys=True)
"""
TYPES = """
from typing import Any

from pydantic import BaseModel


class Action(BaseModel):
    name: str
    kwargs: dict[str, Any]


class Task(BaseModel):
    user_id: str
    actions: list[Action]
    instruction: str
    outputs: list[str]
"""
ENV = """
import json
import os

from tau_bench.envs.base import Env
from tau_bench.types import Action, Task


def load_data():
    with open(os.path.join(os.path.dirname(__file__), "orders.json")) as file:
        return json.load(file)


def _info(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": name, "description": f"{name}.", "parameters": parameters}
    return {"type": "function", "function": function}


class Look:
    @staticmethod
    def invoke(data, order_id):
        return json.dumps(data[order_id])

    @staticmethod
    def get_info():
        return _info("look", order_id={"type": "string"})


class Cancel:
    @staticmethod
    def invoke(data, order_id):
        data[order_id]["status"] = "cancelled"
        return "cancelled"

    @staticmethod
    def get_info():
        return _info("cancel", order_id={"type": "string"})


class Compute:
    @staticmethod
    def invoke(data):
        raise SystemExit("exceeds the time or memory limit")

    @staticmethod
    def get_info():
        return _info("compute")


class Transfer:
    @staticmethod
    def invoke(data):
        return "transferred"

    @staticmethod
    def get_info():
        return _info("transfer_to_human_agents")


def _task(*actions, outputs=()):
    goal = "You want o1 cancelled."
    return Task(user_id="u", actions=list(actions), instruction=goal, outputs=list(outputs))


CANCEL = Action(name="cancel", kwargs={"order_id": "o1"})
TASKS = [_task(CANCEL, outputs=["o1"]), _task(Action(name="transfer_to_human_agents", kwargs={}))]


class MockRetailDomainEnv(Env):
    def __init__(self, task_split="test", task_index=None):
        tools = [Look, Cancel, Compute, Transfer]
        super().__init__(load_data, tools, TASKS, "Cancel nothing twice.")
"""


def write_checkout(path: Path) -> Path:
    """Write the checkout and return its path."""
    retail = path / "tau_bench" / "envs" / "retail"
    retail.mkdir(parents=True)
    for folder in (retail, retail.parent, retail.parent.parent):
        (folder / "__init__.py").write_text("")
    (path / "tau_bench" / "types.py").write_text(TYPES)
    (retail.parent / "base.py").write_text(BASE)
    (retail / "env.py").write_text(ENV)
    (retail / "orders.json").write_text(
        json.dumps({"o1": {"status": "open"}, "o2": {"status": "open"}})
    )
    return path
