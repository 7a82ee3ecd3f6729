"""Agents get the same two tools in every data mode, and no answer exceeds its limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from pydantic import ValidationError

from fumehood_snapshots.build.options import BuildOptions
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.errors import FetchFailed, Refusal, RefusalCode, SnapshotInputError
from fumehood_snapshots.library.environment import open_library
from fumehood_snapshots.library.library import Library, SealedLibrary
from fumehood_snapshots.library.reader import LibraryReader, answer_bytes
from fumehood_snapshots.library.settings import EnvironmentConfig, SearchConfig, read_settings
from fumehood_snapshots.library.tools import TOOLS
from fumehood_snapshots.sources.recording import RecordingFolder
from tests.unit.snapshots.building import built
from tests.unit.snapshots.sites import article, page, serving

LONG = "A needle. " + "Straw and “hay” \n" * 500


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    records = [{"id": "long", "url": "https://e.example/long", "title": "Hay", "text": LONG}]
    records += [
        {"id": f"s{number}", "title": f"Short {number}", "text": f"needle {number}"}
        for number in range(9)
    ]
    return SealedLibrary(
        built(tmp_path_factory.mktemp("library") / "snapshot", records), snippet_chars=400
    )


def _refused(reader: LibraryReader, tool: str, **arguments: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        getattr(reader, tool)(**arguments)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_search_result_contains_id_url_and_snippet(library: Library) -> None:
    answer = LibraryReader(library).search("needle", k=3)
    assert len(answer["results"]) == 3
    assert answer["results"][0].keys() == {"id", "url", "title", "snippet", "score"}
    assert LibraryReader(library, k=2).search("needle")["results"] == answer["results"][:2]


def test_a_page_is_read_in_parts_until_its_end(library: Library) -> None:
    reader = LibraryReader(library, answer_bytes_max=1000)
    text, offset = "", 0
    while offset is not None:
        answer = reader.open_page("https://e.example/long", offset)
        assert answer_bytes(answer) <= 1000
        assert answer["length"] == len(LONG)
        text += answer["text"]
        offset = answer["next_offset"]
    assert text == LONG


@pytest.mark.parametrize("limit", [150, 200, 500, 1000, 3000])
def test_no_answer_exceeds_its_size_limit(library: Library, limit: int) -> None:
    reader = LibraryReader(library, answer_bytes_max=limit)
    answers = [reader.search("needle straw", k=10), reader.open_page("long")]
    assert all(answer_bytes(answer) <= limit for answer in answers)
    assert answers[0]["results"]
    assert answers[1]["text"]


def test_an_answer_has_at_most_32_000_bytes(tmp_path: Path) -> None:
    library = SealedLibrary(built(tmp_path / "snapshot", [{"id": "a", "text": "x" * 40_000}]))
    answer = LibraryReader(library).open_page("a")
    assert answer_bytes(answer) == 32_000
    rest = LibraryReader(library).open_page("a", answer["next_offset"])
    assert answer["text"] + rest["text"] == "x" * 40_000


def test_an_answer_that_cannot_be_reduced_enough_is_refused(library: Library) -> None:
    reader = LibraryReader(library, answer_bytes_max=20)
    assert _refused(reader, "search", query="needle").code is RefusalCode.BUDGET_TOO_SMALL
    assert _refused(reader, "open_page", page="long").code is RefusalCode.BUDGET_TOO_SMALL


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": ""}),
        ("search", {"query": "x" * 2001}),
        ("search", {"query": 7}),
        ("search", {"query": "needle", "k": 0}),
        ("search", {"query": "needle", "k": 51}),
        ("search", {"query": "needle", "k": True}),
        ("search", {"query": "needle", "k": 2.0}),
        ("search", {"query": "needle", "filter": {"host": 1}}),
        ("search", {"query": "needle", "filter": {"absent": "x"}}),
        ("search", {"query": "needle", "filter": ["host"]}),
        ("open_page", {"page": ""}),
        ("open_page", {"page": "long", "offset": -1}),
        ("open_page", {"page": "long", "offset": 10**30}),
        ("open_page", {"page": "long", "offset": len(LONG) + 1}),
        ("open_page", {"page": "x" * 5000}),
    ],
)
def test_an_invalid_argument_is_refused(
    library: Library, tool: str, arguments: dict[str, Any]
) -> None:
    assert _refused(LibraryReader(library), tool, **arguments).code is RefusalCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": "x" * 2000, "k": 50, "filter": {"host": "e.example"}}),
        ("open_page", {"page": "long", "offset": len(LONG)}),
    ],
)
def test_arguments_at_their_limits_are_accepted(
    library: Library, tool: str, arguments: dict[str, Any]
) -> None:
    jsonschema_rs.validate(_schema(tool), arguments)
    getattr(LibraryReader(library), tool)(**arguments)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": ""}),
        ("search", {"query": "x" * 2001}),
        ("search", {"query": "needle", "k": 0}),
        ("search", {"query": "needle", "k": 51}),
        ("search", {"query": "needle", "k": 2.5}),
        ("search", {"query": "needle", "filter": {"host": 1}}),
        ("search", {"query": "needle", "filter": ["host"]}),
        ("open_page", {"page": ""}),
        ("open_page", {"page": "x" * 4097}),
        ("open_page", {"page": "long", "offset": -1}),
    ],
)
def test_the_schema_that_an_agent_sees_excludes_arguments_that_are_refused(
    library: Library, tool: str, arguments: dict[str, Any]
) -> None:
    assert _refused(LibraryReader(library), tool, **arguments).code is RefusalCode.INVALID_ARGUMENT
    assert not jsonschema_rs.is_valid(_schema(tool), arguments)


def _schema(name: str) -> dict[str, Any]:
    schemas: dict[str, dict[str, Any]] = {tool["name"]: tool["parameters"] for tool in TOOLS}
    return schemas[name]


def test_a_missing_document_is_refused_with_its_type(library: Library) -> None:
    assert (
        _refused(LibraryReader(library), "open_page", page="https://absent.example/").code
        is RefusalCode.NOT_FOUND
    )


def test_the_tools_have_schemas() -> None:
    assert [tool["name"] for tool in TOOLS] == ["search", "open_page"]
    assert all(tool["parameters"]["additionalProperties"] is False for tool in TOOLS)
    for tool in TOOLS:
        method = getattr(LibraryReader, tool["name"])
        arguments = set(method.__code__.co_varnames[1 : method.__code__.co_argcount])
        assert arguments == set(tool["parameters"]["properties"])


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({"data_mode": "offline"}, "needs snapshot"),
        ({"data_mode": "live"}, "needs fetch"),
        ({"data_mode": "record", "fetch": {"hosts": []}}, "needs fetch and recording"),
        ({"data_mode": "replay"}, "needs recording or snapshot"),
        ({"data_mode": "dream"}, "data_mode"),
    ],
)
def test_a_data_mode_reports_missing_settings(settings: dict[str, Any], needed: str) -> None:
    with pytest.raises(ValidationError, match=needed):
        EnvironmentConfig.model_validate(settings)


def test_without_a_data_mode_a_snapshot_is_used_offline(tmp_path: Path) -> None:
    built(tmp_path / "snapshot")
    config = read_settings({"snapshot": str(tmp_path / "snapshot")})
    assert LibraryReader(open_library(config, "e")).open_page("owl")["title"] == "Owls"


def test_an_episode_is_recorded_then_replayed_and_answered_offline(tmp_path: Path) -> None:
    found = {
        "results": [
            {
                "url": "http://127.0.0.1:%d/owls",
                "title": "Owls\ud800",
                "content": "…",
                "score": 1e999,
            }
        ]
    }
    with serving({"/owls": article("owls"), "/mice": page("gone", "404 Not Found")}) as site:
        text = json.dumps(found) % site.port
        site.routes["/search?q=owls&format=json"] = page(text, Content_Type="application/json")
        settings = {
            "data_mode": "record",
            "recording": tmp_path / "recording",
            "fetch": site.policy(),
            "search": SearchConfig(provider="searxng", url=f"{site.url}/search", private=True),
            "extractor": "resiliparse",
        }
        recorded = _episode(EnvironmentConfig.model_validate(settings), site.url)
    assert recorded[0]["results"][0]["title"] == "Owls?"
    assert recorded[1]["text"].startswith("owls")
    assert recorded[2] == "not_found"
    assert (
        _episode(EnvironmentConfig.model_validate({**settings, "data_mode": "replay"}), site.url)
        == recorded
    )

    source = RecordingFolder(tmp_path / "recording")
    options = BuildOptions(extractor="resiliparse")
    build_snapshot([source], tmp_path / "snapshot", options, extra_files=source.replay_files())
    sealed = {"snapshot": tmp_path / "snapshot", "extractor": "resiliparse"}
    replayed = EnvironmentConfig.model_validate(
        {**sealed, "data_mode": "replay", "search": settings["search"]}
    )
    assert _episode(replayed, site.url) == recorded
    offline = _episode(
        EnvironmentConfig.model_validate({**sealed, "data_mode": "offline"}), site.url
    )
    assert offline[0]["results"][0]["id"] == recorded[0]["results"][0]["id"]
    assert offline[1:] == recorded[1:]


def _episode(config: EnvironmentConfig, url: str) -> list[Any]:
    reader = LibraryReader(open_library(config, "episode-1"))
    searched = reader.search("owls")
    opened = reader.open_page(searched["results"][0]["id"])
    return [searched, opened, _refused(reader, "open_page", page=f"{url}/mice").code.value]


def test_a_live_episode_leaves_no_recording(tmp_path: Path) -> None:
    with serving({"/owls": article("owls")}) as site:
        config = EnvironmentConfig(data_mode="live", fetch=site.policy(), extractor="resiliparse")
        reader = LibraryReader(open_library(config, "e"))
        assert reader.open_page(f"{site.url}/owls")["title"] == "About owls"
        assert _refused(reader, "search", query="owls").code is RefusalCode.NOT_FOUND
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", ["300 Multiple Choices", "404 Not Found"])
def test_a_live_page_without_success_is_not_found(status: str) -> None:
    with serving({"/owls": page("<p>owls</p>", status)}) as site:
        config = EnvironmentConfig(data_mode="live", fetch=site.policy(), extractor="resiliparse")
        reader = LibraryReader(open_library(config, "e"))
        refusal = _refused(reader, "open_page", page=f"{site.url}/owls")
        assert refusal.code is RefusalCode.NOT_FOUND


def test_a_later_part_of_a_live_page_comes_from_the_fetched_copy() -> None:
    with serving({"/owls": article("owls")}) as site:
        config = EnvironmentConfig(data_mode="live", fetch=site.policy(), extractor="resiliparse")
        reader = LibraryReader(open_library(config, "e"))
        first = reader.open_page(f"{site.url}/owls")
        site.routes["/owls"] = article("mice")
        again = reader.open_page(f"{site.url}/owls", 10)
        assert again["text"] == first["text"][10:]
        assert "mice" in reader.open_page(f"{site.url}/owls")["text"]


def test_agents_cannot_open_the_search_endpoint() -> None:
    with serving({}) as engine, serving({"/owls": article("owls")}) as site:
        engine.routes["/search?q=x&format=json"] = page('{"results": []}')
        config = EnvironmentConfig(
            data_mode="live",
            fetch=site.policy(),
            search=SearchConfig(provider="searxng", url=f"{engine.url}/search", private=True),
        )
        reader = LibraryReader(open_library(config, "e"))
        assert reader.search("x") == {"results": []}
        assert isinstance(_refused(reader, "open_page", page=f"{engine.url}/search"), FetchFailed)


def test_a_search_engine_at_a_private_address_needs_permission() -> None:
    with serving({"/search?q=x&format=json": page('{"results": []}')}) as engine:
        config = EnvironmentConfig(
            data_mode="live",
            fetch=engine.policy(),
            search=SearchConfig(provider="searxng", url=f"{engine.url}/search"),
        )
        refusal = _refused(LibraryReader(open_library(config, "e")), "search", query="x")
        assert refusal.code is RefusalCode.FETCH_FAILED
        assert engine.paths == []


@pytest.mark.parametrize(
    "answer", [page("no"), page("[]"), page('{"results": [1]}'), page("", "500 Oops")]
)
def test_an_invalid_response_of_a_provider_is_a_failed_fetch(answer: bytes) -> None:
    with serving({"/search?q=x&format=json": answer}) as site:
        config = EnvironmentConfig(
            data_mode="live",
            fetch=site.policy(),
            search=SearchConfig(provider="searxng", url=f"{site.url}/search", private=True),
        )
        refusal = _refused(LibraryReader(open_library(config, "e")), "search", query="x")
        assert refusal.code is RefusalCode.FETCH_FAILED


@pytest.mark.parametrize("kind", ["json", "sitemap"])
def test_a_site_is_searched_with_its_index(kind: str) -> None:
    with serving({}) as site:
        urls = [f"{site.url}/birds/night-owls", f"{site.url}/mammals/mice?a=1&b=2"]
        site.routes["/index"] = page(
            json.dumps(
                [{"url": urls[0], "title": "Owls"}, {"url": urls[1]}, {"title": "no url"}, 7]
            )
            if kind == "json"
            else "<urlset>"
            + "".join(f"<url><loc> {url.replace('&', '&amp;')} </loc></url>" for url in urls)
        )
        config = EnvironmentConfig(
            data_mode="live",
            fetch=site.policy(),
            search=SearchConfig(provider="site-index", url=f"{site.url}/index", private=True),
        )
        reader = LibraryReader(open_library(config, "e"))
        assert [result["url"] for result in reader.search("owl")["results"]] == urls[:1]
        assert [result["url"] for result in reader.search("mouse mice")["results"]] == urls[1:]
        assert reader.search("zebra") == {"results": []}
        assert site.paths == ["/index"]


def test_a_snapshot_of_text_cannot_be_replayed(tmp_path: Path) -> None:
    built(tmp_path / "snapshot")
    config = EnvironmentConfig(data_mode="replay", snapshot=tmp_path / "snapshot")
    with pytest.raises(SnapshotInputError, match="not built from a recording"):
        open_library(config, "e")
