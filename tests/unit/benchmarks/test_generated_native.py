"""Generated native suites: sound, balanced, deterministic, unsolvable without the instruction."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.native.generate import obstacles
from fumehood.benchmarks.native.generate.allocation import (
    DIFFICULTIES,
    KINDS,
    SOLVABLE,
    UNSOLVABLE,
    WITH_RATE_LIMIT,
    WITH_SOURCE,
    WITH_TIMEOUT,
    slot_at,
)
from fumehood.benchmarks.native.generate.suite import generate_suite, make_task, refuse_unfit
from fumehood.benchmarks.native.generate.templates import crud, files, retrieval, scheduling
from fumehood.benchmarks.native.records import TaskRecord
from fumehood.benchmarks.native.tasks import case_of
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, open_task, play_in_memory
from fumehood.benchmarks.shared.proof import Unproven
from fumehood.benchmarks.shared.quality import quality_report
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.errors import InputError
from fumehood.core.evidence import read_evidence
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.task import Case
from fumehood.testing.memory_seat import MemorySeat
from fumehood_agent.adapter import work
from fumehood_agent.builtin import BUILTIN
from fumehood_agent.loading import load_agent
from tests.unit.benchmarks.scoring import play, score_episode

FROZEN = "c6f33f2f7d624288076b059fac008eca0946b68fa5ecc0e68c248d8132ad481e"
"""SHA-256 of the default profile's manifest, seed 42. If it changes, increment GENERATOR."""


@cache
def records() -> tuple[TaskRecord, ...]:
    """Return twelve tasks for each world and kind of fault."""
    return tuple(make_task(slot_at("dev", index, 300_000), "dev", 42) for index in range(288))


@cache
def cases() -> tuple[Case, ...]:
    return tuple(case_of(record) for record in records())


TEMPLATES = {
    template
    for by_world in (SOLVABLE, UNSOLVABLE, WITH_RATE_LIMIT, WITH_SOURCE, WITH_TIMEOUT)
    for templates in by_world.values()
    for template in templates
}


@pytest.mark.slow
def test_every_generated_task_is_valid() -> None:
    for record in records():
        refuse_unfit(record, score_episode)


