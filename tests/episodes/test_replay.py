"""A recorded episode replays without the agent, byte by byte; differences are reported."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.clock import StoppedClock
from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.json_values import canonical_json
from fumehood.core.ledger import Budget, BudgetKind, Reservation
from fumehood.core.outcome import Finished
from fumehood.core.trace import Chain, ModelCalled
from fumehood.orchestrator.replay import Replayed, replay_episode
from fumehood.orchestrator.service_pool import ServiceOptions, ServicePool
from fumehood.service.open_episode import OpenEpisode
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.service.trace_stream import TraceStream
from fumehood.wire.ports import Records
from fumehood_agent.session import Session
from tests.conformance.worlds.declared_examples import tool
from tests.parts.commands import fumehood, fumehood_json, run_fumehood
from tests.parts.listening import listening
from tests.parts.specs import episode_spec

NATIVE_AGENTS = ("-a", "policy_aware")
TOOLMISUSE_AGENTS = ("-a", "schema_repair", "-a", "instruction_parser")


@pytest.fixture(scope="module")
def native_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("native") / "run"
    fumehood("run", "sample", *NATIVE_AGENTS, "--engine", "inline", "--out", str(out))
    return out


@pytest.fixture(scope="module")
def toolmisuse_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toolmisuse")
    sizes = ("--train", "0", "--dev", "0", "--test", "16")
    fumehood("suite", "generate", "toolmisuse", *sizes, "--out", str(folder / "tasks"))
    suite = f"toolmisuse:{folder / 'tasks'}:test_public"
    out = folder / "run"
    fumehood(
        "run", suite, *TOOLMISUSE_AGENTS, "--seed", "3", "--engine", "inline", "--out", str(out)
    )
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("run", "episodes"), [("native_run", 40), ("toolmisuse_run", 32)])
def test_every_episode_of_a_run_replays_identically(
    run: str, episodes: int, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(run)
    report = fumehood_json("replay", str(folder), "--service-workers", "2", "--json")
    assert report["differences"] == []
    assert (report["replayed"], report["identical"]) == (episodes, episodes)


def _copy(run: Path, to: Path) -> Path:
    subprocess.run(["cp", "-r", str(run), str(to)], check=True)
    return to


def _episode_with_calls(run: Path, calls: int) -> dict[str, Any]:
    rows = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    return next(row for row in rows if row["metrics"]["tool_calls"] >= calls)


def _rewrite(trace: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change events of a trace and make its chain anew."""
    chain = Chain()
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    for line in lines:
        change(line["event"])
        line["hash"] = chain.link(canonical_json(line["event"]))
    trace.write_text("".join(f"{canonical_json(line)}\n" for line in lines))


def _alter_result(event: dict[str, Any]) -> None:
    if event["kind"] == "call" and event["number"] == 2:
        event.pop("failure", None)
        event["output"] = {"never": "said"}


def _alter_state(event: dict[str, Any]) -> None:
    if event["kind"] == "call" and event["number"] == 2:
        event["state"] = "0" * 64


@pytest.mark.slow
@pytest.mark.parametrize(("change", "word"), [(_alter_result, "output"), (_alter_state, "state")])
def test_the_first_differing_call_is_reported(
    change: Callable[[dict[str, Any]], None], word: str, native_run: Path, tmp_path: Path
) -> None:
    run = _copy(native_run, tmp_path / "run")
    row = _episode_with_calls(run, 2)
    _rewrite(run / row["trace"], change)
    report = fumehood_json(
        "replay", str(run), "--unverified", "--episode", row["episode"], "--json", status=1
    )
    (difference,) = report["differences"]
    assert (difference["episode"], difference["call"]) == (row["episode"], 2)
    assert difference["tool"]
    assert difference["difference"].startswith(word)
    assert report["identical"] == 0


