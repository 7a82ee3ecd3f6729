"""Recorded pages can be replayed and sealed; unrecorded pages are refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fumehood_snapshots.build.options import BuildOptions
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.errors import (
    FetchFailed,
    FetchFailure,
    Refusal,
    RefusalCode,
    SnapshotDamagedError,
    SnapshotInputError,
)
from fumehood_snapshots.snapshot import open_snapshot
from fumehood_snapshots.sources.recording import RecordingFolder
from fumehood_snapshots.web.crawl import CrawlLimits, crawl, links
from fumehood_snapshots.web.fetcher import LiveFetcher
from fumehood_snapshots.web.policy import FetchPolicy
from fumehood_snapshots.web.recording import Recorder, Recording, RecordingFetcher, ReplayingFetcher
from tests.unit.snapshots.sites import Route, article, page, redirect, serving


def _recording(folder: Path, policy: FetchPolicy, session: str = "s") -> RecordingFetcher:
    recorder = Recorder(folder)
    return RecordingFetcher(LiveFetcher(policy, observe=recorder.keep), recorder, session, "page")


def _replaying(folder: Path, session: str = "s") -> ReplayingFetcher:
    return ReplayingFetcher(Recording(folder), session)


def test_a_changing_page_is_replayed_in_recorded_order(tmp_path: Path) -> None:
    with serving({"/news": article("owls")}) as site:
        recording = _recording(tmp_path, site.policy())
        recording.fetch(f"{site.url}/news")
        site.routes["/news"] = article("mice")
        recording.fetch(f"{site.url}/news#later")
    replaying = _replaying(tmp_path)
    assert replaying.fetch(f"{site.url}/news").body == article("owls").encode()
    assert replaying.fetch(f"{site.url}/news").body == article("mice").encode()
    with pytest.raises(Refusal, match=r"not recorded for occurrence 3") as caught:
        replaying.fetch(f"{site.url}/news")
    assert caught.value.code is RefusalCode.NOT_RECORDED


def test_an_unrecorded_page_is_refused_even_if_the_site_has_it(tmp_path: Path) -> None:
    with serving({"/owls": article("owls"), "/mice": article("mice")}) as site:
        _recording(tmp_path, site.policy()).fetch(f"{site.url}/owls")
        asked = len(site.requests)
        with pytest.raises(Refusal, match="not recorded"):
            _replaying(tmp_path).fetch(f"{site.url}/mice")
        assert len(site.requests) == asked


def test_failures_are_recorded_and_replayed(tmp_path: Path) -> None:
    with serving(
        {"/lies": page("short", Content_Length="99"), "/gone": page("gone", "410 Gone")}
    ) as site:
        recording = _recording(tmp_path, site.policy())
        for path in ("lies", "gone"):
            try:
                recording.fetch(f"{site.url}/{path}")
            except FetchFailed as failed:
                live = failed
    with pytest.raises(FetchFailed) as caught:
        _replaying(tmp_path).fetch(f"{site.url}/lies")
    assert (caught.value.failure, str(caught.value)) == (FetchFailure.BROKEN_RESPONSE, str(live))
    assert _replaying(tmp_path).fetch(f"{site.url}/gone").status == 410


def test_a_binary_url_is_recorded_and_replayed_as_a_failure(tmp_path: Path) -> None:
    recording = _recording(tmp_path, FetchPolicy(hosts=("*",)))
    for fetcher in (recording, None):
        with pytest.raises(FetchFailed) as caught:
            (fetcher or _replaying(tmp_path)).fetch("http://\ud800.example/")
        assert caught.value.failure is FetchFailure.BAD_URL


def test_sessions_do_not_mix(tmp_path: Path) -> None:
    with serving({"/n": article("owls")}) as site:
        _recording(tmp_path, site.policy(), "first").fetch(f"{site.url}/n")
        site.routes["/n"] = article("mice")
        _recording(tmp_path, site.policy(), "second").fetch(f"{site.url}/n")
    assert b"owls" in _replaying(tmp_path, "first").fetch(f"{site.url}/n").body
    assert b"mice" in _replaying(tmp_path, "second").fetch(f"{site.url}/n").body
    with pytest.raises(Refusal):
        _replaying(tmp_path, "third").fetch(f"{site.url}/n")


def test_every_response_is_recorded_with_redirects_and_robots(tmp_path: Path) -> None:
    with serving({"/a": redirect("/b"), "/b": article("owls"), "/robots.txt": page("")}) as site:
        _recording(tmp_path, site.policy()).fetch(f"{site.url}/a")
    recording = Recording(tmp_path)
    assert [request.url for request in recording.requests] == [f"{site.url}/a"]
    kept = [
        json.loads(line)["uri"] for line in (tmp_path / "responses.jsonl").read_bytes().splitlines()
    ]
    assert kept == [f"{site.url}/{path}" for path in ("robots.txt", "a", "b")]


def test_concurrent_threads_record_complete_lines(tmp_path: Path) -> None:
    with serving({f"/{number}": article(f"topic{number}") for number in range(12)}) as site:
        recording = _recording(tmp_path, site.policy())
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda number: recording.fetch(f"{site.url}/{number % 12}"), range(36)))
    replaying = _replaying(tmp_path)
    for number in range(36):
        assert f"topic{number % 12}".encode() in replaying.fetch(f"{site.url}/{number % 12}").body


def test_a_torn_last_line_loses_only_that_line(tmp_path: Path) -> None:
    with serving({"/a": article("owls"), "/b": article("mice")}) as site:
        recording = _recording(tmp_path, site.policy())
        recording.fetch(f"{site.url}/a")
        recording.fetch(f"{site.url}/b")
    path = tmp_path / "requests.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    assert _replaying(tmp_path).fetch(f"{site.url}/a").status == 200
    with pytest.raises(Refusal):
        _replaying(tmp_path).fetch(f"{site.url}/b")


@pytest.mark.parametrize(
    "line", [b"{\n", b'{"session": 1}\n', b"[]\n", b'{"failure": "unheard_of"}\n']
)
def test_a_damaged_line_is_an_error(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "requests.jsonl").write_bytes(line + b"\n")
    with pytest.raises(SnapshotDamagedError, match=r"requests\.jsonl cannot be read"):
        Recording(tmp_path)


def test_a_folder_without_requests_is_not_a_recording(tmp_path: Path) -> None:
    with pytest.raises(SnapshotInputError, match="not a recording"):
        Recording(tmp_path)


def test_a_crawl_is_recorded_sealed_and_searched_without_the_network(tmp_path: Path) -> None:
    routes: dict[str, Route] = {
        "/": article(
            "birds",
            "/owls",
            "/mice#tail",
            "https://elsewhere.example/",
            "mailto:x@y.example",
            "/old",
        ),
        "/owls": article("owls", "/", "/deep"),
        "/mice": article("mice"),
        "/deep": article("deeper things"),
        "/old": redirect("/owls"),
    }
    with serving(routes) as site:
        fetcher = _recording(tmp_path / "recording", site.policy())
        visited = list(
            crawl(fetcher, [f"{site.url}/", f"{site.url}/absent"], CrawlLimits(1, 10, 0))
        )
    assert [visit.url.removeprefix(site.url) for visit in visited] == [
        "/",
        "/absent",
        "/owls",
        "/mice",
        "/old",
    ]
    source = RecordingFolder(tmp_path / "recording")
    options = BuildOptions(extractor="resiliparse")
    manifest = build_snapshot(
        [source], tmp_path / "sealed", options, extra_files=source.replay_files()
    )
    assert (manifest.counts.documents, manifest.counts.broken) == (3, 1 + 1)

    snapshot = open_snapshot(tmp_path / "sealed", verify=True)
    hit = snapshot.search("owls")[0]
    assert hit.url == f"{site.url}/owls"
    redirected = snapshot.find(f"{site.url}/old")
    assert redirected is not None
    assert redirected.id == hit.id
    assert _replaying(tmp_path / "sealed" / "recorded").fetch(f"{site.url}/old").uri == hit.url


def test_a_crawl_stops_at_its_limit_and_pauses_in_between(tmp_path: Path) -> None:
    pauses: list[float] = []
    with serving({"/": article("a", "/1", "/2", "/3"), "/1": "1", "/2": "2", "/3": "3"}) as site:
        fetcher = LiveFetcher(site.policy())
        visited = list(crawl(fetcher, [f"{site.url}/"], CrawlLimits(5, 3, 0.25), pauses.append))
    assert len(visited) == 3
    assert pauses == [0, 0.25, 0.25]


def test_only_pages_have_links() -> None:
    assert links(None) == []
