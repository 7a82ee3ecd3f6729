"""BFCL through the real service, with an agent that sends model requests."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.architecture.project import ROOT
from tests.parts.commands import run_fumehood
from tests.parts.folders import short_folder
from tests.parts.installed import installed
from tests.parts.libraries import TOPICS, article, calls_of, config_for, play, publish, seal
from tests.parts.models import KEY
from tests.unit.snapshots.sites import Site, serving

installed("bfcl_eval", "mpmath")


def calls_two_functions_again_and_again(asked: AskedOfModel) -> ScriptedReply:
    name = asked.request["tools"][0]["function"]["name"]
    return ScriptedReply(tools=(ToolUse(name), ToolUse("invented")))


@pytest.mark.slow
def test_a_single_turn_category_ends_after_the_first_model_message(tmp_path: Path) -> None:
    with ScriptedModels(calls_two_functions_again_and_again) as models:
        provider = {"name": "scripted", "address": models.address, "key_env": "SCRIPTED_KEY"}
        (tmp_path / "run.yaml").write_text(
            yaml.safe_dump({"models": {"providers": [provider], "probe": False}})
        )
        words = ("run", "bfcl:live_relevance", "-a", "react", "--model", "m1", "--json")
        done = run_fumehood(
            *(*words, "--engine", "process"),
            *("--config", str(tmp_path / "run.yaml"), "--out", str(tmp_path / "run")),
            cwd=ROOT,
            env={**os.environ, "SCRIPTED_KEY": KEY},
            timeout_s=240,
        )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 16
    assert {row["success"] for row in rows} == {True}
    assert {row["outcome"] for row in rows} == {"out_of_budget(model_calls)"}
    (agent,) = json.loads(done.stdout)["agents"]
    assert agent["successes"] == 16


@pytest.mark.slow
def test_a_recorded_web_search_is_replayed_and_sealed() -> None:
    with serving() as site, short_folder() as folder:
        publish(site)
        place = Path(folder)
        (place / "tasks.jsonl").write_text(_web_task(site), encoding="utf-8")
        recording = {"agents": ("oracle",), "recording": place / "recording"}
        config = partial(config_for, site, place / "tasks.jsonl")
        recorded = play(config("record", **recording), place / "recorded")
        requests = len(site.requests)
        calls = calls_of(recorded)
        ((search, raw, text),) = calls.values()
        assert f"{site.url}/owls" in search[2]["result"]
        assert raw[2] == {"content": article("owls", TOPICS["owls"])}
        assert TOPICS["owls"] in text[2]["content"]
        assert calls_of(play(config("replay", **recording), place / "replayed")) == calls
        snapshot = seal(place / "recording", place / "snapshot")
        sealed = config("offline", agents=("oracle",), snapshot=snapshot)
        ((_, *pages),) = calls_of(play(sealed, place / "offline")).values()
        assert pages == [raw, text]
        assert len(site.requests) == requests


def _web_task(site: Site) -> str:
    url = f"{site.url}/owls"
    moves: list[Any] = [
        {"tool_name": "search_engine_query", "args": {"keywords": "owls hunt"}},
        {"tool_name": "fetch_url_content", "args": {"url": url}},
        {"tool_name": "fetch_url_content", "args": {"url": url, "mode": "truncate"}},
        {"submit": "at night"},
    ]
    record = {
        "format": "fumehood.task/1",
        "task_id": "owls",
        "world": "bfcl_web",
        "instruction": "When do owls hunt?",
        "initial_state": {"show_snippet": True},
        "budget": {"steps": 9, "calls": 9, "retries": 5},
        "solvable": True,
        "criteria": [{"op": "answer_contains", "value": "at night"}],
        "oracle": moves,
    }
    return f"{json.dumps(record)}\n"
