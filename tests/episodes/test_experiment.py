"""One file with models, scaffolds, suites, faults and budgets: killed, resumed and reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml
from pyarrow import parquet  # type: ignore[import-untyped]

from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InputError
from fumehood.core.task import Case
from fumehood.records.run_folder import one_writer
from fumehood.records.verify import verify
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.browser.conftest import Watched, browser, context, watched
from tests.parts.benchmark_slices import NEEDS
from tests.parts.commands import fumehood, fumehood_json
from tests.parts.listening import wait_until

__all__ = ["browser", "context", "watched"]

SUITES = {
    "sample": "sample",
    "bfcl": "bfcl:multi_turn_base",
    "agentdojo": "agentdojo",
}
TASKS = {
    "sample": ("crud_close_relocation", "crud_one_up_one_out", "retrieval_ice_load"),
    "bfcl": ("multi_turn_base_3", "multi_turn_base_4", "multi_turn_base_7"),
    "agentdojo": ("banking.user_task_1", "banking.user_task_2", "slack.user_task_0"),
}
DOMAINS = {"banking", "slack"}
MODELS, SCAFFOLDS = ("small", "large"), ("react", "react_text", "code")
FAULTS, BUDGETS = ("none", "storm"), ("own", "tight")
TRIALS = 2
USAGE = (50, 10)
TOKENS = 200_000
PATIENCE_S = 3600
STORM = {
    "format": "fumehood.faults/1",
    "faults": [{"family": "timeout", "trigger": {"prob": 0.2}}],
}


class ScriptedExperts:
    """Models that play the oracle of each task: ``large`` of most, ``small`` of every fourth one.

    With ``react_text``, ``large`` loses every second task, and with ``code`` every third one.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self._parts = [
            (number, instruction, moves)
            for number, case in enumerate(cases)
            for instruction, moves in turns_of(case)
        ]

    def __call__(self, asked: AskedOfModel) -> ScriptedReply:
        messages = asked.request["messages"]
        last = None
        for at, message in enumerate(messages):
            if message["role"] == "user":
                text = str(message.get("content"))
                own = [part for part in self._parts if part[1] in text]
                # The longest instruction: another one may be a part of it.
                last = (at, *max(own, key=lambda part: len(part[1]))) if own else last
        if last is None:  # The probe before a run.
            return ScriptedReply(text="ready", usage=USAGE)
        at, number, _, moves = last
        done = sum(message["role"] == "assistant" for message in messages[at:])
        scaffold = scaffold_of(str(messages[0].get("content")))
        every = 4 if asked.request["model"] == "small" else 1
        is_lost = number % every != 0 or (number + 1) % LOST_BY.get(scaffold, 10**6) == 0
        move = moves[done] if done < len(moves) and not is_lost else {"submit": "I do not know."}
        return written_for(scaffold, move)


def is_probe(asked: AskedOfModel) -> bool:
    return "You are being tested." in str(asked.request["messages"])


LOST_BY = {"react_text": 2, "code": 3}


