"""The same tasks live, recorded, replayed and offline, through a service with its own user."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from fumehood.core.errors import InputError
from fumehood.orchestrator.launch import Progress, resume_run
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import RunReader
from tests.parts.commands import fumehood, fumehood_json
from tests.parts.cut_short import cut_short
from tests.parts.folders import short_folder
from tests.parts.libraries import article, calls_of, config_for, play, publish, seal, write_tasks
from tests.unit.snapshots.building import build
from tests.unit.snapshots.sites import Site, serving


@pytest.fixture
def site() -> Iterator[Site]:
    """Three pages and their index."""
    with serving() as server:
        publish(server)
        yield server


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that a service without root can enter."""
    with short_folder() as folder:
        write_tasks(Path(folder) / "tasks.jsonl")
        yield Path(folder)


def successes(folder: Any) -> dict[str, bool | None]:
    return {row.name.task: row.score.success for row in folder.rows()}


@dataclass(frozen=True)
class Played:
    """One run in each data mode, of the same tasks on the same site."""

    place: Path
    site: Site
    runs: Mapping[str, RunReader]
    """Data mode → its run."""
    requests: Mapping[str, int]
    """Data mode → the number of requests that its run made."""


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    with short_folder() as folder, serving() as site:
        publish(site)
        place = Path(folder)
        tasks, recording = write_tasks(place / "tasks.jsonl"), place / "recording"
        runs, requests = dict[str, RunReader](), dict[str, int]()

        def play_in(mode: str, **change: Any) -> None:
            before = len(site.requests)
            runs[mode] = play(config_for(site, tasks, mode, **change), place / mode)
            requests[mode] = len(site.requests) - before

        play_in("record", recording=recording)
        play_in("live")
        site.routes.clear()
        play_in("replay", recording=recording)
        play_in("offline", snapshot=seal(recording, place / "snapshot"))
        yield Played(place, site, runs, requests)


@pytest.mark.slow
def test_a_recording_is_replayed_and_sealed_without_requests(played: Played) -> None:
    for mode in ("record", "offline"):
        assert set(successes(played.runs[mode]).values()) == {True}
    assert calls_of(played.runs["replay"]) == calls_of(played.runs["record"])
    assert played.requests["record"] > 0
    assert played.requests["replay"] == played.requests["offline"] == 0


@pytest.mark.slow
def test_replaying_a_recorded_run_makes_no_request_and_keeps_the_recording(played: Played) -> None:
    requests = len(played.site.requests)
    recording = played.place / "recording"
    kept = {path: path.read_bytes() for path in recording.rglob("*") if path.is_file()}
    report = fumehood_json("replay", str(played.runs["record"].path), "--json")
    assert (report["replayed"], report["differences"], report["missing"]) == (3, [], [])
    assert len(played.site.requests) == requests
    assert {path: path.read_bytes() for path in recording.rglob("*") if path.is_file()} == kept


@pytest.mark.slow
def test_a_live_run_is_not_replayed(played: Played) -> None:
    requests = len(played.site.requests)
    fumehood("replay", str(played.runs["live"].path), status=2)
    assert len(played.site.requests) == requests


def test_rows_and_traces_contain_the_data_mode(played: Played) -> None:
    for mode, folder in played.runs.items():
        for row in folder.rows():
            assert row.data_mode == mode
            assert json.loads(folder.read_trace(row)[0].event_json)["data_mode"] == mode
        rows = [row.to_json() for row in folder.rows()]
        assert [row.to_json() for row in rescore(folder)] == rows


@pytest.mark.slow
def test_the_state_has_the_same_digest_in_every_data_mode(played: Played) -> None:
    digests = {
        json.loads(record.event_json).get("state")
        for folder in played.runs.values()
        for row in folder.rows()
        for record in folder.read_trace(row)
    }
    assert len(digests - {None}) == 1


@pytest.mark.slow
def test_a_page_missing_from_the_recording_is_not_fetched(site: Site, place: Path) -> None:
    tasks, recording = place / "tasks.jsonl", place / "recording"
    moved = site.routes.pop("/owls")
    play(config_for(site, tasks, "record", recording=recording, seed=0), place / "recorded")
    site.routes["/owls"] = moved
    again = play(
        config_for(site, tasks, "replay", recording=recording, agents=("other=searcher",)),
        place / "replayed",
    )
    failures = [call[3]["code"] for calls in calls_of(again).values() for call in calls if call[3]]
    assert set(failures) == {"not_recorded"}


@pytest.mark.slow
def test_a_run_whose_searches_all_fail_for_want_of_a_provider_says_so(
    site: Site, place: Path
) -> None:
    config = config_for(site, place / "tasks.jsonl", "live").model_copy(update={"search": None})
    with capture_logs() as logged:
        play(config, place / "without")
    assert [entry["event"] for entry in logged if entry["event"] == "no search"] == ["no search"]


@pytest.mark.slow
def test_live_pages_that_change_or_fail_are_results_and_not_infra(site: Site, place: Path) -> None:
    site.routes["/owls"] = article("owls", "Owls hunt whenever they like.")
    site.routes["/cats"] = lambda connection: connection.close()
    folder = play(config_for(site, place / "tasks.jsonl", "live"), place / "live")
    assert not any(row.is_infra for row in folder.rows())
    assert successes(folder) == {"owls": False, "cats": False, "foxes": True}
    failed = [call[3]["code"] for calls in calls_of(folder).values() for call in calls if call[3]]
    assert "fetch_failed" in failed


@pytest.mark.slow
def test_the_service_rejects_a_host_that_is_not_allowed(site: Site, place: Path) -> None:
    fetch = {**site.policy().model_dump(), "hosts": ("other.example",)}
    folder = play(config_for(site, place / "tasks.jsonl", "live", fetch=fetch), place / "live")
    failures = {
        call[3]["message"] for calls in calls_of(folder).values() for call in calls if call[3]
    }
    assert failures
    assert all("host_not_allowed" in message for message in failures)
    assert [path for path in site.paths if path not in ("/index.json", "/robots.txt")] == []


@pytest.mark.slow
def test_a_run_is_resumed_in_its_data_mode(site: Site, place: Path) -> None:
    folder = play(config_for(site, place / "tasks.jsonl", "live"), place / "live")
    cut_short(folder.path, 1)
    resumed = resume_run(folder.path, _silent())
    assert [row.data_mode for row in resumed.rows()] == ["live"] * 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only a service that root starts is another user")
def test_a_snapshot_that_the_service_cannot_enter_is_an_input_error(
    site: Site, place: Path
) -> None:
    closed = place / "closed"
    build(closed / "snapshot")
    closed.chmod(0o700)
    config = config_for(site, place / "tasks.jsonl", "offline", snapshot=closed / "snapshot")
    with pytest.raises(InputError, match=f"cannot enter {closed}"):
        play(config, place / "offline")
    assert not (place / "offline").exists()


def _silent() -> Progress:
    return Progress(lambda *_: None, lambda _: None, lambda _: None)
