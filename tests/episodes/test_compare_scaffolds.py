"""`compare --by scaffold`: success and costs of one model in several scaffolds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.compare import compare as command
from fumehood.core.errors import InputError
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.architecture.project import ROOT

TASKS = ("crud_close_relocation", "crud_gold_after_silence", "crud_same_tier_as")
CASES = [case for case in load_suite("sample").cases if case.task.task_id in TASKS]
USAGE = (50, 10)
COST_MICROUSD = 50 * 1 + 10 * 2


def answer_of_an_expert(request: AskedOfModel) -> ScriptedReply:
    """Answer with the oracle's moves, one call per turn, in the format of the scaffold."""
    messages = request.request["messages"]
    prompt = str(messages[0]["content"])
    if "Do not call any tool yet" in prompt:
        return ScriptedReply(text="1. Look. 2. Say.", usage=USAGE)
    case = next(
        case
        for case in CASES
        if case.task.seats[0].instruction in json.dumps(messages, ensure_ascii=False)
    )
    *calls, end = case.gold.oracle or ()
    turn = sum(message["role"] == "assistant" for message in messages)
    if "Action:" in prompt:
        return ScriptedReply(text="Answer: I do not know.", usage=USAGE)
    if turn >= len(calls):
        return ScriptedReply(text=str(end["submit"]), usage=USAGE)
    name, arguments = str(calls[turn]["tool_name"]), dict(calls[turn]["args"])
    if "writing Python" in prompt:
        code = (
            f"try:\n    call({name!r}, **{arguments!r})\n"
            "except ToolFailed as error:\n    print(error)"
        )
        return ScriptedReply(text=f"```python\n{code}\n```", usage=USAGE)
    return ScriptedReply(tools=(ToolUse(name, arguments),), usage=USAGE)


Compare = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scaffolds")


@pytest.fixture(scope="module")
def compare(folder: Path) -> Iterator[Compare]:
    with ScriptedModels(answer_of_an_expert) as provider:
        prices, config, tasks = (
            folder / "prices.yaml",
            folder / "models.yaml",
            folder / "tasks.jsonl",
        )
        prices.write_text(
            yaml.safe_dump({"m*": {"input_usd_per_mtok": 1, "output_usd_per_mtok": 2}})
        )
        entry = {"name": "scripted", "address": provider.address}
        settings = {"providers": [entry], "prices": str(prices), "probe": False}
        config.write_text(yaml.safe_dump({"engine": "process", "models": settings}))
        lines = (
            (ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl")
            .read_text()
            .splitlines()
        )
        tasks.write_text(
            "".join(f"{line}\n" for line in lines if json.loads(line)["task_id"] in TASKS)
        )

        def compare(*words: str) -> str:
            return (
                CliRunner()
                .invoke(command, [*words, "--by", "scaffold"], catch_exceptions=False)
                .stdout
            )

        yield compare


@pytest.fixture(scope="module")
def result(folder: Path, compare: Compare) -> Any:
    return json.loads(
        compare(
            *(
                str(folder / "tasks.jsonl"),
                "--config",
                str(folder / "models.yaml"),
                "--model",
                "m1",
            ),
            *("--out", str(folder / "run"), "--report", str(folder / "report"), "--json"),
        )
    )


def by_name(result: Any) -> dict[str, Any]:
    return {scaffold["scaffold"]: scaffold for scaffold in result["scaffolds"]}


@pytest.mark.slow
def test_every_scaffold_is_compared_with_react_on_the_same_tasks(result: Any) -> None:
    scaffolds = by_name(result)
    assert (result["model"], result["against"]) == ("m1", "react")
    assert list(scaffolds) == ["react", "code", "plan_act", "react_text", "single_shot"]
    assert {name: one["success_rate"] for name, one in scaffolds.items()} == {
        "react": 1.0,
        "code": 1.0,
        "plan_act": 1.0,
        "react_text": 0.0,
        "single_shot": pytest.approx(1 / 3),
    }
    assert scaffolds["react"]["versus"] is None
    shot = scaffolds["single_shot"]["versus"]
    assert (shot["pairs"], shot["won"], shot["lost"], shot["both"]) == (3, 0, 2, 1)
    assert shot["metrics"]["task_success"]["difference"] == pytest.approx(-2 / 3)
    low, high = shot["metrics"]["task_success"]["interval"]
    assert -1 <= low < -2 / 3 < high < 1
    assert {flip["task"] for flip in shot["flipped"]} == set(TASKS[1:])


def test_costs_are_compared_task_by_task(result: Any) -> None:
    scaffolds = by_name(result)
    requests = {name: one["costs"]["model_calls"] for name, one in scaffolds.items()}
    assert requests["plan_act"] == requests["react"] + 1
    assert requests["single_shot"] == 1
    for one in scaffolds.values():
        costs = one["costs"]
        assert costs["model_tokens"] == pytest.approx(sum(USAGE) * costs["model_calls"])
        assert costs["model_microusd"] == pytest.approx(COST_MICROUSD * costs["model_calls"])
    change = scaffolds["plan_act"]["cost_changes"]["model_calls"]
    assert (change["difference"], change["interval"]) == (1.0, [1.0, 1.0])
    assert scaffolds["react_text"]["tokens_per_success"] is None
    assert scaffolds["single_shot"]["tokens_per_success"] == pytest.approx(3 * sum(USAGE))


def test_finished_runs_are_not_run_again(folder: Path, compare: Compare, result: Any) -> None:
    shown = compare(
        str(folder / "run" / "runs" / "scaffolds"), "-s", "plan_act", "-s", "single_shot"
    )
    for words in (
        "Scaffolds with the model m1",
        "react → single_shot",
        "-66.7 pp",
        "Tokens per success",
        "$0.00014",
    ):
        assert words in shown
    assert "react_text" not in shown


def test_the_page_has_a_picture_of_the_differences(folder: Path, result: Any) -> None:
    assert result["page"] == str(folder / "report" / "report.html")
    picture = (folder / "report" / "figures" / "differences.svg").read_text()
    assert all(name in picture for name in ("code", "plan_act", "react_text", "single_shot"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("{run}", "{run}"), "the same run is named twice; name each run once"),
        (("{run}", "sample"), "name one suite, or only run folders; not a run folder: sample"),
        (
            ("{run}", "--against", "code", "-s", "code"),
            "nothing to compare: code and another scaffold",
        ),
        (
            ("sample", "--model", "m1", "--out", "{out}"),
            "holds an experiment with another plan (models, suite): choose another --out",
        ),
    ],
)
def test_an_impossible_comparison_is_rejected(
    folder: Path, compare: Compare, result: Any, words: tuple[str, ...], message: str
) -> None:
    out = folder / "run"
    with pytest.raises(InputError) as error:
        compare(*(word.format(out=out, run=out / "runs" / "scaffolds") for word in words))
    assert message in str(error.value)