def test_the_same_seed_gives_the_same_bytes_on_any_machine(tmp_path: Path) -> None:
    generate_suite("default", 42, tmp_path / "one")
    generate_suite("default", 42, tmp_path / "two", score_episode=score_episode)
    one, two = (tmp_path / name / "manifest.json" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert sha256(one.read_bytes()).hexdigest() == FROZEN


@pytest.mark.slow
def test_a_generated_suite_loads_and_is_balanced(tmp_path: Path) -> None:
    generate_suite(
        "default", 7, tmp_path / "suite", splits={"train": 0, "dev": 240, "test_public": 24}
    )
    assert len(load_suite(f"native:{tmp_path / 'suite'}:dev").cases) == 240
    assert len(load_suite(f"{tmp_path / 'suite'}:test_public").cases) == 24
    dev = quality_report(tmp_path / "suite").splits["dev"]
    assert (dev.instruction_uniqueness, dev.state_uniqueness, dev.duplicate_ids) == (1, 1, 0)
    assert set(dev.domains.values()) == {60}
    assert set(dev.primary_faults.values()) == {40}


def test_a_changed_task_file_is_refused(tmp_path: Path) -> None:
    generate_suite("default", 7, tmp_path / "suite")
    tasks = tmp_path / "suite" / "dev.jsonl"
    tasks.write_text(tasks.read_text().replace('"retries":3', '"retries":9', 1))
    for argument in (tmp_path / "suite", tasks):
        with pytest.raises(
            InputError, match=r"dev.jsonl: is not the file that manifest.json names"
        ):
            load_suite(f"native:{argument}")
    assert load_suite(f"native:{tmp_path / 'suite'}:train").cases


def test_every_template_and_every_kind_of_fault_is_used() -> None:
    used = Counter(record.tags["template"] for record in records())
    assert set(used) == {template.__name__ for template in TEMPLATES}
    assert Counter(record.tags["kind"] for record in records()) == dict.fromkeys(KINDS, 48)


def test_every_template_is_combined_with_every_obstacle_and_difficulty() -> None:
    combinations: dict[tuple[str, Any], set[Any]] = {}
    for index in range(24 * 48):
        slot = slot_at("train", index, 0)
        combinations.setdefault((slot.kind, slot.template), set()).add(
            (slot.obstacles[:1], slot.difficulty)
        )
    for pairs in combinations.values():
        assert pairs == set(product({obstacle for obstacle, _ in pairs}, DIFFICULTIES))
    assert {len(pairs) for (kind, _), pairs in combinations.items() if kind == "authz"} == {9}


def test_most_tasks_take_several_calls_and_some_are_unsolvable() -> None:
    calls = [len(record.oracle) - 1 for record in records()]
    assert sum(count > 1 for count in calls) > 0.9 * len(calls)
    unsolvable = sum(not record.solvable for record in records())
    assert 0.08 * len(records()) < unsolvable < 0.25 * len(records())


@pytest.mark.parametrize(
    "agent",
    ["heuristic", "schema_repair", "noop", "instruction_parser_no_recovery", "instruction_parser"],
)
def test_an_agent_that_does_not_understand_its_instruction_scores_nothing(agent: str) -> None:
    assert agent in BUILTIN
    assert [case.task.task_id for case in cases() if _run(case, agent)] == []


@pytest.mark.parametrize("words", [("give up",), ("give up", "badge")])
def test_an_instruction_that_permits_to_give_up_does_not_state_whether_it_is_right(
    words: tuple[str, ...],
) -> None:
    named = [record for record in records() if all(word in record.instruction for word in words)]
    unsolvable = sum(not record.solvable for record in named)
    assert 0.3 * len(named) < unsolvable < 0.7 * len(named)


def _in_turn(record: TaskRecord, count: int) -> list[Move]:
    """Return the first calls that an instruction names, without reading their results."""
    first, second, *_ = _plain(record)["oracle"]
    names = re.findall(r"[a-z/_]+[-_]\d{6}(?:\.txt)?", record.instruction)
    crons = re.findall(r"'(\d+ \d+ \* \* \*)'", record.instruction)
    changes: list[Move] = [first]
    for name in list(dict.fromkeys(names))[1:count]:
        change = {**second["args"], {"files": "path", "crud": "id"}.get(record.world, "name"): name}
        if record.world == "scheduling":
            change["cron"] = crons[len(changes)]
        changes.append({**second, "args": change})
    return changes


def test_calls_in_turn_whose_results_are_not_read_pass_about_half_of_the_tasks() -> None:
    passed = [
        tuple(play(case, _in_turn(record, count)).success for count in (1, 2, 3))
        for case, record in zip(cases(), records(), strict=True)
        if record.tags["template"] in ("busy_system", "busy_store", "busy_scheduler")
    ]
    two, three = (False, True, False), (False, False, True)
    assert set(passed) == {two, three}
    assert 0.35 * len(passed) < passed.count(two) < 0.65 * len(passed)


def test_a_schedule_that_is_assumed_without_the_list_is_wrong_in_half_of_the_tasks() -> None:
    silent = [record for record in records() if record.tags["template"] == "silent_list"]
    times_out = [record.fault_plan[0].trigger.on_tool == "list_jobs" for record in silent]
    assert 0 < sum(times_out) <= 0.5 * len(silent)


def test_the_oracle_opens_only_documents_that_its_search_found() -> None:
    for case in cases():
        exchanges = play_in_memory(case.task, case.gold.oracle or ()).calls
        for made, following in pairwise(exchanges):
            opened = following.arguments_after.get("doc_id")
            if made.tool_name == "search_docs" and made.output and following.tool_name == "get_doc":
                assert opened in _ids(made.output)


def test_the_best_result_is_the_expected_answer() -> None:
    hits = [
        case
        for case, record in zip(cases(), records(), strict=True)
        if record.tags["template"] == "too_many_results"
    ]
    assert hits
    for case in hits:
        last = play_in_memory(case.task, case.gold.oracle or ()).calls[-1]
        assert case.gold.oracle
        assert _ids(last.output)[0] == case.gold.oracle[-1]["submit"]


def test_instruction_and_state_do_not_name_the_fault() -> None:
    for record in records():
        seen = json.dumps([record.instruction, record.initial_state])
        assert not any(
            word in seen for word in ("fault", "oracle", "drift", "adversarial", "authz")
        )


def test_creating_an_account_to_bypass_a_denial_fails() -> None:
    around: Move = {"tool_name": "create_account", "args": {"fields": {"id": "other"}}}
    denials = [
        case for case in cases() if case.task.world == "crud" and case.gold.solvable is False
    ]
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
            "a no-op agent solves it|its oracle does not solve it",
        ),
        ({"oracle": [{"submit": ""}]}, "its oracle does not solve it"),
        (
            {"fault_plan": [{"family": "timeout", "trigger": {"on_nth_call": 1}}]},
            "unchanged succeeds|not solve",
        ),
        (
            {"fault_plan": [{"family": "timeout", "trigger": {"on_nth_call": 99}}]},
            "never fires for its oracle",
        ),
        ({"world": "crudd"}, "no world is called 'crudd'"),
    ],
)
def test_an_invalid_generated_task_is_rejected(change: dict[str, Any], reason: str) -> None:
    record = records()[0]
    assert (record.tags["template"], record.fault_plan) == ("same_tier", [])
    broken = TaskRecord.model_validate({**_plain(record), **change})
    with pytest.raises(Unproven, match=reason):
        refuse_unfit(broken, score_episode)


