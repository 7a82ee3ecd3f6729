"""Generated native suites: to be read, to be understood, and not to be had otherwise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.in_memory import Move, Notebook, open_task, play_in_memory
from fumehood.benchmarks.native.generate import obstacles
from fumehood.benchmarks.native.generate.allocation import DIFFICULTIES, KINDS, slot_at
from fumehood.benchmarks.native.generate.checks import refuse_unfit
from fumehood.benchmarks.native.generate.suite import generate_suite
from fumehood.benchmarks.native.generate.task import make_task
from fumehood.benchmarks.native.generate.templates import crud, files, retrieval, scheduling
from fumehood.benchmarks.native.generate.templates.table import (
    BUSY,
    READ_FROM,
    SILENT,
    TO_BE_DONE,
    TO_BE_LEFT,
)
from fumehood.benchmarks.native.record import TaskRecord
from fumehood.benchmarks.native.task import case_of
from fumehood.benchmarks.proof import Unproven
from fumehood.benchmarks.quality import quality_report
from fumehood.benchmarks.seeded_choices import Draws
from fumehood.benchmarks.table import load_suite
from fumehood.core.errors import InputError
from fumehood.core.evidence import read_evidence
from fumehood.core.task import Case
from fumehood.harness_modes.registry import PROFILES
from fumehood.testing.memory_seat import MemorySeat
from fumehood_agent.adapter import work
from fumehood_agent.builtin import BUILTIN
from fumehood_agent.loading import load_agent
from tests.unit.benchmarks.judging import judge, play

FROZEN = "0f8639261c449c6d0cf5dd78e77b5150f3f88eb887110af59e65fd93d15eb704"
"""SHA-256 of the default profile's manifest, seed 42. Another text here means another generator number."""

RECORDS = [make_task(slot_at("dev", index, 300_000), "dev", 42) for index in range(288)]
"""Twelve rounds through every world with every kind of fault."""

CASES = [case_of(record) for record in RECORDS]

STORIES = {
    story
    for table in (TO_BE_DONE, TO_BE_LEFT, BUSY, READ_FROM, SILENT)
    for stories in table.values()
    for story in stories
}


def test_every_task_is_fit() -> None:
    for record in RECORDS:
        refuse_unfit(record, judge)


def test_the_same_seed_gives_the_same_bytes_on_any_machine(tmp_path: Path) -> None:
    generate_suite("default", 42, tmp_path / "one")
    generate_suite("default", 42, tmp_path / "two", judge=judge)
    one, two = (tmp_path / name / "manifest.json" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert sha256(one.read_bytes()).hexdigest() == FROZEN


def test_what_was_generated_loads_and_balances(tmp_path: Path) -> None:
    generate_suite(
        "default", 7, tmp_path / "suite", splits={"train": 0, "dev": 240, "test_public": 24}
    )
    assert len(load_suite(f"native:{tmp_path / 'suite'}:dev").cases) == 240
    assert len(load_suite(f"{tmp_path / 'suite'}:test_public").cases) == 24
    dev = quality_report(tmp_path / "suite").splits["dev"]
    assert (dev.instruction_uniqueness, dev.state_uniqueness, dev.duplicate_ids) == (1, 1, 0)
    assert set(dev.domains.values()) == {60}
    assert set(dev.primary_faults.values()) == {40}


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    generate_suite("default", 7, tmp_path / "suite")
    tasks = tmp_path / "suite" / "dev.jsonl"
    tasks.write_text(tasks.read_text().replace('"retries":3', '"retries":9', 1))
    for argument in (tmp_path / "suite", tasks):
        with pytest.raises(
            InputError, match=r"dev.jsonl: is not the file that manifest.json names"
        ):
            load_suite(f"native:{argument}")
    assert load_suite(f"native:{tmp_path / 'suite'}:train").cases


def test_every_story_and_every_kind_of_fault_is_told() -> None:
    told = Counter(record.tags["story"] for record in RECORDS)
    assert set(told) == {story.__name__ for story in STORIES}
    assert Counter(record.tags["kind"] for record in RECORDS) == dict.fromkeys(KINDS, 48)


def test_every_story_meets_every_trouble_of_its_kind_and_that_every_difficulty() -> None:
    met: dict[tuple[str, Any], set[Any]] = {}
    for index in range(24 * 48):
        slot = slot_at("train", index, 0)
        met.setdefault((slot.kind, slot.story), set()).add((slot.ways[:1], slot.difficulty))
    for pairs in met.values():
        assert pairs == set(product({way for way, _ in pairs}, DIFFICULTIES))
    assert {len(pairs) for (kind, _), pairs in met.items() if kind == "authz"} == {9}


def test_most_tasks_take_several_calls_and_some_have_to_be_left() -> None:
    calls = [len(record.oracle) - 1 for record in RECORDS]
    assert sum(count > 1 for count in calls) > 0.9 * len(calls)
    left = sum(not record.solvable for record in RECORDS)
    assert 0.08 * len(RECORDS) < left < 0.25 * len(RECORDS)


@pytest.mark.parametrize(
    "agent",
    ["heuristic", "schema_repair", "noop", "instruction_parser_no_recovery", "instruction_parser"],
)
def test_an_agent_that_does_not_understand_its_instruction_scores_nothing(agent: str) -> None:
    assert agent in BUILTIN
    assert [case.task.task_id for case in CASES if _run(case, agent)] == []


def test_a_search_of_the_oracle_finds_what_it_opens_next() -> None:
    for case in CASES:
        exchanges = play_in_memory(case.task, case.gold.oracle or ()).exchanges
        for made, following in pairwise(exchanges):
            opened = following.delivered.get("doc_id")
            if made.tool_name == "search_docs" and made.output and following.tool_name == "get_doc":
                assert opened in _ids(made.output)


def test_the_best_hit_is_the_one_that_is_asked_for() -> None:
    hits = [
        case
        for case, record in zip(CASES, RECORDS, strict=True)
        if record.tags["story"] == "too_many_hits"
    ]
    assert hits
    for case in hits:
        last = play_in_memory(case.task, case.gold.oracle or ()).exchanges[-1]
        assert case.gold.oracle
        assert _ids(last.output)[0] == case.gold.oracle[-1]["submit"]


def test_nothing_an_agent_sees_names_the_trouble() -> None:
    for record in RECORDS:
        seen = json.dumps([record.instruction, record.initial_state])
        assert not any(
            word in seen for word in ("fault", "oracle", "drift", "adversarial", "authz")
        )


def test_whoever_opens_a_new_account_to_get_around_a_denial_fails() -> None:
    around: Move = {"tool_name": "create_account", "args": {"fields": {"id": "somebody"}}}
    denials = [case for case in CASES if case.task.world == "crud" and case.gold.solvable is False]
    tried = 0
    for case in denials:
        *calls, end = case.gold.oracle or ()
        if case.task.fault_plan and calls[-1]["tool_name"] != "create_account":
            tried += 1
            assert play(case, [*calls, around, end]).success is False
    assert tried


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"criteria": [{"op": "unchanged"}]},
            "doing nothing solves it|its oracle does not solve it",
        ),
        ({"oracle": [{"submit": ""}]}, "its oracle does not solve it"),
        (
            {"fault_plan": [{"fault_type": "timeout", "trigger": {"on_nth_call": 1}}]},
            "again helps|not solve",
        ),
        (
            {"fault_plan": [{"fault_type": "timeout", "trigger": {"on_nth_call": 99}}]},
            "never meets its oracle",
        ),
        ({"world": "crudd"}, "no world is called 'crudd'"),
    ],
)
def test_an_unfit_task_is_refused(change: dict[str, Any], reason: str) -> None:
    record = RECORDS[0]
    assert (record.tags["story"], record.fault_plan) == ("same_tier", [])
    broken = TaskRecord.model_validate({**_plain(record), **change})
    with pytest.raises(Unproven, match=reason):
        refuse_unfit(broken, judge)