def turns_of(case: Case) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Yield each message of the user, with the moves of the oracle that answer it."""
    (seat, *_), moves = case.task.seats, list(case.gold.oracle or ())
    for instruction in (seat.instruction, *(turn.instruction for turn in seat.further_turns)):
        end = next((at for at, move in enumerate(moves) if "submit" in move), len(moves))
        yield instruction, moves[: end + 1]
        moves = moves[end + 1 :]


def scaffold_of(prompt: str) -> str:
    if "Action:" in prompt:
        return "react_text"
    return "code" if "writing Python" in prompt else "react"


def written_for(scaffold: str, move: Mapping[str, Any]) -> ScriptedReply:
    """Return a move in the form that a scaffold reads."""
    if "tool_name" not in move:
        text = str(move.get("submit") or "Done.")
        return ScriptedReply(
            text=f"Answer: {text}" if scaffold == "react_text" else text, usage=USAGE
        )
    name, arguments = str(move["tool_name"]), dict(move["args"])
    if scaffold == "react_text":
        return ScriptedReply(text=f"Action: {name}\nInput: {json.dumps(arguments)}", usage=USAGE)
    if scaffold == "code":
        code = f"try:\n    call({name!r}, **{arguments!r})\nexcept ToolFailed as error:\n"
        return ScriptedReply(text=f"```python\n{code}    print(error)\n```", usage=USAGE)
    return ScriptedReply(tools=(ToolUse(name, arguments),), usage=USAGE)


def experiment_file(
    folder: Path, provider: ScriptedModels, name: str = "e", **changes: object
) -> Path:
    """Write an experiment of the scripted models, with its fault file and its prices."""
    storm, prices = folder / "storm.yaml", folder / "prices.yaml"
    storm.write_text(yaml.safe_dump(STORM))
    prices.write_text(yaml.safe_dump({"*": {"input_usd_per_mtok": 1, "output_usd_per_mtok": 2}}))
    models = {
        "providers": [{"name": "scripted", "address": provider.address}],
        "prices": str(prices),
        "budget": {"tokens": TOKENS},
    }
    settings = {
        "format": "fumehood.experiment/1",
        "models": list(MODELS),
        "run": {"engine": "process", "models": models, "concurrency": 4},
        **changes,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def rows_of(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("runs/*/episodes.jsonl"))


def kill_after(words: Sequence[str], folder: Path, rows: int) -> None:
    """Start an experiment, and kill it without warning once it has some more rows."""
    wanted = rows_of(folder) + rows
    with subprocess.Popen(
        [sys.executable, "-m", "fumehood", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as command:
        wait_until(lambda: rows_of(folder) >= wanted or command.poll() is not None, PATIENCE_S)
        assert command.poll() is None, "the experiment ended before it was killed"
        command.kill()
    # Its last processes hold the locks until they notice that it is gone.
    assert wait_until(lambda: is_free(folder), PATIENCE_S)


def is_free(folder: Path) -> bool:
    try:
        for path in (folder, *folder.glob("runs/*")):
            with one_writer(path):
                pass
    except InputError:
        return False
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An experiment that was killed twice and resumed."""
    packages = (*NEEDS["bfcl"], *NEEDS["agentdojo"])
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        reason = f"{', '.join(missing)} not installed: scripts/setup-benchmarks"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    parent = tmp_path_factory.mktemp("an experiment")
    cases = [
        case
        for label, suite in SUITES.items()
        for case in load_suite(suite).cases
        if case.task.task_id in TASKS[label]
    ]
    assert len(cases) == sum(map(len, TASKS.values()))
    with ScriptedModels(ScriptedExperts(cases)) as provider:
        file = experiment_file(
            parent,
            provider,
            suites=[
                {"suite": suite, "label": label, "tasks": {"names": list(TASKS[label])}}
                for label, suite in SUITES.items()
            ],
            agents=list(SCAFFOLDS),
            faults=["none", str(parent / "storm.yaml")],
            budgets=["own", {"label": "tight", "calls": 3}],
            trials=TRIALS,
        )
        size = fumehood_json("experiment", str(file), "--dry-run", "--json")
        planned = len(MODELS) * len(SCAFFOLDS) * len(cases) * 2 * 2 * TRIALS
        assert size["episodes"] == planned
        assert size["tokens"] == planned * TOKENS
        assert size["microusd"] == planned * TOKENS * 2
        out = parent / "out"
        words = ("experiment", str(file), "--out", str(out))
        kill_after(words, out, 10)
        plan = (out / "experiment.json").read_bytes()
        kill_after(words, out, 100)
        command = [sys.executable, "-m", "fumehood", "resume", str(out)]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
        assert (out / "experiment.json").read_bytes() == plan
        yield out


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(
        folder / "report" / "tables" / f"{name}.parquet"
    ).to_pylist()
    return rows


