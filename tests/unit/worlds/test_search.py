"""The library as a world: budgets, faults, and what happens when it is not what the task names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.clock import StoppedClock
from fumehood.core.episode import Episode
from fumehood.core.episode_spec import DataMode, DataSource, EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.core.json_values import json_bytes
from fumehood.core.ledger import BudgetKind
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import OutOfBudget
from fumehood.core.tools import Failure, Value
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood_snapshots.snapshot import open_snapshot
from tests.parts.specs import episode_spec
from tests.unit.snapshots.building import build, flip_byte

LONG = [
    {"id": f"owl{number}", "title": "Owls", "text": f"Owls hunt mice at night, é. {number} " * 400}
    for number in range(9)
]


@pytest.fixture
def owls(tmp_path: Path) -> Path:
    build(tmp_path / "owls", LONG)
    return tmp_path / "owls"


def spec_of(
    folder: Path, *faults: dict[str, Any], digest: str | None = None, **budget: Any
) -> EpisodeSpec:
    named = {"name": "owls", "digest": digest or f"sha256:{open_snapshot(folder).digest}"}
    around = DataSource(DataMode.OFFLINE, {"snapshot": str(folder)})
    spec = episode_spec(*faults, world="search", state={"snapshot": named}, **budget)
    return replace(spec, data_source=around)


def opened(spec: EpisodeSpec, harness_mode: str = "native") -> tuple[Episode, MemoryRecorder]:
    recorder = MemoryRecorder()
    return HARNESS_MODES.load(harness_mode)().open_episode(spec, recorder, StoppedClock()), recorder


def test_an_answer_is_cut_to_the_remaining_budget_and_then_the_work_ends(owls: Path) -> None:
    episode, _ = opened(spec_of(owls, answer_bytes=5000))
    seat, taken = episode.seats[0], 0
    for _ in range(3):
        reply = seat.call("open_page", {"page": "owl1", "offset": taken // 4})
        if isinstance(reply.result, Value):
            taken += json_bytes(reply.result.output)
    assert 4000 < taken <= 5000
    while seat.end is None:
        reply = seat.call("search", {"query": "mice"})
        assert isinstance(reply.result, Failure)
        if reply.result.code == "budget_too_small":
            # The rest is too small for any result. The agent sees that and can continue or stop.
            assert 0 < reply.remaining[BudgetKind.ANSWER_BYTES] < 100
            break
    assert seat.end in (None, OutOfBudget(BudgetKind.ANSWER_BYTES))


def test_calls_have_a_separate_budget(owls: Path) -> None:
    seat = opened(spec_of(owls, calls=1))[0].seats[0]
    assert isinstance(seat.call("search", {"query": "mice"}).result, Value)
    assert seat.call("search", {"query": "mice"}).ended
    assert seat.end == OutOfBudget(BudgetKind.CALLS)


def test_results_carry_the_ids_by_which_pages_are_opened_and_cited(owls: Path) -> None:
    seat = opened(spec_of(owls))[0].seats[0]
    found = seat.call("search", {"query": "mice", "k": 2}).result
    assert isinstance(found, Value)
    for result in found.output["results"]:  # type: ignore[union-attr]
        page = seat.call("open_page", {"page": result["id"]}).result  # type: ignore[index, call-overload]
        assert isinstance(page, Value)
        assert page.output["id"] == result["id"]  # type: ignore[index, call-overload]


def test_calls_do_not_change_the_state_and_the_trace_states_the_data_mode(
    owls: Path,
) -> None:
    episode, recorder = opened(spec_of(owls))
    before = dict(episode.world.state)
    episode.seats[0].call("search", {"query": "mice"})
    episode.close()
    events = list(recorder.written())
    assert events[0]["data_mode"] == "offline"
    assert str(owls) not in str(events)
    assert events[-1]["final_state"] == before


def test_faults_fire_on_searches_as_in_other_worlds(owls: Path) -> None:
    fault = {
        "family": "rate_limit",
        "trigger": {"on_tool": "search", "on_nth_call": 1},
        "payload": {"retry_after_ms": 5},
    }
    for harness_mode in ("native", "toolmisuse"):
        seat = opened(replace(spec_of(owls, fault), harness_mode=harness_mode), harness_mode)[
            0
        ].seats[0]
        assert isinstance(
            seat.call("search", {"query": "mice", "k": 1, "filter": {}}).result, Failure
        )
        assert isinstance(
            seat.call("search", {"query": "mice", "k": 1, "filter": {}}).result, Value
        )


def test_another_snapshot_than_the_task_names_is_refused_when_the_episode_is_opened(
    owls: Path,
) -> None:
    with pytest.raises(
        SpecError, match=r"^initial_state\.snapshot\.digest: is sha256:0+, but .+ is sha256:"
    ):
        opened(spec_of(owls, digest="sha256:" + "0" * 64))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"snapshot": "/nowhere/at/all"}, "/nowhere/at/all"),
        ({}, "needs snapshot"),
        ({"snapshot": "/", "colour": "red"}, "colour"),
    ],
)
def test_an_invalid_data_source_is_reported_in_one_line(
    settings: dict[str, Any], says: str
) -> None:
    spec = episode_spec(world="search", state={})
    with pytest.raises(SpecError, match=says) as refused:
        opened(replace(spec, data_source=DataSource(DataMode.OFFLINE, settings)))
    assert "\n" not in str(refused.value)


def test_a_page_that_does_not_exist_is_a_refusal_and_never_the_network(owls: Path) -> None:
    seat = opened(spec_of(owls))[0].seats[0]
    result = seat.call("open_page", {"page": "http://127.0.0.1:9/"}).result
    assert isinstance(result, Failure)
    assert result.code == "not_found"


def test_a_damaged_document_ends_the_episode_as_infra(tmp_path: Path) -> None:
    build(tmp_path / "owls", LONG[:1])
    spec = spec_of(tmp_path / "owls")
    flip_byte(tmp_path / "owls" / "documents" / "records.jsonl", 0)
    with pytest.raises(SpecError, match=r"^data_source: "):
        opened(spec)[0].seats[0].call("open_page", {"page": "owl0"})