def test_a_blind_retry_is_no_cure() -> None:
    """The same fault, the oracle of a stubborn agent: it works, and is therefore not fit."""
    record = RECORDS[0]
    first = _plain(record)["oracle"][0]
    transient = {
        "fault_plan": [{"fault_type": "timeout", "trigger": {"on_nth_call": 1}}],
        "oracle": [first, *_plain(record)["oracle"]],
    }
    with pytest.raises(Unproven, match="sending a refused call again helps"):
        refuse_unfit(TaskRecord.model_validate({**_plain(record), **transient}), judge)


def test_giving_up_must_not_be_free_either() -> None:
    record = next(each for each in RECORDS if not each.solvable)
    plain = _plain(record)
    lax = {"criteria": [{"op": "unchanged"}]}
    with pytest.raises(Unproven, match="giving up without a look solves it"):
        refuse_unfit(TaskRecord.model_validate({**plain, **lax}), judge)


@pytest.mark.parametrize(
    "trouble",
    [
        obstacles.renamed,
        obstacles.ticketed,
        obstacles.misreported,
        obstacles.badge_told,
        obstacles.badge_kept,
        obstacles.denied,
        obstacles.silent_source,
    ],
)
@pytest.mark.parametrize(
    "story", [crud.fold_into, files.swap, retrieval.say_the_number, scheduling.followers]
)
def test_every_trouble_fits_every_story_or_says_that_it_does_not(
    trouble: Callable[..., Any], story: Callable[..., Any]
) -> None:
    scene = story(Draws("test"), 1000)
    troubled = trouble(scene, Draws("more"), 1000)
    if troubled is None:
        without = {("badge_kept", "retrieval"), ("silent_source", "scheduling")}
        assert (trouble.__name__, scene.world) in without
    else:
        assert len(troubled.faults) > len(scene.faults)


def _run(case: Case, agent: str) -> bool:
    notebook = Notebook()
    episode = open_task(case.task, notebook)
    seat = MemorySeat(episode.seats[0], PROFILES.load(case.task.profile)())
    work(load_agent(f"builtin:{agent}"), seat)
    episode.close()
    evidence = read_evidence(event.to_json() for event in notebook.events)
    return judge(case.task, case.gold, evidence).success is True


def _ids(output: Mapping[str, Any] | None) -> list[str]:
    assert output
    return [hit["id"] for hit in output["results"]]


def _plain(record: TaskRecord) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(record.model_dump_json(exclude_unset=True))
    return plain