@pytest.mark.release
def test_every_cell_has_its_episodes_once(folder: Path) -> None:
    episodes = table(folder, "episodes")
    cells = Counter(
        (row["suite"], row["model"], row["scaffold"], row["fault_level"], row["budget_level"])
        for row in episodes
    )
    expected = product(SUITES, MODELS, SCAFFOLDS, FAULTS, BUDGETS)
    assert cells == {cell: len(TASKS[cell[0]]) * TRIALS for cell in expected}
    names = Counter((row["suite"], row["task"]) for row in episodes)
    each = len(MODELS) * len(SCAFFOLDS) * len(FAULTS) * len(BUDGETS) * TRIALS
    assert names == {(suite, task): each for suite, own in TASKS.items() for task in own}
    assert all(row["success"] is not None for row in episodes)
    for run in (folder / "runs").iterdir():
        assert verify(run).damage == ()


Episode = Mapping[str, Any]
COLUMN = {
    "model": "model",
    "agent": "scaffold",
    "faults": "fault_level",
    "budget": "budget_level",
}


def independent_effect(episodes: Sequence[Episode], suites: set[str], signs: Any) -> float:
    """Compute an effect as a mean over suites of paired differences, without the product's code.

    Args:
        episodes: rows of the Parquet file.
        suites: to average over.
        signs: pairs of chosen levels by column, and the sign of their value.
    """
    varied = set(signs[0][0])
    by_suite = []
    for suite in suites:
        corners = []
        for levels, _ in signs:
            corner = {}
            for row in episodes:
                if row["suite"] == suite and all(row[c] == v for c, v in levels.items()):
                    fixed = [row[column] for column in COLUMN.values() if column not in varied]
                    key = (row["task"], row["trial"], row["seed"], row["core_digest"], *fixed)
                    corner[key] = float(row["success"])
            corners.append(corner)
        keys = set.intersection(*map(set, corners))
        by_suite.append(
            fmean(
                sum(sign * corner[key] for corner, (_, sign) in zip(corners, signs, strict=True))
                for key in keys
            )
        )
    return fmean(by_suite)


@pytest.mark.release
def test_effects_are_those_of_an_independent_computation(folder: Path) -> None:
    episodes = table(folder, "episodes")
    effects = [row for row in table(folder, "effects") if row["metric"] == "task_success"]
    kinds = Counter((row["factor"], row["factor_2"]) for row in effects)
    # Model, faults and budget have one further level, scaffolds two; each for 3 suites and all.
    further = {"model": 1, "agent": 2, "faults": 1, "budget": 1}
    expected: dict[tuple[str, str | None], int] = {
        (factor, None): 4 * count for factor, count in further.items()
    }
    expected |= {(a, b): 4 * further[a] * further[b] for a, b in combinations(further, 2)}
    assert kinds == expected
    different = Counter[tuple[str, str, str | None]]()
    for row in effects:
        suites = set(SUITES) if row["suite"] == "all suites" else {row["suite"]}
        one = COLUMN[row["factor"]]
        if row["factor_2"] is None:
            signs = [({one: row["level"]}, 1), ({one: row["baseline"]}, -1)]
        else:
            two = COLUMN[row["factor_2"]]
            signs = [
                ({one: first, two: second}, (1 if first == row["level"] else -1) * weight)
                for first in (row["level"], row["baseline"])
                for second, weight in ((row["level_2"], 1), (row["baseline_2"], -1))
            ]
        assert row["difference"] == pytest.approx(independent_effect(episodes, suites, signs))
        different[row["suite"], row["factor"], row["factor_2"]] += row["difference"] != 0
    for suite, factor in product(SUITES, ("model", "agent")):
        assert different[suite, factor, None], (suite, factor)
    for factor in ("faults", "budget"):
        assert sum(different[suite, factor, None] for suite in SUITES), factor
    assert sum(count for (*_, second), count in different.items() if second) > 10
    solved = Counter((row["suite"], row["model"]) for row in episodes if row["success"])
    assert all(solved[suite, "large"] > solved[suite, "small"] > 0 for suite in SUITES)


