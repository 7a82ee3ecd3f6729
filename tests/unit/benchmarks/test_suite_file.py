"""YAML suites: declared worlds, strict reading, and all mistakes with their lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from click.testing import CliRunner

from fumehood.benchmarks.native.suite_file import STARTER, merged, suite_schema
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.reading import read_records
from fumehood.cli.suite import suite
from fumehood.core.errors import InputError
from tests.architecture.project import ROOT

TEXT = STARTER.read_text(encoding="utf-8")


def write(folder: Path, text: str) -> Path:
    path = folder / "suite.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_starter_fits_the_published_schema() -> None:
    (document,) = read_records(STARTER)
    jsonschema_rs.validate(suite_schema(), document.value)


def test_an_argument_may_have_the_name_of_an_operation(tmp_path: Path) -> None:
    text = TEXT.replace("packets", "count").replace("{$multiply: [$count, 3]}", "{$count: orders}")
    with pytest.raises(InputError, match="euros"):
        load_suite(str(write(tmp_path, text.replace("$count: orders", "$coun: orders"))))
    load_suite(str(write(tmp_path, text)))


def test_tasks_share_the_world_and_patch_its_state(tmp_path: Path) -> None:
    cases = load_suite(str(write(tmp_path, TEXT))).cases
    assert [case.task.task_id for case in cases] == ["water-the-fern", "order-basil", "empty-tank"]
    tanks = [case.task.initial_state["tank"] for case in cases]
    assert tanks == [{"litres": 20}, {"litres": 20}, {"litres": 2}]
    assert {case.task.world for case in cases} == {"declared"}
    assert [case.task.tags["domain"] for case in cases] == ["suite"] * 3
    assert [case.gold.solvable for case in cases] == [True, True, False]


def test_a_suite_can_use_a_built_in_world(tmp_path: Path) -> None:
    text = """
format: fumehood.tasks/1
world: files
tasks:
  - task_id: greet
    instruction: Write yes to /a.
    initial_state: {files: {}}
    budget: {steps: 2, calls: 2, retries: 0}
    criteria: [{op: map_value_equals, path: files, key: /a, value: yes}]
    oracle: [{tool_name: write_file, args: {path: /a, content: yes}}, {submit: 2026-01-31}]
