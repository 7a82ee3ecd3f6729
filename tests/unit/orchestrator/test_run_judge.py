"""What the run's judge keeps, where a question must not be stored in plain text."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.core.veil import VEILED
from runner.orchestrator.config import RunConfig, run_config
from runner.orchestrator.run_judge import RunJudge
from runner.scorers.judges.prompt import fence_number
from runner.scorers.judges.question import Question
from runner.testing.scripted_models import ScriptedModels
from runner.testing.scripted_replies import ScriptedReply

SECRET = "Which owl — of all — was first?"
QUESTION = Question(
    name="judged_answer", asks=SECRET, texts={"response": "Ottoline \ud800"}, right_answer="O."
)
NUMBER = fence_number(QUESTION, 0)


def config_for(models: ScriptedModels) -> RunConfig:
    upstream = {"name": "scripted", "address": models.address, "models": ["j1"]}
    told = {"suite": "any", "agents": ["any"], "judge": "j1", "judging": {"samples": 1}}
    return run_config({**told, "models": {"upstreams": [upstream], "mode": "replay"}})


@pytest.mark.parametrize("profile", ["native", VEILED])
def test_an_opinion_is_read_again_from_what_was_kept(tmp_path: Path, profile: str) -> None:
    reply = ScriptedReply(text=f"{SECRET} is asked.\n[{NUMBER}] yes")
    with ScriptedModels([reply]) as models:
        config = config_for(models)
        opinion = RunJudge(config, tmp_path, live=True).ask_for("a/t/0", profile)(QUESTION)
    assert opinion.votes == ("yes",)
    assert RunJudge(config, tmp_path, live=False).ask_for("a/t/0", profile)(QUESTION) == opinion
    assert RunJudge(config, tmp_path, live=False).ask_for("a/other/0", profile)(QUESTION).answer is None
    kept = [path.read_bytes() for path in (tmp_path / "judge").rglob("*") if path.is_file()]
    assert len(kept) == 3
    assert any(b"of all" in text for text in kept) is (profile != VEILED)
