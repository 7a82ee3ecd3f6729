"""A model simulates the user: live, recorded and replayed, with a separate budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fumehood.cli.run import run
from fumehood.gateway.health_check import TEXT
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.episodes.test_conversations import HELPED
from tests.parts.commands import fumehood, fumehood_json
from tests.parts.models import KEY

WISH = "Please write the word one into /a.txt."


def as_user(heard: str) -> ScriptedReply:
    """Want something, look whether it was done, and be content."""
    if "written" in heard:
        return ScriptedReply(text="Thank you. ENOUGH", usage=(30, 5))
    return ScriptedReply(text=WISH, usage=(30, 5))


def as_agent(messages: list[dict[str, Any]]) -> ScriptedReply:
    """Do what was asked for, then say so."""
    if messages[-1]["role"] == "tool":
        return ScriptedReply(text="It is written.", usage=(40, 3))
    call = ToolUse("write_file", {"path": "/a.txt", "content": "one"}, "call_1")
    return ScriptedReply(tools=(call,), usage=(40, 7))


def both(asked: AskedOfModel) -> ScriptedReply:
    """Answer in the role that the first message states."""
    messages = asked.request["messages"]
    if TEXT.encode() in asked.body:
        return ScriptedReply(text="OK")
    if asked.request["model"] == "m-user":
        assert "You play a person" in str(messages[0]["content"])
        return as_user(str(messages[-1]["content"]))
    assert WISH in str(messages[1]["content"])
    return as_agent(messages)


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedModels]:
    with ScriptedModels(both) as models:
        yield models


@pytest.fixture
def folder(provider: ScriptedModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the task and a configuration that names the provider."""
    monkeypatch.setenv("PROVIDER_KEY", KEY)
    entry = {
        "name": "scripted",
        "address": provider.address,
        "models": ["m-*"],
        "key_env": "PROVIDER_KEY",
    }
    (tmp_path / "talk.jsonl").write_text(json.dumps(HELPED) + "\n", encoding="utf-8")
    for mode in ("record", "replay"):
        models = {"mode": mode, "providers": [entry], "cassette": str(tmp_path / "cassette")}
        (tmp_path / f"{mode}.yaml").write_text(yaml.safe_dump({"models": models}), encoding="utf-8")
    return tmp_path


def played(folder: Path, mode: str) -> Any:
    """Run the task once and return its row, with the digest of all."""
    out = folder / mode
    result = fumehood_json(
        *(
            "run",
            str(folder / "talk.jsonl"),
            "-a",
            "react",
            "--model",
            "m-agent",
            "--engine",
            "process",
        ),
        *("--seat", "user=simulated_user,m-user", "--config", str(folder / f"{mode}.yaml")),
        *("--json", "--out", str(out)),
    )
    assert [agent["successes"] for agent in result["agents"]] == [1]
    return json.loads((out / "episodes.jsonl").read_text())


@pytest.mark.slow
def test_a_conversation_of_two_models_replays_to_the_same_trace(
    folder: Path, provider: ScriptedModels
) -> None:
    live = played(folder, "record")
    asked = len(provider.asked)
    assert played(folder, "replay")["trace_digest"] == live["trace_digest"]
    assert len(provider.asked) == asked


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_refusal_by_the_users_model_ends_the_conversation_and_is_scored(
    folder: Path, status: int
) -> None:
    def squeamish(asked: AskedOfModel) -> ScriptedReply:
        if TEXT.encode() in asked.body:
            return ScriptedReply(text="OK")
        too_much = asked.request["model"] == "m-user" and "written" in str(
            asked.request["messages"][-1]
        )
        return ScriptedReply(status=status) if too_much else both(asked)

    with ScriptedModels(squeamish) as models:
        provider = {"name": "s", "address": models.address, "models": ["m-*"]}
        (folder / "squeamish.yaml").write_text(
            yaml.safe_dump({"models": {"providers": [provider]}})
        )
        row = played(folder, "squeamish")
    assert row["outcome"] == "finished"


@pytest.mark.parametrize(
    ("models", "words", "complaint"),
    [
        (
            {},
            ("--model", "x-none"),
            "no provider under `models` has x-none, which react calls; there are: m-*",
        ),
        (
            {"providers": [{"name": "s", "address": "http://127.0.0.1:9", "models": ["tiny"]}]},
            ("--model", "tinyy"),
            "no provider under `models` has tinyy, which react calls; did you mean 'tiny'?",
        ),
        ({"budget": {"usd": 1}}, ("--model", "m-agent"), "models.prices has no price for m-agent"),
        (
            {},
            ("--model", "m-agent", "--judge", "rules"),
            "the judge `rules` needs at least one rule",
        ),
        ({"mode": "replay", "cassette": "nowhere"}, ("--model", "m-agent"), "not nowhere"),
    ],
)
def test_a_run_without_the_required_models_is_refused_before_it_starts(
    folder: Path, models: dict[str, Any], words: tuple[str, ...], complaint: str
) -> None:
    provider = {"name": "s", "address": "http://127.0.0.1:9", "models": ["m-*"]}
    path = folder / "typo.yaml"
    path.write_text(yaml.safe_dump({"models": {"providers": [provider], **models}}))
    result = CliRunner().invoke(
        run,
        [
            str(folder / "talk.jsonl"),
            "-a",
            "react",
            *words,
            "--config",
            str(path),
            "--out",
            str(folder / "o"),
        ],
        standalone_mode=False,
    )
    assert complaint in str(result.exception)
    assert not (folder / "o").exists()


def test_a_user_with_an_unnamed_model_is_refused(folder: Path) -> None:
    words = ("run", str(folder / "talk.jsonl"), "-a", "noop", "--seat", "user=simulated_user")
    fumehood(
        *words, "--config", str(folder / "record.yaml"), "--out", str(folder / "none"), status=2
    )
    assert not (folder / "none").exists()
