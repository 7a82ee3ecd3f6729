"""Generated ToolMisuseBench suites: published schema, proven oracles, reproducible bytes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.proof import Unproven
from fumehood.benchmarks.shared.quality import quality_report
from fumehood.benchmarks.toolmisuse.generate.allocation import slot_0_1, slot_0_2
from fumehood.benchmarks.toolmisuse.generate.checks import refuse_incoherent
from fumehood.benchmarks.toolmisuse.generate.suite import generate_suite, make_task
from fumehood.benchmarks.toolmisuse.records import OracleRecord, TaskRecord
from fumehood.core.errors import InputError
from tests.unit.benchmarks.scoring import play, score_episode

FROZEN = "df317e233c4ad803e754ca411ce11ccf30dca798a70776450a51df14a57444df"
"""SHA-256 of the default profile's manifest, seed 42. If it changes, increment GENERATOR."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("suites") / "small"
    generate_suite("small", 42, out, score_episode=score_episode)
    return out


def test_the_same_seed_gives_the_same_bytes_on_any_machine(tmp_path: Path) -> None:
    generate_suite("default", 42, tmp_path / "one")
    generate_suite("default", 42, tmp_path / "two", score_episode=score_episode)
    assert _bytes(tmp_path / "one") == _bytes(tmp_path / "two")
    assert sha256((tmp_path / "one" / "manifest.json").read_bytes()).hexdigest() == FROZEN


def test_another_seed_gives_other_tasks(tmp_path: Path) -> None:
    generate_suite("default", 1, tmp_path / "one")
    generate_suite("default", 2, tmp_path / "two")
    one, two = _bytes(tmp_path / "one"), _bytes(tmp_path / "two")
    assert one["dev/tasks.jsonl"] != two["dev/tasks.jsonl"]


@pytest.mark.parametrize("split", ["train", "dev", "test_public"])
def test_a_generated_suite_loads_and_its_oracles_are_correct(small: Path, split: str) -> None:
    suite = load_suite(f"toolmisuse:{small}:{split}")
    solvable = Counter(case.gold.solvable for case in suite.cases)
    assert set(solvable) == {True, False}
    for case in suite.cases:
        assert play(case, case.gold.oracle or ()).success is case.gold.solvable


@pytest.mark.slow
def test_profile_paper_has_the_fault_counts_that_give_the_printed_digits(tmp_path: Path) -> None:
    generate_suite(
        "paper", 42, tmp_path / "paper", splits={"train": 0, "dev": 0}, score_episode=score_episode
    )
    report = quality_report(tmp_path / "paper").splits["test_public"]
    faults = {"timeout": 335, "schema_drift": 165, "authz": 250, "rate_limit": 250}
    assert report.primary_faults == faults
    assert set(report.domains.values()) == {250}
    assert report.duplicate_ids == 0


def test_quality_is_better_than_the_paper_reports(small: Path) -> None:
    train = quality_report(small).splits["train"]
    assert (train.instruction_uniqueness, train.state_uniqueness) == (1, 1)
    assert train.instruction_uniqueness > 0.5622
    assert train.state_uniqueness > 0.7510
    assert train.duplicate_ids == 0
    assert set(train.domains.values()) == {50}
    assert set(train.primary_faults.values()) == {40}


def test_duplicate_ids_that_the_loader_refuses_are_counted(small: Path, tmp_path: Path) -> None:
    line = (small / "dev" / "tasks.jsonl").read_text().splitlines()[0]
    (tmp_path / "dev.jsonl").write_text(f"{line}\n{line}\n")
    assert quality_report(tmp_path).splits["dev"].duplicate_ids == 1
    assert quality_report(tmp_path).splits["dev"].instruction_uniqueness == 0.5


def test_a_changed_byte_is_detected(tmp_path: Path) -> None:
    generate_suite("default", 42, tmp_path / "suite")
    tasks = tmp_path / "suite" / "dev" / "tasks.jsonl"
    tasks.write_text(tasks.read_text().replace('"max_retries":2', '"max_retries":3', 1))
    with pytest.raises(
        InputError, match=r"dev/tasks.jsonl: is not the file that manifest.json names"
    ):
        load_suite(f"toolmisuse:{tmp_path / 'suite'}:dev")
    assert load_suite(f"toolmisuse:{tmp_path / 'suite'}:train").cases


def test_a_changed_manifest_is_detected(tmp_path: Path) -> None:
    generate_suite("default", 42, tmp_path / "suite")
    manifest = tmp_path / "suite" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"seed": 42', '"seed": 43'))
    with pytest.raises(InputError, match=r"manifest.json: is not the one that freeze.json names"):
        load_suite(f"toolmisuse:{tmp_path / 'suite'}:dev")


def test_split_sizes_are_configurable(tmp_path: Path) -> None:
    manifest = generate_suite(
        "large", 42, tmp_path / "suite", splits={"train": 0, "dev": 3, "test_public": 1}
    )
    assert [entry.records for entry in manifest.files if entry.path.startswith("oracles")] == [
        0,
        3,
        1,
    ]