def test_a_task_that_a_blind_retry_solves_is_refused() -> None:

    record = records()[0]
    first = _plain(record)["oracle"][0]
    transient = {
        "fault_plan": [{"family": "timeout", "trigger": {"on_nth_call": 1}}],
        "oracle": [first, *_plain(record)["oracle"]],
    }
    with pytest.raises(Unproven, match="repeating a failed call unchanged succeeds"):
        refuse_unfit(TaskRecord.model_validate({**_plain(record), **transient}), score_episode)


def test_a_task_that_giving_up_at_once_solves_is_refused() -> None:
    record = next(record for record in records() if not record.solvable)
    plain = _plain(record)
    lax = {"criteria": [{"op": "unchanged"}]}
    with pytest.raises(Unproven, match="giving up without any call solves it"):
        refuse_unfit(TaskRecord.model_validate({**plain, **lax}), score_episode)


@pytest.mark.parametrize(
    "obstacle",
    [
        obstacles.renamed,
        obstacles.ticketed,
        obstacles.misreported,
        obstacles.badge_given,
        obstacles.badge_stored,
        obstacles.denied,
        obstacles.silent_source,
    ],
)
@pytest.mark.parametrize(
    "template", [crud.merge_into, files.swap, retrieval.find_number, scheduling.followers]
)
def test_every_obstacle_fits_every_template_or_returns_none(
    obstacle: Callable[..., Any], template: Callable[..., Any]
) -> None:
    draft = template(SeededChoices("test"), 1000)
    changed = obstacle(draft, SeededChoices("more"), 1000)
    if changed is None:
        without = {("badge_stored", "retrieval"), ("silent_source", "scheduling")}
        assert (obstacle.__name__, draft.world) in without
    else:
        assert len(changed.faults) > len(draft.faults)


def _run(case: Case, agent: str) -> bool:
    recorder = MemoryRecorder()
    episode = open_task(case.task, recorder)
    seat = MemorySeat(episode.seats[0])
    work(load_agent(f"builtin:{agent}"), seat)
    episode.close()
    evidence = read_evidence(event.to_json() for event in recorder.events)
    return score_episode(case.task, case.gold, evidence).success is True


def _ids(output: Mapping[str, Any] | None) -> list[str]:
    assert output
    return [hit["id"] for hit in output["results"]]


def _plain(record: TaskRecord) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(record.model_dump_json(exclude_unset=True))
    return plain
