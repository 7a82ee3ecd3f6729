"""A leader calls the members of its team as tools, and they keep their conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.architecture.project import ROOT
from tests.parts.commands import fumehood_json

TASKS = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
ORDERS = ("look it up", "now change it")


def tools_of(request: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request.get("tools", ())}


def model(asked: AskedOfModel) -> ScriptedReply:
    """Lead a team as a model whose team is among its tools, and carry out orders otherwise."""
    messages = asked.request["messages"]
    if "ask_worker1" not in tools_of(asked.request):
        orders = [message["content"] for message in messages if message["role"] == "user"]
        return ScriptedReply(text=f"I did {len(orders)} of my orders.", usage=(10, 5))
    results = sum(message["role"] == "tool" for message in messages)
    if results < len(ORDERS):
        use = ToolUse("ask_worker1", {"order": ORDERS[results]}, f"call_{results}")
        return ScriptedReply(tools=(use,), usage=(10, 5))
    return ScriptedReply(text="All is done.", usage=(10, 5))


@pytest.mark.slow
def test_a_leader_calls_members_as_tools_that_keep_their_memory(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(TASKS.read_text().splitlines(keepends=True)[0])
    with ScriptedModels(model) as models:
        provider = {"name": "scripted", "address": models.address}
        config = {
            "suite": str(tasks),
            "agents": ["lead"],
            "model": "m",
            "engine": "process",
            "team": {"workers": 2},
            "models": {"providers": [provider], "budget": {"calls": 16}, "probe": False},
            "seats": {"worker1": {"agent": "react"}, "worker2": {"agent": "react"}},
        }
        file = tmp_path / "run.yaml"
        file.write_text(yaml.safe_dump(config))
        said = fumehood_json("run", "--json", "--config", str(file), "--out", str(tmp_path / "run"))
    assert said["agents"][0]["outcomes"] == {"finished": 1}
    assert len(models.asked) == 5
    leader = [asked.request for asked in models.asked if "ask_worker1" in tools_of(asked.request)]
    worker = [asked.request for asked in models.asked if asked.request not in leader]
    results = [each["content"] for each in leader[-1]["messages"] if each["role"] == "tool"]
    assert results == ["worker1: I did 1 of my orders.", "worker1: I did 2 of my orders."]
    texts = [each["content"] for each in worker[-1]["messages"][-3:]]
    assert texts[0].endswith(ORDERS[0])
    assert texts[1:] == ["I did 1 of my orders.", ORDERS[1]]
    (trace,) = (tmp_path / "run" / "traces").glob("*/*")
    events = [json.loads(line)["event"] for line in trace.read_text().splitlines()]
    (opened,) = [event for event in events if event["kind"] == "opened"]
    budgets = [seat["budget"]["model_calls"] for seat in opened["seats"]]
    assert budgets == [6, 5, 5], "the seats share the model budget of one agent"
