"""Writes a small checkout of ToolSandbox, with the interfaces that Fumehood uses and no packages.

Its evaluation is simpler than the original's; tests of the original's need a real checkout.
"""

from __future__ import annotations

from pathlib import Path

_EXECUTION_CONTEXT = """
import datetime
from enum import StrEnum, auto
from types import SimpleNamespace
from uuid import uuid4

class RoleType(StrEnum):
    SYSTEM = "SYSTEM"
    USER = "USER"
    AGENT = "AGENT"
    EXECUTION_ENVIRONMENT = "EXECUTION_ENVIRONMENT"

class DatabaseNamespace(StrEnum):
    SANDBOX = "SANDBOX"
    SETTING = "SETTING"

class Table:
    def __init__(self, rows):
        self.rows = rows
        self.columns = list(rows[0]) if rows else []
    def to_dicts(self):
        return [dict(row) for row in self.rows]
    def __getitem__(self, column):
        return [row[column] for row in self.rows]

KEYS = ("openai_tool_call_id", "openai_function_name", "tool_call_exception", "tool_trace",
        "visible_to")

class Context:
    def __init__(self, messages, tool_allow_list):
        self.messages = [{"conversation_active": True, **dict.fromkeys(KEYS), **each}
                         for each in messages]
        self.setting = {"wifi": True}
        self.tool_allow_list = tool_allow_list
        self.tool_augmentation_list = []
    @property
    def name_to_tool(self):
        from tool_sandbox import tools
        return tools.TOOLS
    def get_agent_facing_tool_name(self, name):
        return f"tool_{len(name)}" if self.tool_augmentation_list else name
    def get_execution_facing_tool_name(self, name):
        return {self.get_agent_facing_tool_name(each): each for each in self.name_to_tool}[name]
    def get_database(self, namespace, get_all_history_snapshots=False):
        return Table(self.messages)

_current = []

def get_current_context():
    return _current[-1]

def set_current_context(context):
    _current[:] = [context]
"""
_TOOLS = '''
import datetime
from uuid import uuid4
from tool_sandbox.common.execution_context import RoleType, get_current_context

def set_wifi_status(on):
    """Turn wifi on or off."""
    if not isinstance(on, bool):
        raise TypeError("on must be bool")
    get_current_context().setting["wifi"] = on

def get_current_timestamp():
    """Return the time."""
    return datetime.datetime.now().timestamp()

def add_note(text):
    """Return the identifier of a note."""
    return str(uuid4())

def end_conversation():
    """End the conversation."""
    get_current_context().messages[-1]["conversation_active"] = False

TOOLS = {tool.__name__: tool
         for tool in (set_wifi_status, get_current_timestamp, add_note, end_conversation)}
end_conversation.visible_to = (RoleType.USER,)
'''
_TOOL_CONVERSION = """
from inspect import signature

def convert_to_openai_tools(tools):
    return [{"type": "function", "function": {
        "name": name, "description": tool.__doc__,
        "parameters": {"type": "object", "required": list(signature(tool).parameters),
                       "properties": {key: {} for key in signature(tool).parameters}}}}
        for name, tool in tools.items()]
"""
_MESSAGE_CONVERSION = """
import json
from dataclasses import dataclass
from openai.types.chat.chat_completion_message_tool_call import (
    ChatCompletionMessageToolCall, Function)

@dataclass
class Message:
    sender: str
    recipient: str
    content: str
    openai_tool_call_id: str = None
    openai_function_name: str = None
    tool_call_exception: str = None
    tool_trace: list = None
    conversation_active: bool = True

def openai_tool_call_to_python_code(call, available_tool_names, execution_facing_tool_name):
    if call.function.name not in available_tool_names:
        raise KeyError(f"{call.function.name} is not a known allowed tool")
    name = execution_facing_tool_name or call.function.name
    return json.dumps([name, json.loads(call.function.arguments)])
"""
_BASE_ROLE = """
from tool_sandbox.common.execution_context import RoleType, get_current_context

class BaseRole:
    def add_messages(self, messages):
        get_current_context().messages += [{"visible_to": None, **vars(each)} for each in messages]
    def get_available_tools(self):
        context = get_current_context()
        is_agent = self.role_type == RoleType.AGENT
        return {context.get_agent_facing_tool_name(name) if is_agent else name: tool
                for name, tool in context.name_to_tool.items()
                if name in context.tool_allow_list
                and self.role_type in getattr(tool, "visible_to", (RoleType.AGENT,))}
"""
_EXECUTION_ENVIRONMENT = """
import json
from tool_sandbox.common.execution_context import RoleType, get_current_context
from tool_sandbox.common.message_conversion import Message
from tool_sandbox.roles.base_role import BaseRole

class ExecutionEnvironment(BaseRole):
    role_type = RoleType.EXECUTION_ENVIRONMENT
    def respond(self, ending_index=None):
        context = get_current_context()
        call = context.messages[-1]
        name, arguments = json.loads(call["content"])
        trace, error = None, None
        try:
            result = context.name_to_tool[name](**arguments)
            text = repr(result)
            trace = [json.dumps({"tool_name": name, "arguments": arguments, "result": result})]
        except Exception as raised:
            text = error = f"{type(raised).__name__}: {raised}"
        self.add_messages([Message(
            self.role_type, call["sender"], text, call["openai_tool_call_id"],
            call["openai_function_name"], error, trace, call["conversation_active"])])
"""
_SCENARIOS = """
import copy
import json
import random
from types import SimpleNamespace
import tool_sandbox.tools
from tool_sandbox.common.evaluation import (
    Evaluation, Milestone, Constraint, snapshot_similarity, text_similarity)
from tool_sandbox.common.execution_context import (
    Context, DatabaseNamespace, RoleType, Table, get_current_context, set_current_context)

RULES = "Play a user. You want User B to complete: "

class Scenario:
    max_messages = 8
    def __init__(self, opening, task, tools, milestones, mines=(), categories=()):
        messages = [("SYSTEM", "AGENT", "Ask if a request is ambiguous.", None),
                    ("SYSTEM", "USER", RULES + "find a message.", ["USER"]),
                    ("USER", "AGENT", "Find it.", ["USER"]),
                    ("SYSTEM", "USER", RULES + task, None), ("USER", "AGENT", opening, None)]
        keys = ("sender", "recipient", "content", "visible_to")
        self.starting_context = Context([dict(zip(keys, each)) for each in messages],
                                        ["end_conversation", *tools])
        self.evaluation = Evaluation(milestones, mines)
        self.categories = list(categories)
    def play(self, roles, name):
        set_current_context(self.starting_context)
        context = get_current_context()
        start = len(context.messages)
        while (context.messages[-1]["conversation_active"]
               and len(context.messages) < start + self.max_messages):
            roles[RoleType(context.messages[-1]["recipient"])].respond()

def wifi(value):
    return Milestone([Constraint(DatabaseNamespace.SETTING, snapshot_similarity,
                                 Table([{"wifi": value}]))])

def called(tool):
    trace = json.dumps({"tool_name": tool, "arguments": {}})
    return Milestone([Constraint(DatabaseNamespace.SANDBOX, snapshot_similarity, Table(
        [{"sender": "EXECUTION_ENVIRONMENT", "recipient": "AGENT", "tool_trace": trace}]))])

def said(text):
    return Milestone([Constraint(DatabaseNamespace.SANDBOX, text_similarity, Table(
        [{"sender": "AGENT", "recipient": "USER", "content": text}]))])

def named_scenarios(backend):
    scenarios = {
        "wifi_off": Scenario("Turn off wifi", "Turn off wifi.", ["set_wifi_status"],
                             [wifi(False), said("Wifi is off")]),
        "time": Scenario("Help me", "Ask for the time. It should be ten. Say please.",
                         ["get_current_timestamp", "add_note"],
                         [called("get_current_timestamp"), said("It is ten")],
                         categories=["MULTIPLE_USER_TURN"]),
        "impossible": Scenario("Call me", "Get a call.", ["set_wifi_status"], [], [wifi(False)],
                               ["INSUFFICIENT_INFORMATION"]),
    }
    for name in list(scenarios):
        for end in ("3_distraction_tools", "10_distraction_tools", "all_tools"):
            added = copy.deepcopy(scenarios[name])
            added.starting_context.tool_allow_list.append("add_note")
            added.categories.append(end.upper())
            scenarios[f"{name}_{end}"] = added
        scenarios[name].categories.append("NO_DISTRACTION_TOOLS")
        for end in ("tool_description", "arg_type", "arg_description", "tool_name"):
            added = copy.deepcopy(scenarios[f"{name}_3_distraction_tools"])
            added.starting_context.tool_augmentation_list = [end] if end == "tool_name" else []
            scenarios[f"{name}_3_distraction_tools_{end}_scrambled"] = added
    return scenarios
"""
_EVALUATION = """
import json
from types import SimpleNamespace

def guardrail_similarity(): ...

def snapshot_similarity(context, row):
    if "wifi" in row:
        return float(context.setting == row)
    tool = json.loads(row["tool_trace"])["tool_name"]
    return float(any(tool in str(message["tool_trace"]) for message in context.messages))

def text_similarity(context, row):
    texts = [each["content"] for each in context.messages
             if each["sender"] == "AGENT" and each["recipient"] == "USER"]
    words = set(row["content"].split())
    return max([len(words & set(text.split())) / len(words) for text in texts], default=0.0)

class Constraint:
    reference_milestone_node_index = None
    def __init__(self, namespace, similarity, target):
        self.database_namespace = namespace
        self.snapshot_constraint = similarity
        self.target_dataframe = target

class Milestone:
    def __init__(self, constraints):
        self.snapshot_constraints = constraints
    def similarity(self, context):
        (constraint,) = self.snapshot_constraints
        return constraint.snapshot_constraint(context, constraint.target_dataframe.to_dicts()[0])

class Evaluation:
    def __init__(self, milestones, mines):
        edges = [(at, at + 1) for at in range(len(milestones) - 1)]
        self.milestone_matcher = SimpleNamespace(milestones=list(milestones), edge_list=edges)
        self.mines = list(mines)
    def evaluate(self, context, max_turn_count):
        found = [each.similarity(context) for each in self.milestone_matcher.milestones]
        mines = [each.similarity(context) for each in self.mines]
        mean, mine = sum(found) / len(found) if found else 1, max(mines, default=0)
        return SimpleNamespace(
            similarity=mean if mine == 0 else 0, milestone_similarity=mean,
            minefield_similarity=mine, turn_count=len(context.messages),
            milestone_mapping={number: (0, each) for number, each in enumerate(found)})
"""
_FILES = {
    "tool_sandbox/__init__.py": "",
    "tool_sandbox/common/__init__.py": "",
    "tool_sandbox/common/execution_context.py": _EXECUTION_CONTEXT,
    "tool_sandbox/common/evaluation.py": _EVALUATION,
    "tool_sandbox/common/message_conversion.py": _MESSAGE_CONVERSION,
    "tool_sandbox/common/tool_conversion.py": _TOOL_CONVERSION,
    "tool_sandbox/common/tool_discovery.py": "class ToolBackend:\n    DEFAULT = 'default'\n",
    "tool_sandbox/roles/__init__.py": "",
    "tool_sandbox/roles/base_role.py": _BASE_ROLE,
    "tool_sandbox/roles/execution_environment.py": _EXECUTION_ENVIRONMENT,
    "tool_sandbox/scenarios/__init__.py": _SCENARIOS,
    "tool_sandbox/tools/__init__.py": _TOOLS,
    "packages/dill.py": "from pickle import *\n",
}


def write_checkout(folder: Path) -> Path:
    """Write the checkout into a folder that all users can read, and return the folder."""
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
