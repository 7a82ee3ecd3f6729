"""The judge of a run: which replies of a model are votes, and which exchanges are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.core.encryption import ENCRYPTED
from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.judging import RunJudge, judge_source
from fumehood.scorers.judges.prompt import fence_number
from fumehood.scorers.judges.question import Question
from fumehood.scorers.judges.registry import JUDGES
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply

SECRET = "Which owl — of all — was first?"
QUESTION = Question(
    name="judged_answer", asks=SECRET, texts={"response": "Ottoline \ud800"}, right_answer="O."
)
NUMBER = fence_number(QUESTION, 0)


def config_for(models: ScriptedModels, samples: int = 1) -> RunConfig:
    provider = {"name": "scripted", "address": models.address, "models": ["j1"]}
    settings = {"suite": "any", "agents": ["any"], "judge": "j1", "judging": {"samples": samples}}
    return run_config({**settings, "models": {"providers": [provider], "mode": "replay"}})


@pytest.mark.parametrize("harness_mode", ["native", ENCRYPTED])
def test_kept_replies_give_the_same_opinion(tmp_path: Path, harness_mode: str) -> None:
    reply = ScriptedReply(text=f"{SECRET} is asked.\n[{NUMBER}] yes")
    with ScriptedModels([reply]) as models:
        config = config_for(models)
        opinion = RunJudge(judge_source(config, live=True), tmp_path).ask_for(
            "a/t/0", harness_mode
        )(QUESTION)
    assert opinion.votes == ("yes",)
    assert (
        RunJudge(judge_source(config, live=False), tmp_path).ask_for("a/t/0", harness_mode)(
            QUESTION
        )
        == opinion
    )
    assert (
        RunJudge(judge_source(config, live=False), tmp_path)
        .ask_for("a/other/0", harness_mode)(QUESTION)
        .answer
        is None
    )
    kept = [path.read_bytes() for path in (tmp_path / "judge").rglob("*") if path.is_file()]
    assert len(kept) == 3
    assert any(b"of all" in text for text in kept) is (harness_mode != ENCRYPTED)


def replies(*given: ScriptedReply | str) -> Iterator[ScriptedReply]:
    """Yield a reply for every sample of the question; a text is an answer in the right form."""
    for sample, reply in enumerate(given):
        number = fence_number(QUESTION, sample)
        yield (
            reply
            if isinstance(reply, ScriptedReply)
            else ScriptedReply(text=f"Hm.\n[{number}] {reply}")
        )


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat failed requests at once, twice at most."""
    monkeypatch.setattr("fumehood.orchestrator.judging.ATTEMPTS", 1)
    monkeypatch.setattr("fumehood.orchestrator.judging.PAUSES_S", (0.0, 0.0))


BUSY, BROKEN, EMPTY = ScriptedReply(status=429), ScriptedReply(status=400), ScriptedReply(text="")


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize(
    ("given", "votes", "answer"),
    [
        (("yes", "no", "yes"), ("yes", "no", "yes"), "yes"),
        ((BROKEN, "yes", "yes"), (None, "yes", "yes"), "yes"),
        ((BROKEN, EMPTY, "yes"), (None, None, "yes"), None),
        (("no", "yes"), ("no", "yes"), None),
        ((BUSY,), (None,), None),
        (("perhaps",), (None,), None),
    ],
)
def test_a_failed_reply_is_an_empty_vote_in_the_run_and_in_a_rescore(
    tmp_path: Path,
    given: tuple[ScriptedReply | str, ...],
    votes: tuple[str | None, ...],
    answer: str | None,
) -> None:
    by_number = {fence_number(QUESTION, at): reply for at, reply in enumerate(replies(*given))}

    def script(asked: AskedOfModel) -> ScriptedReply:
        return next(reply for number, reply in by_number.items() if number in asked.body.decode())

    with ScriptedModels(script) as models:
        config = config_for(models, len(given))
        opinion = RunJudge(judge_source(config, live=True), tmp_path).ask_for("a/t/0", "native")(
            QUESTION
        )
    assert (opinion.votes, opinion.answer) == (votes, answer)
    assert (
        RunJudge(judge_source(config, live=False), tmp_path).ask_for("a/t/0", "native")(QUESTION)
        == opinion
    )


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("failure", [BUSY, ScriptedReply(hangs_up=True)], ids=["busy", "lost"])
def test_a_vote_is_repeated_until_an_overloaded_provider_answers(
    tmp_path: Path, failure: ScriptedReply
) -> None:
    second, third = (fence_number(QUESTION, sample) for sample in (1, 2))
    failing = {second: 2, third: 0}

    def script(asked: AskedOfModel) -> ScriptedReply:
        text = asked.body.decode()
        number = next((known for known in failing if known in text), None)
        if number is not None and failing[number] > 0:
            failing[number] -= 1
            return failure
        return ScriptedReply(text=f"[{number or fence_number(QUESTION, 0)}] yes")

    with ScriptedModels(script) as models:
        judge = RunJudge(judge_source(config_for(models, 3), live=True), tmp_path)
        opinion = judge.ask_for("a/t/0", "native")(QUESTION)
    assert opinion.votes == ("yes", "yes", "yes")
    assert opinion.spent["calls"] == 3
    sent = [number in asked.body.decode() for asked in models.asked for number in (second, third)]
    # Only the request that failed was repeated.
    assert sent.count(True) == 3 + 1


class Broken:
    """A third-party judge."""

    def judge(self, question: Question) -> str | None:
        if question.name == "raises":
            raise ValueError("out of order")
        return "perhaps"


def test_a_third_party_judge_that_fails_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(JUDGES.table, "broken", f"{__name__}:Broken")
    config = run_config({"suite": "any", "agents": ["any"], "judge": "broken"})
    ask = RunJudge(judge_source(config, live=True), tmp_path).ask_for("a/t/0", "native")
    for name in ("raises", "answers"):
        assert ask(Question(name=name, asks="Is it?", texts={})).votes == (None,)


def test_the_stored_requests_of_a_judge_contain_no_secrets(tmp_path: Path) -> None:
    secret = "sk-secret-0123456789"
    question = Question(name="q", asks="Is it?", texts={"answer": f"I saw {secret}"})
    with ScriptedModels([ScriptedReply(text=f"{secret} no")]) as models:
        source = judge_source(config_for(models, 1), live=True)
        judge = RunJudge(source, tmp_path, secrets=[secret])
        judge.ask_for("a/t/0", "native")(question)
        assert secret in models.asked[0].body.decode()
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert stored
    assert not any(secret.encode() in content for content in stored)
    assert any(b"[key]" in content for content in stored)
