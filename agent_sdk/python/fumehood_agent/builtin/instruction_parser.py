"""An agent that reads its instruction with fixed patterns and makes the one call that they match.

It stops after one success. It repairs a failed call as :mod:`schema_repair` does. If no pattern
matches, it calls the next tool with default arguments.

The patterns are those of the first publication, with their errors, and must not be improved:
results of this agent are compared across years. ``"job named x"`` gives the name ``"named"``,
``"tier=gold"`` is not read, and an apostrophe shifts the limits of a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Set

from fumehood_agent.adapter import Action
from fumehood_agent.builtin.schema_repair import SchemaRepair, repaired
from fumehood_agent.observation import Observation
from fumehood_agent.seat import JsonObject

_ACCOUNT = re.compile(r"\b[abn][a-z]?\d{4,6}\b", re.IGNORECASE)
_ACCOUNT_ID = re.compile(r"id ([a-z][a-z0-9_-]+)", re.IGNORECASE)
_REASON = re.compile(r"reason(?: as)? ([a-z_]+)")
_TIER = re.compile(r"(?:tier is |tier= |to )([a-z][a-z0-9_]*)")
_DOCUMENT = re.compile(r"\bd[a-z]?\d{4,6}\b", re.IGNORECASE)
_PATH = re.compile(r"/[a-z0-9_./-]+", re.IGNORECASE)
_QUOTED = re.compile(r"'([^']+)'")
_CRON = re.compile(r"cron=([^;]+)", re.IGNORECASE)
_JOB_NAME = re.compile(r"(?:job|named) ([a-z0-9_]+)", re.IGNORECASE)
_COMMAND = re.compile(r"command '?([a-z0-9_]+)", re.IGNORECASE)
_RUN = re.compile(r"run ([a-z0-9_]+)", re.IGNORECASE)


class InstructionParser(SchemaRepair):
    """Makes the call that its instruction requests, and repairs it until it succeeds."""

    def act(self, observation: Observation) -> Action | None:
        """Stop after a success, repair after an error, else make the call that was read."""
        if observation["transcript"] and observation["last_error"] is None:
            return None
        return repaired(observation) or self.first_call(observation)

    def first_call(self, observation: Observation) -> Action | None:
        """Return the call that the instruction requests, or a default call of the next tool."""
        tools = {schema["name"] for schema in observation["tool_schemas"]}
        return read_call(observation["instruction"], tools) or self.open_next(observation)


def read_call(text: str, tools: Set[str]) -> Action | None:
    """Return the call of the first pattern that matches an English text; None if none matches.

    No other tool than ``tools`` is returned.
    """
    return (
        _read_accounts(text, tools)
        or _read_documents(text, tools)
        or _read_files(text, tools)
        or _read_jobs(text, tools)
    )


def _read_accounts(text: str, tools: Set[str]) -> Action | None:
    lower = text.lower()
    token = _first(_ACCOUNT, text, group=0)
    if token and "close_account" in tools and _mentions(lower, "close", "deactivate", "archive"):
        return _call("close_account", id=token, reason=_first(_REASON, lower) or "user_request")
    if (
        token
        and "update_account" in tools
        and _mentions(lower, "update", "tier", "patch", "subscription")
    ):
        return _call("update_account", id=token, patch={"tier": _first(_TIER, lower) or "basic"})
    if "create_account" in tools and _mentions(lower, "create", "register", "add customer"):
        name = token or _first(_ACCOUNT_ID, text) or "acct_new"
        return _call("create_account", fields={"id": name, "status": "active"})
    return None


def _read_documents(text: str, tools: Set[str]) -> Action | None:
    lower = text.lower()
    token = _first(_DOCUMENT, text, group=0)
    if token and "get_doc" in tools and _mentions(lower, "document", "doc id", "retrieval record"):
        return _call("get_doc", doc_id=token)
    query = _first(_QUOTED, text)
    if (
        query
        and "search_docs" in tools
        and _mentions(lower, "search", "find relevant", "run document search")
    ):
        return _call("search_docs", query=query, top_k=1)
    return None


def _read_files(text: str, tools: Set[str]) -> Action | None:
    lower = text.lower()
    path = (_first(_PATH, text, group=0) or "").rstrip(".")
    if not path:
        return None
    if "write_file" in tools and _mentions(lower, "write", "create file", "store the text"):
        return _call("write_file", path=path, content=_first(_QUOTED, text) or "")
    if "read_file" in tools and _mentions(lower, "read", "open", "fetch content"):
        return _call("read_file", path=path)
    return None


def _read_jobs(text: str, tools: Set[str]) -> Action | None:
    lower = text.lower()
    cron = _first(_QUOTED, text) or (_first(_CRON, text) or "").strip() or "0 * * * *"
    if "validate_cron" in tools and _mentions(
        lower, "validate", "check whether", "cron validation"
    ):
        return _call("validate_cron", cron=cron)
    if "create_job" in tools and _mentions(
        lower, "create scheduler", "register job", "add a cron job"
    ):
        name = _first(_JOB_NAME, text) or "job"
        command = _first(_COMMAND, text) or _first(_RUN, text) or "run_task"
        return _call("create_job", name=name, cron=cron, command=command)
    return None


def _call(tool_name: str, **arguments: str | int | JsonObject) -> Action:
    return {"tool_name": tool_name, "args": dict(arguments)}


def _mentions(lower: str, *words: str) -> bool:
    return any(word in lower for word in words)


def _first(pattern: re.Pattern[str], text: str, group: int = 1) -> str | None:
    match = pattern.search(text)
    return match[group] if match else None