@pytest.mark.parametrize(
    ("profile", "splits", "line"),
    [
        ("smal", {}, "there is no profile 'smal'; did you mean 'small'?"),
        ("small", {"test": 1}, "there is no split 'test'; there are: train, dev, test_public"),
        ("small", {"dev": -1}, "split dev cannot have -1 tasks"),
    ],
)
def test_an_invalid_option_gives_one_line_of_error(
    tmp_path: Path, profile: str, splits: dict[str, int], line: str
) -> None:
    with pytest.raises(InputError, match=re.escape(line)):
        generate_suite(profile, 42, tmp_path / "suite", splits=splits)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="exists already; name a new or empty folder"):
        generate_suite("default", 42, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failed_generation_leaves_no_files(tmp_path: Path) -> None:
    def interrupt(split: str, ready: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_suite("default", 42, tmp_path / "suite", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


# The published scheme of release 0.2 (docs/reference/toolmisuse.md, Generated suites).


def test_the_second_release_has_the_published_counts() -> None:
    dev, test = _slots("dev", 900), _slots("test_public", 1200)
    assert Counter(fault for fault, _ in dev) == {
        "clean": 153,
        "timeout": 153,
        "rate_limit": 153,
        "schema_drift": 153,
        "authz": 144,
        "adversarial_error": 144,
    }
    assert Counter(domain for _, domain in test) == {
        "crud": 324,
        "retrieval": 324,
        "files": 282,
        "scheduling": 270,
    }


def test_the_second_release_has_the_published_ids_entities_and_seeds() -> None:
    slot = slot_0_2("test_public", 217, 42)
    assert slot.task_id == "test_public_v2_crud_clean_easy_standard_00217"
    assert slot.entity.number == 20_000 + 17 * 217 + 97
    assert slot.seed == 62_000 + 217
    assert (
        slot.make.__name__
        == ["close_account", "update_account", "create_account"][slot.entity.number % 3]
    )
    assert slot_0_2("dev", 18, 42).families == ("rate_limit",)
    assert slot_0_2("dev", 53, 42).families == ("adversarial_error",)
    assert slot_0_2("dev", 54, 42).domain == "retrieval"


def test_the_second_release_needs_one_call_and_its_repetition() -> None:
    for index in range(216):
        record, oracle = make_task(slot_0_2("dev", index, 42), "0.2", 42)
        refuse_incoherent(record, oracle, score_episode)
        *calls, _ = oracle.oracle
        assert len({json.dumps(call) for call in calls}) == 1
        assert oracle.solvable


def test_every_task_of_the_first_release_has_a_fault_and_some_are_unsolvable() -> None:
    made = [make_task(slot_0_1("dev", index, 42), "0.1", 42) for index in range(80)]
    for record, oracle in made:
        refuse_incoherent(record, oracle, score_episode)
        assert record.fault_plan
    assert Counter(oracle.solvable for _, oracle in made) == {True: 32, False: 48}


# What must not be published.


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"instruction": " "}, "the instruction is empty"),
        ({"instruction": "Close something."}, "the instruction does not contain id"),
        ({"success_criteria": []}, "its oracle does not solve it: it has no criteria"),
        (
            {"success_criteria": [{"op": "exists", "path": "accounts"}]},
            "success_criteria[0] is malformed",
        ),
        (
            {"success_criteria": [{"op": "in", "path": "accounts", "value": "ad10000"}]},
            "a no-op agent solves it",
        ),
        (
            {"success_criteria": [{"op": "equals", "path": "accounts.ad10000.tier", "value": "x"}]},
            "its oracle does not solve it: check_0:equals",
        ),
        (
            {"initial_state": {"accounts": {"ad10000": {"id": "b"}}}},
            "account ad10000 has the id b",
        ),
        ({"initial_state": {"accounts": {}}}, "its oracle does not solve it"),
        (
            {"fault_plan": [{"fault_type": "timeout", "trigger": {"on_nth_call": 9}}]},
            "never fires for its oracle",
        ),
        ({"domain": "mixed"}, "mixed"),
        (
            {"budget": {"max_steps": 1, "max_tool_calls": 1, "max_retries": 0, "timeout_ms": 1}},
            "tolerated",
        ),
    ],
)
def test_an_incoherent_task_is_refused(change: dict[str, Any], reason: str) -> None:
    record, oracle = make_task(slot_0_1("dev", 0, 42), "0.1", 42)
    assert record.domain == "crud"
    broken = TaskRecord.model_validate({**record.model_dump(), **change})
    with pytest.raises(Unproven, match=re.escape(reason)):
        refuse_incoherent(broken, oracle, score_episode)


def test_a_solvable_task_cannot_be_labelled_unsolvable() -> None:
    record, oracle = make_task(slot_0_1("dev", 0, 42), "0.1", 42)
    claim = OracleRecord(task_id=oracle.task_id, solvable=False, oracle=oracle.oracle)
    with pytest.raises(Unproven, match="labelled unsolvable, but no fault makes every call fail"):
        refuse_incoherent(record, claim, score_episode)


def test_a_task_whose_criteria_failed_calls_satisfy_is_not_unsolvable() -> None:
    record, oracle = next(_unsolvable())
    lax = record.model_copy(
        update={
            "success_criteria": [{"op": "tool_call", "tool_name": oracle.oracle[0]["tool_name"]}]
        }
    )
    with pytest.raises(Unproven, match=r"success_criteria\[0\] is malformed"):
        refuse_incoherent(lax, oracle, score_episode)


def _unsolvable() -> Iterator[tuple[TaskRecord, OracleRecord]]:
    made = (make_task(slot_0_1("dev", index, 42), "0.1", 42) for index in range(80))
    return ((record, oracle) for record, oracle in made if not oracle.solvable)


def _slots(split: Any, size: int) -> list[tuple[str, str]]:
    slots = [slot_0_2(split, index, 42) for index in range(size)]
    return [(slot.families[0] if slot.families else "clean", slot.domain) for slot in slots]


def _bytes(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
