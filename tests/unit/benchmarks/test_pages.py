"""The pages on tasks agree with the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pydantic import TypeAdapter

from fumehood.benchmarks.native.criteria import Criterion
from fumehood.benchmarks.native.generate.suite import PROFILES as NATIVE_PROFILES
from fumehood.benchmarks.native.records import record_schema
from fumehood.benchmarks.native.tasks import load_cases
from fumehood.benchmarks.shared.proof import prove_not_free, prove_solvable
from fumehood.benchmarks.toolmisuse.generate.allocation import PROFILES
from fumehood.cli.schema import schema
from fumehood.scorers.native_criteria import operations
from tests.unit.benchmarks.scoring import play, score_episode

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/native_tasks.md").read_text("utf-8")


def test_the_oracle_solves_the_task_on_the_page(tmp_path: Path) -> None:
    task = _example(PAGE)
    (tmp_path / "task.jsonl").write_text(json.dumps(task))
    (case,) = load_cases(tmp_path / "task.jsonl")
    prove_solvable(case, score_episode)
    prove_not_free(case, score_episode)


def test_the_criteria_on_the_page_are_valid() -> None:
    _, criteria = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    read = TypeAdapter(list[Criterion]).validate_json(criteria)
    assert [criterion.op for criterion in read] == [
        "map_value_equals",
        "only_changed",
        "called_before",
    ]


def test_the_page_lists_every_operation_and_metric(tmp_path: Path) -> None:
    (tmp_path / "task.jsonl").write_text(json.dumps(_example(PAGE)))
    (case,) = load_cases(tmp_path / "task.jsonl")
    metrics = play(case, [{"submit": ""}]).metrics
    labels = {"fault_types", "primary_fault"}
    for word in {*operations(), *metrics} - labels:
        assert f"`{word}`" in PAGE


def test_the_pages_list_every_profile() -> None:
    page = (ROOT / "runner/fumehood/benchmarks/toolmisuse/README.md").read_text("utf-8")
    for profile in PROFILES.values():
        sizes = " | ".join(str(size) for size in profile.sizes.values())
        assert f"| `{profile.name}` | {profile.release} | {sizes} |" in page
    assert "|".join(NATIVE_PROFILES) in PAGE


def test_the_schema_can_be_printed() -> None:
    printed = CliRunner().invoke(schema, ["task"], catch_exceptions=False)
    assert json.loads(printed.output) == record_schema()


def _example(page: str) -> dict[str, Any]:
    match = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert match
    example: dict[str, Any] = json.loads(match[1])
    return example