@pytest.mark.slow
def test_a_changed_world_is_reported_at_the_first_differing_call(
    native_run: Path, tmp_path: Path
) -> None:
    run = _copy(native_run, tmp_path / "run")
    row = _episode_with_calls(run, 1)
    tasks = [json.loads(line) for line in (run / "suite.jsonl").read_text().splitlines()]
    for task in tasks:
        task["initial_state"]["grown_since"] = {}
    (run / "suite.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    done = fumehood("replay", str(run), "--unverified", "--episode", row["episode"], status=1)
    assert done.splitlines()[1].startswith(f"{row['episode']}: call 1 (")
    assert done.splitlines()[-1] == "1 replayed, 0 identical, 1 different"


@pytest.mark.slow
def test_every_turn_of_a_conversation_is_replayed(pool: ServicePool) -> None:
    further = (Turn("Raise it.", ("update_account",)), Turn("Say what you did."))
    spec = episode_spec(
        seats=(SeatSpec(instruction="Look.", budget=Budget(calls=9), further_turns=further),)
    )
    with pool.lease() as client, listening(client, spec) as episode:
        with Session(f"{episode.directory}/grpc.sock") as session:
            session.submit("It is basic.")
            session.call("update_account", {"id": "ax1", "patch": {"tier": "gold"}})
            session.submit("Done.")
            session.submit("I raised it.")
        episode.close()
    assert [event["kind"] for event in episode.events].count("turn_ended") == 2
    assert replay_episode(spec, episode.records, pool) == Replayed(None, True)


def test_tokens_of_models_take_the_same_virtual_time_in_a_replay() -> None:
    stamp = [
        {"op": "append", "path": "entries", "value": {"at": {"$get": "time.elapsed_s"}}},
    ]
    state = {
        "scenario": {
            "parts": {"log": "declared"},
            "time": {"start": "2026-03-02T06:00:00Z", "end_s": 3600, "token_us": 1_000_000},
            "events": [],
        },
        "log": {"entries": [], "toolset": {"tools": [tool("note", stamp)]}},
    }
    spec = episode_spec(world="scenario", state=state)
    trace = TraceStream()
    episode = OpenEpisode(spec, trace, StoppedClock(), SeatLimits(), on_broken=trace.close)
    (seat,) = episode.endpoints
    for tokens in (7, 0, 5):
        cost = {BudgetKind.MODEL_TOKENS: tokens}
        reservation = seat.reserve(cost)
        assert isinstance(reservation, Reservation)
        event = ModelCalled(seat="agent", model="m", request="0", status=200, response="0")
        seat.settle(reservation, event, cost)
        seat.call("note", "{}", "")
    seat.submit(Finished("done"))
    episode.close(timed_out=False)
    trace.close()
    records = [
        record
        for message in trace.stream()
        if isinstance(message, Records)
        for record in message.records
    ]
    (closed,) = (
        event for record in records if (event := json.loads(record.event_json))["kind"] == "closed"
    )
    assert [entry["at"] for entry in closed["final_state"]["log"]["entries"]] == [7, 7, 12]
    with ServicePool(1, ServiceOptions(inline=True)) as inline:
        replayed = replay_episode(spec, records, inline)
    assert replayed.divergence is None


@pytest.mark.slow
def test_a_truncated_trace_is_reported_and_not_replayed(native_run: Path, tmp_path: Path) -> None:
    run = _copy(native_run, tmp_path / "run")
    row = _episode_with_calls(run, 1)
    lines = (run / row["trace"]).read_text().splitlines(keepends=True)
    (run / row["trace"]).write_text("".join(lines[:-1]))
    done = fumehood("replay", str(run), "--unverified", "--episode", row["episode"], status=1)
    assert "the recorded trace is broken: the end record is missing" in done


def test_an_unknown_episode_is_an_input_error(native_run: Path) -> None:
    done = run_fumehood("replay", str(native_run), "--episode", "no_such_episode", timeout_s=60)
    assert done.returncode == 2
    assert "no episode with a trace matches 'no_such_episode'" in done.stderr
    assert f"list them with: fumehood show {shlex.quote(str(native_run))}" in done.stderr


@pytest.mark.slow
def test_one_episode_is_named_as_for_show(native_run: Path) -> None:
    report = fumehood_json("replay", str(native_run), "policy_aware/crud_gold", "--json")
    assert (report["replayed"], report["identical"]) == (1, 1)
    unknown = run_fumehood("replay", str(native_run), "crud", timeout_s=60)
    shown = run_fumehood("show", str(native_run), "crud", timeout_s=60)
    assert (unknown.returncode, unknown.stderr) == (2, shown.stderr)
    both = run_fumehood("replay", str(native_run), "crud_gold", "--episode", "x", timeout_s=60)
    assert both.returncode == 2
    assert "--episode has no effect on one episode: remove it, or remove crud_gold" in both.stderr


@pytest.mark.slow
def test_the_trace_of_another_episode_is_refused(toolmisuse_run: Path, tmp_path: Path) -> None:
    run = _copy(toolmisuse_run, tmp_path / "run")
    rows = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    first, other = _two_that_went_otherwise(rows)
    shutil.copy(run / other["trace"], run / first["trace"])
    report = fumehood_json(
        "replay", str(run), "--unverified", "--episode", first["episode"], "--json", status=1
    )
    assert report["identical"] == 0
    (difference,) = report["differences"]
    assert difference["difference"] == "the recorded trace is another than its row names"


def _two_that_went_otherwise(rows: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    pairs = ((one, other) for one in rows for other in rows if one["task"] == other["task"])
    return next(pair for pair in pairs if pair[0]["trace_digest"] != pair[1]["trace_digest"])


@pytest.mark.slow
def test_an_episode_without_a_row_is_reported(native_run: Path, tmp_path: Path) -> None:
    run = _copy(native_run, tmp_path / "run")
    first, second, *_ = (run / "episodes.jsonl").read_text().splitlines(keepends=True)
    (run / "episodes.jsonl").write_text(first)
    done = fumehood("replay", str(run), "--unverified", status=1).splitlines()
    assert f"{json.loads(second)['episode']}: planned, but has no row" in done
    assert done[-1] == "1 replayed, 1 identical, 0 different"
    assert done[0].startswith("UNVERIFIED: ")
    assert len(done) == 41
