"""Writes a small checkout with the layout of τ²-bench and a made-up bank."""

from __future__ import annotations

import json
from pathlib import Path

_TOOLKIT = """
from loguru import logger
from tau2.environment.db import DB

TOOL, DISCOVERABLE_ATTR = "__tool__", "__discoverable__"
logger.info("imported")


def tool(method):
    setattr(method, TOOL, True)
    return method


def hidden(method):
    setattr(method, DISCOVERABLE_ATTR, True)
    return tool(method)


class ToolKit:
    def __init__(self, db: DB):
        self.db = db

    @property
    def tools(self):
        names = [name for name in vars(type(self)) if hasattr(getattr(type(self), name), TOOL)]
        return {name: getattr(self, name) for name in names}
"""
_DB = """
from addict import Dict as Unused
from pydantic import BaseModel


class DB(BaseModel):
    pass
"""
_DATA_MODEL = """
from tau2.environment.db import DB


class TransactionalDB(DB):
    users: dict = {}
    agent_discoverable_tools: dict = {}
"""
_TOOLS = '''
from tau2.environment.toolkit import ToolKit, hidden, tool


class KnowledgeTools(ToolKit):
    def __init__(self, db):
        super().__init__(db)
        self._unlocked = {}
        self._read_log_allowlist = set()

    def set_read_log_allowlist(self, names):
        self._read_log_allowlist = names

    @tool
    def unlock(self, name: str) -> dict:
        """Unlock a tool."""
        self._unlocked[name] = True
        return {"unlocked": len(self._unlocked)}

    @tool
    def call_discoverable_agent_tool(self, agent_tool_name: str, arguments: str) -> str:
        """Call an unlocked tool."""
        if agent_tool_name not in self._unlocked:
            raise ValueError("it is locked")
        if agent_tool_name in self._read_log_allowlist:
            self.db.agent_discoverable_tools.setdefault("data", {})[agent_tool_name] = "CALLED"
        return "called with " + arguments

    @hidden
    def look_up_1234(self) -> str:
        """Look something up."""
        return "found"


class KnowledgeUserTools(ToolKit):
    @tool
    def rename(self, user_id: str, name: str) -> bool:
        """Change a name."""
        self.db.users["data"][user_id] = {"name": name}
        return True
'''
_DATABASE = {"users": {"data": {"u1": {"name": "Ann"}}, "notes": ""}}


def write_tau2_checkout(path: Path, actions: list[dict[str, object]]) -> Path:
    """Write the checkout with one task of the given gold, and return the folder of its data."""
    sources = {
        "environment/db.py": _DB,
        "environment/toolkit.py": _TOOLKIT,
        "domains/banking_knowledge/data_model.py": _DATA_MODEL,
        "domains/banking_knowledge/tools.py": _TOOLS,
        # Importing the packages themselves would fail.
        "__init__.py": "raise ImportError",
        "domains/banking_knowledge/__init__.py": "raise ImportError",
    }
    folder = path / "data" / "tau2" / "domains" / "banking_knowledge"
    (folder / "tasks").mkdir(parents=True)
    for name, source in sources.items():
        file = path / "src" / "tau2" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    task = {
        "id": "task_1",
        "user_scenario": {"instructions": "You want help."},
        "evaluation_criteria": {"actions": actions, "reward_basis": ["DB"]},
    }
    (folder / "tasks" / "task_1.json").write_text(json.dumps(task))
    (folder / "db.json").write_text(json.dumps(_DATABASE))
    (folder / "policy.md").write_text("Be kind.")
    return folder
