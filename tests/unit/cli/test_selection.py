"""Every command that names a suite can use some of its tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.selection import only_selected, with_selection
from fumehood.core.errors import InputError
from tests.parts.commands import fumehood_json
from tests.unit.cli.test_show import invoke
from tests.unit.report.runs import played

SAMPLE = load_suite("sample")


def ids(**options: Any) -> list[str]:
    return [case.task.task_id for case in only_selected(SAMPLE, options).cases]


def test_patterns_tags_and_a_limit_select_tasks_in_the_order_of_the_suite() -> None:
    everything = ids()
    assert ids(limit=3) == everything[:3]
    assert (
        ids(task=("files_*", "crud_*"), limit=2)
        == [task for task in everything if task.startswith(("files_", "crud_"))][:2]
    )
    easy = [case for case in SAMPLE.cases if case.task.tags["difficulty"] == "easy"]
    assert ids(tag=("difficulty=eas?",)) == [case.task.task_id for case in easy]


@given(st.integers(1, len(SAMPLE.cases)), st.integers())
def test_a_sample_is_the_same_for_the_same_seed(size: int, seed: int) -> None:
    drawn = ids(sample=size, sample_seed=seed)
    assert len(set(drawn)) == size
    assert drawn == ids(sample=size, sample_seed=seed)


def test_an_option_replaces_the_same_part_of_the_file() -> None:
    of_file = {"names": ["crud_*"], "sample": 4, "sample_seed": 9}
    assert with_selection({"suite": "sample", "tasks": of_file, "limit": 2})["tasks"] == {
        **{"names": ["crud_*"], "sample": None, "sample_seed": 9, "limit": 2},
    }
    assert with_selection({"tasks": of_file, "task": ("files_*",)})["tasks"]["names"] == (
        "files_*",
    )
    assert with_selection({"suite": "sample", "limit": None, "task": ()}) == {"suite": "sample"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 1, "sample": 1}, "--limit and --sample exclude each other"),
        ({"sample_seed": 1}, "--sample-seed needs --sample"),
        ({"tag": ("crud",)}, "--tag crud: use KEY=GLOB"),
        ({"limit": 0}, "tasks.limit"),
        ({"sample": 41}, "has only 40 such tasks"),
        ({"task": ("nothing",)}, "sample has no task 'nothing'; its tasks are, for example: crud_"),
        ({"tag": ("difficulty=easi",)}, "did you mean 'easy'?"),
    ],
)
def test_an_option_that_cannot_take_effect_is_rejected(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as error:
        ids(**options)
    assert message in str(error.value)


@pytest.mark.slow
def test_a_run_of_selected_tasks_has_their_episodes(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = ("run", "sample", "-a", "noop", "--engine", "inline", "--out", str(out), "--json")
    selection = ("--task", "crud_*", "--tag", "difficulty=*", "--sample", "2")
    assert fumehood_json(*run, *selection)["episodes"] == 2
    rows: list[dict[str, Any]] = fumehood_json("show", str(out), "--json")
    assert all(row["task"].startswith("crud_") for row in rows)


def test_suites_are_described_and_validated_in_part() -> None:
    assert fumehood_json("suite", "info", "sample", "--limit", "3", "--json")["tasks"] == 3
    assert (
        fumehood_json("suite", "validate", "sample", "--task", "files_*", "--json")["tasks"] == 10
    )


@pytest.mark.parametrize("option", [("--limit", "1"), ("--trials", "2"), ("--out", "there")])
def test_finished_runs_are_not_compared_with_settings_of_new_ones(
    option: tuple[str, str], tmp_path: Path
) -> None:
    run = played(tmp_path / "run", "noop", "policy_aware", tasks=1).path
    with pytest.raises(InputError, match=f"{option[0]} has no effect: finished runs are compared"):
        invoke("compare", run, *option)