@pytest.mark.release
def test_conditions_are_the_means_of_their_episodes(folder: Path) -> None:
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in table(folder, "episodes"):
        levels = (row["suite"], row["model"], row["agent"], row["fault_level"], row["budget_level"])
        for domain in ("all", row["domain"]):
            groups[(*levels, domain)].append(float(row["success"]))
    found = {
        tuple(row[name] for name in ("suite", "model", "agent", "faults", "budget", "domain")): row
        for row in table(folder, "conditions")
        if row["metric"] == "task_success"
    }
    assert {key: row["mean"] for key, row in found.items()} == pytest.approx(
        {key: fmean(values) for key, values in groups.items()}
    )
    assert {row["scaffold"] for row in found.values()} == set(SCAFFOLDS)
    assert {key[-1] for key in found if key[0] == "agentdojo"} == {"all", *DOMAINS}


@pytest.mark.release
def test_the_page_shows_models_by_suite_and_domain(watched: Watched, folder: Path) -> None:
    watched.open(folder / "report" / "report.html")
    section = watched.page.locator("#experiment")
    suites, domains = (
        section.locator("table", has=watched.page.locator("caption", has_text=title))
        for title in ("Success by model and suite", "Success by model and domain")
    )
    columns = suites.locator("thead th").all_inner_texts()
    assert columns == ["Model", "Agent", *SUITES, "Mean over suites", "Rank"]
    who = [f"{model}\t{scaffold}" for model, scaffold in product(MODELS, SCAFFOLDS)]
    rows = suites.locator("tbody tr").all_inner_texts()
    for row, start in zip(rows, (*who, "–\tno-op", "–\toracle"), strict=True):
        assert row.startswith(start)
    expected = [" · ".join(pair) for pair in product(MODELS, SCAFFOLDS)]
    assert domains.locator("thead th").all_inner_texts()[2:] == ["No-op", "Oracle", *expected]
    names = domains.locator("tbody tr").all_inner_texts()
    for domain in DOMAINS:
        assert any(row.startswith(f"agentdojo\t{domain}") for row in names)
    assert watched.complaints == []


@pytest.mark.slow
def test_a_planted_effect_is_found(tmp_path: Path) -> None:
    cases = [
        case
        for case in load_suite("sample").cases
        if case.gold.solvable is not False and not case.task.fault_plan
    ]
    assert len(cases) == 10
    with ScriptedModels(ScriptedExperts(cases)) as provider:
        file = experiment_file(
            tmp_path,
            provider,
            suites=["sample"],
            agents=["react"],
            tasks={"names": [case.task.task_id for case in cases]},
        )
        result = fumehood_json("experiment", str(file), "--out", str(tmp_path / "out"), "--json")
        (effect,) = result["effects"]
        shown = fumehood("report", str(tmp_path / "out"), "--out", str(tmp_path / "again"))
        assert "report.html" in shown
        page = (tmp_path / "again" / "report.md").read_text()
        assert "Tokens | Money |" in page
        probes = [str(one.request["model"]) for one in provider.asked if is_probe(one)]
        assert sorted(probes) == ["large", "small"]
        estimate = fumehood_json("experiment", str(file), "--estimate", "2", "--json")["estimate"]
    for cell in result["cells"]:
        spent = [cell[name] for name in ("model_calls", "model_tokens", "model_microusd")]
        assert cell["episodes"] == 10
        assert spent == [spent[0] * units for units in (1, sum(USAGE), USAGE[0] + 2 * USAGE[1])]
        assert spent[0] >= 10
    # `small` solves three of ten tasks, and `large` all of them.
    assert (effect["baseline"], effect["level"], effect["pairs"]) == ("small", "large", 10)
    assert effect["difference"] == pytest.approx(0.7)
    assert effect["low"] < 0.7 < effect["high"]
    assert effect["test"] == "McNemar"
    assert effect["p_holm"] == pytest.approx(0.0082, abs=1e-4)  # 7 of 7 flips.
    assert {name: used["played"] for name, used in estimate.items()} == {
        "sample--small": 2,
        "sample--large": 2,
    }
    assert all(used["tokens"] >= 10 * sum(USAGE) for used in estimate.values())
    assert all(used["seconds"] > 0 for used in estimate.values())
    assert json.loads((tmp_path / "out" / "experiment.json").read_text())["cells"]