"""
    (case,) = load_suite(str(write(tmp_path, text))).cases
    assert case.gold.criteria[0]["value"] == "yes", "words of YAML 1.1 are text"
    assert case.gold.oracle is not None
    assert case.gold.oracle[-1] == {"submit": "2026-01-31"}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("tasks:\n", "task:\n", "task: is not a known key; did you mean 'tasks'?"),
        ("- op: list", "- op: lst", "world.tools[0].rules[0].op: 'lst' is not known; did you"),
        ("path: plants\n", "path: plant\n", "world.tools[0].rules[0].path: the state has no"),
        ("value: $bed", "value: $bad", "world.tools[0].rules[0].where[0].value: the tool has"),
        ("enum: [", "pattern: [", "world.tools[0].parameters.properties.bed.pattern: is not a"),
        (
            "amount: $litres}",
            "amount: $litre}",
            "world.tools[1].rules[0].amount: the tool has no argument 'litre'; did you",
        ),
        (
            "required: [plant, packets]",
            "required: [plant, packet]",
            "world.tools[2].parameters.required: 'packet' is not in properties; did you mean",
        ),
        ("minimum: 1}", "minimum: x}", "world.tools[1].parameters.properties.litres.minimum"),
        ("code: not_found", "code: missing", "world.tools[1].requires[0].code: must be 'not_"),
        ("{$multiply: [", "{$times: [", "world.tools[2].rules[0].fields.euros.$times: is not"),
        ("{$multiply: [$packets, 3]}", "{$add: [1]}", "world.tools[2].rules[0].fields.euros."),
        ("- op: create", "- op: create\n          id: x", "world.tools[2].rules[0]: give either"),
        (
            "path: plants.$plant_id, output",
            "path: 'plants.{plant_id}', output",
            "world.tools[1].rules[2].path: write an argument as $name",
        ),
        ("plant: $plant\n", "$plant: 1\n", "world.tools[2].rules[0].fields.$plant: a key cannot"),
        ('value: "15"', "value: 15", 'tasks[1].criteria[1].value: must be text: write "15"'),
        (
            "[plants.p1.water, tank",
            "[plants..water, tank",
            "tasks[0].criteria[1].paths[0]: must be keys joined by dots, such as accounts.a1.tier",
        ),
        ("name: order_seeds", "name: list_plants", "world.tools[2].name: 'list_plants' is use"),
        ("    orders: {}", "    toolset: {}", "world.state.toolset: is reserved; use another"),
        ("{litres: 20}", "{litres: [20}", "is not YAML: expected ',' or ']', but got '}'"),
        ("tank: {litres: 20}", "tank: &a {b: *a}", "is not YAML: the alias *a is not supported"),
        ("tank: {litres: 20}", f"tank: {'[' * 120}{']' * 120}", "is nested more than 100 levels"),
        ("tank: {litres: 20}", f"tank: {'[' * 9000}", "is not YAML: is nested too deeply"),
        (
            "tank: {litres: 20}",
            "tank: !!binary aGk=",
            "is not YAML: contains what JSON does not ha",
        ),
        ("tank: {litres: 20}", "tank: {a: 1, a: 1}", "is not YAML: the key 'a' is repeated"),
        (
            "tank: {litres: 20}",
            "tank: {litres: 1e999}",
            "is not JSON: Infinity is not a JSON number",
        ),
        ("budget: {steps: 8", "budget: {step: 8", "budget.step: is not a known key; did you"),
        ("{op: unchanged}", "{op: unchange}", "tasks[2].criteria[0].op: 'unchange' is not"),
        ("solvable: false", "world: crud", "tasks[2].world: is stated once, for all tasks"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(
    tmp_path: Path, old: str, new: str, line: str
) -> None:
    assert old in TEXT
    path = write(tmp_path, TEXT.replace(old, new, 1))
    number = 1 + TEXT[: TEXT.index(old)].count("\n")
    with pytest.raises(InputError) as refusal:
        load_suite(str(path))
    assert re.match(rf"{re.escape(str(path))}(:{number})?: {re.escape(line)}", str(refusal.value))
    assert "\n" not in str(refusal.value)


def test_a_file_that_ends_too_early_is_reported_with_its_last_line(tmp_path: Path) -> None:
    text = f"{TEXT.rstrip()}\nend: [\n"
    path = write(tmp_path, text)
    message = f"{path}:{text.count(chr(10))}: is not YAML: the file ends too early: expected"
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        load_suite(str(path))


def test_the_tool_and_the_functions_on_the_page_are_valid(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "declared_worlds.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    lend, python = (yaml.safe_load(block) for block in blocks)
    shelf = {"type": "object", "properties": {"shelf": {"type": "string"}}, "required": ["shelf"]}
    shuffle = {"name": "shuffle_shelf", "description": "Reverse.", "parameters": shelf}
    declared = {
        "format": "fumehood.tasks/1",
        "world": {
            "state": {"books": {"b1": {"lent_to": None}}, "log": [], "shelves": {"A": [1, 2]}},
            "tools": [*lend, shuffle],
            **python["world"],
        },
        "budget": {"steps": 5, "calls": 5, "retries": 0},
        "tasks": [
            {
                "task_id": "both",
                "instruction": "Lend b1 to m1, and shuffle shelf A.",
                "criteria": [
                    {"op": "equals", "path": "log", "value": [{"lent": "b1"}]},
                    {"op": "equals", "path": "shelves.A", "value": [2, 1]},
                ],
                "oracle": [
                    {"tool_name": "lend_book", "args": {"book_id": "b1", "member_id": "m1"}},
                    {"tool_name": "shuffle_shelf", "args": {"shelf": "A"}},
                    {"submit": ""},
                ],
            }
        ],
    }
    shown = run("validate", str(write(tmp_path, json.dumps(declared))))
    assert shown.stdout == "suite: 1 task is valid, 1 solved by the oracle\n"


def run(*arguments: str) -> Any:
    return CliRunner().invoke(suite, [*arguments])


def test_init_writes_a_valid_suite_and_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    written = json.loads(run("init", str(path), "--json").stdout)
    assert written["file"] == str(path)
    assert written["next"][0] == f"fumehood suite validate {path}"
    assert run("validate", str(path)).stdout == "mine: 3 tasks are valid, 3 solved by the oracle\n"
    assert "exists already" in str(run("init", str(path)).exception)
    assert "must end in .yaml" in str(run("init", str(tmp_path / "mine.json")).exception)
    assert "cannot be written" in str(run("init", str(tmp_path / "no" / "a.yaml")).exception)


@pytest.mark.slow
def test_validate_lists_every_mistake(tmp_path: Path) -> None:
    text = TEXT.replace("op: unchanged", "op: unchange").replace("value: 4}", "val: 4}")
    shown = run("validate", str(write(tmp_path, text)), "--json")
    mistakes = json.loads(shown.stdout)["mistakes"]
    assert [mistake.partition("suite.yaml:")[2].partition(":")[0] for mistake in mistakes] == [
        "78",
        "78",
        "98",
    ]
    assert len(shown.stderr.splitlines()) == 2
    assert isinstance(shown.exception, InputError)
    (only,) = json.loads(run("validate", str(tmp_path / "absent.yaml"), "--json").stdout)[
        "mistakes"
    ]
    assert "there is neither a file" in only


def test_validate_lists_every_task_that_is_not_proven(tmp_path: Path) -> None:
    text = TEXT.replace("litres: 4}}", "litres: 40}}", 1).replace('value: "15"', 'value: "16"')
    path = write(tmp_path, text)
    shown = run("validate", str(path), "--json")
    lines = text.splitlines()
    fern, basil = (
        f"{path}:{next(at for at, line in enumerate(lines, 1) if name in line)}"
        for name in ("task_id: water-the-fern", "task_id: order-basil")
    )
    assert shown.stderr.startswith(f"fumehood: {fern}: water-"), "no empty line before it"
    assert json.loads(shown.stdout)["mistakes"] == [
        f"{fern}: water-the-fern: its oracle does not solve it: "
        "check_0:equals (plants.p1.water is 0), "
        "call 2 (water_plant) failed with insufficient: Only 20 are available. {}",
        f"{basil}: order-basil: its oracle does not solve it: check_1:answer_contains",
    ]


def test_validate_names_a_refused_call_whose_error_a_fault_replaced(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    loaded = yaml.safe_load(TEXT)
    task = loaded["tasks"][0]
    task["fault_plan"] = [{"family": "lost_reply", "trigger": {"on_tool": "water_plant"}}]
    task["oracle"] = [{**move} for move in task["oracle"]]
    refused = next(move for move in task["oracle"] if move.get("tool_name") == "water_plant")
    refused["args"] = {**refused["args"], "litres": 40}
    path.write_text(yaml.safe_dump(loaded), encoding="utf-8")
    (mistake,) = json.loads(run("validate", str(path), "--json").stdout)["mistakes"]
    assert "without its faults, call 2 (water_plant) failed with insufficient" in mistake


@pytest.mark.slow
def test_an_oracle_with_an_invalid_call_is_a_mistake(tmp_path: Path) -> None:
    text = TEXT.replace("list_plants, args: {}", "list_plants, args: {bad: 1}")
    shown = run("validate", str(write(tmp_path, text)))
    assert (
        ": water-the-fern: its oracle makes an invalid call: call 1 (list_plants) failed with "
        "unknown" in str(shown.exception)
    )


def test_a_declared_world_in_json_lines_is_checked_too(tmp_path: Path) -> None:
    record = yaml.safe_load(TEXT)
    task = {
        **record["tasks"][0],
        "format": "fumehood.task/1",
        "world": "declared",
        "initial_state": {**record["world"]["state"], "toolset": {"tools": []}},
        "budget": record["budget"],
        "solvable": True,
    }
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(task), encoding="utf-8")
    with pytest.raises(InputError, match=r"jsonl:1: initial_state.toolset: tools: list should"):
        load_suite(str(path))


def test_a_patch_is_merged_as_in_the_standard() -> None:
    # Source: RFC 7396, section 3.
    target = {"title": "Goodbye!", "author": {"givenName": "John", "familyName": "Doe"}, "a": 1}
    patch = {"title": "Hello!", "author": {"familyName": None}, "tags": ["x"], "a": {"b": None}}
    assert merged(target, patch) == {
        "title": "Hello!",
        "author": {"givenName": "John"},
        "tags": ["x"],
        "a": {},
    }
