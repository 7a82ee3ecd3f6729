"""Tests of BFCL's web search: its unmodified tools over a library."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.bfcl.tasks import Bfcl
from fumehood.core.clock import StoppedClock
from fumehood.core.episode import Seat
from fumehood.core.episode_spec import DataMode, DataSource
from fumehood.core.errors import InputError, SpecError
from fumehood.core.json_values import Json, json_bytes
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.tools import Failure, Value
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood_snapshots.build.options import BuildOptions
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.sources.folder import Folder
from tests.parts.installed import installed
from tests.parts.libraries import TOPICS, article
from tests.parts.specs import episode_spec
from tests.unit.benchmarks.scoring import play
from tests.unit.snapshots.building import build

installed("bfcl_eval", "mpmath")

SITE = "https://zoo.example/"


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """A snapshot that keeps the HTML of its three pages."""
    pages = tmp_path / "pages"
    pages.mkdir()
    for topic, fact in TOPICS.items():
        (pages / f"{topic}.html").write_text(article(topic, fact), encoding="utf-8")
    build_snapshot([Folder(pages, base_url=SITE)], tmp_path / "zoo", BuildOptions())
    return tmp_path / "zoo"


def seat_of(folder: Path, *, show_snippet: bool = True, **budget: Any) -> Seat:
    spec = episode_spec(world="bfcl_web", state={"show_snippet": show_snippet}, **budget)
    source = DataSource(DataMode.OFFLINE, {"snapshot": str(folder)})
    mode = HARNESS_MODES.load("native")()
    episode = mode.open_episode(replace(spec, data_source=source), MemoryRecorder(), StoppedClock())
    return episode.seats[0]


def output(seat: Seat, tool: str, **arguments: Json) -> Mapping[str, Any]:
    result = seat.call(tool, arguments).result
    assert isinstance(result, Value)
    return result.output


def failure(seat: Seat, tool: str, **arguments: Json) -> Failure:
    result = seat.call(tool, arguments).result
    assert isinstance(result, Failure)
    return result


def found(seat: Seat, **arguments: Json) -> list[dict[str, str]]:
    rows = ast.literal_eval(output(seat, "search_engine_query", **arguments)["result"])
    assert isinstance(rows, list)
    return rows


def test_a_search_shows_title_address_and_snippet_as_the_original(zoo: Path) -> None:
    seat = seat_of(zoo)
    (owls,) = found(seat, keywords="owls mice", max_results=1, region="de-de")
    assert (owls["title"], owls["href"]) == ("About owls", f"{SITE}owls.html")
    assert "swallow mice" in owls["body"]
    (without,) = found(seat_of(zoo, show_snippet=False), keywords="owls mice", max_results=1)
    assert set(without) == {"title", "href"}


def test_the_number_of_results_is_a_slice_as_in_the_original(zoo: Path) -> None:
    seat = seat_of(zoo)
    numbers = {None: 3, 2: 2, 0: 0, -1: 2, 1000: 3}
    for wanted, count in numbers.items():
        assert len(found(seat, keywords="much else is said", max_results=wanted)) == count
    error = failure(seat, "search_engine_query", keywords="owls", max_results="3")
    assert error.message.startswith("Error during execution: slice indices")
    error = failure(seat, "search_engine_query", keywords="owls", language="de")
    assert "unexpected keyword argument 'language'" in error.message


def test_a_page_is_shown_as_served_or_as_text(zoo: Path) -> None:
    seat = seat_of(zoo)
    raw = output(seat, "fetch_url_content", url=f"{SITE}owls.html")["content"]
    assert raw == article("owls", TOPICS["owls"])
    for mode in ("markdown", "truncate"):
        text = output(seat, "fetch_url_content", url=f"{SITE}owls.html", mode=mode)["content"]
        assert TOPICS["owls"] in text
        assert "<p>" not in text
    unsupported = output(seat, "fetch_url_content", url=f"{SITE}owls.html", mode="pdf")
    assert unsupported["error"].endswith("Unsupported mode: pdf")


def test_a_page_without_kept_html_is_shown_as_text(tmp_path: Path) -> None:
    build(tmp_path / "texts")
    seat = seat_of(tmp_path / "texts")
    for mode in ("raw", "markdown", "truncate"):
        shown = output(seat, "fetch_url_content", url="https://zoo.example/cat", mode=mode)
        assert shown == {"content": "Cats purr. A cat sleeps all day."}


def test_pages_and_searches_that_the_library_refuses_are_failures(zoo: Path) -> None:
    seat = seat_of(zoo)
    assert failure(seat, "fetch_url_content", url="https://other.example/").code == "not_found"
    assert failure(seat, "fetch_url_content", url=f"{SITE}{'x' * 9_000}").code == "invalid_argument"
    assert failure(seat, "search_engine_query", keywords="").code == "invalid_argument"
    assert failure(seat, "search_engine_query", keywords=[]).code == "invalid_argument"
    assert (
        failure(seat, "fetch_url_content", url="file:///etc/passwd").message
        == "Error during execution: Invalid URL: file:///etc/passwd"
    )
    assert found(seat, keywords="owls"), "a failure does not affect the next call"


def test_content_is_cut_to_the_remaining_budget(tmp_path: Path) -> None:
    long = {"id": "a", "url": "https://a.example/", "text": 'é"\n' * 90_000}
    build(tmp_path / "long", [long])
    whole = output(seat_of(tmp_path / "long"), "fetch_url_content", url=long["url"])
    assert 190_000 < json_bytes(whole) <= 200_000
    budgeted = seat_of(tmp_path / "long", answer_bytes=5_000)
    part = output(budgeted, "fetch_url_content", url=long["url"])
    assert 4_000 < json_bytes(part) <= 5_000


@pytest.mark.parametrize("category", ["web_search_base", "web_search_no_snippet"])
def test_the_right_answer_solves_a_task_and_the_no_op_does_not(category: str, zoo: Path) -> None:
    suite = Bfcl().load(f"{category}:{zoo}")
    assert (len(suite.cases), suite.snapshot) == (100, zoo)
    assert {case.task.initial_state["show_snippet"] for case in suite.cases} == {
        category == "web_search_base"
    }
    assert len({case.task.task_id for case in suite.cases}) == 100
    for case in suite.cases[::25]:
        (answer,) = (case.gold.oracle or ())[-1:]
        assert play(case, [answer]).success is True
        assert play(case, [{"submit": f"It is {str(answer['submit']).upper()}!"}]).success is True
        assert play(case, [{"submit": "unknown"}]).success is False
        assert play(case, ()).success is False


def test_data_that_cannot_be_used_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no snapshot .*missing; build it with"):
        Bfcl().load(f"web_search_base:{tmp_path / 'missing'}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="manifest") as error:
        Bfcl().load(f"web_search_base:{tmp_path / 'empty'}")
    assert "\n" not in str(error.value)
    with pytest.raises(SpecError, match="show_snippet"):
        HARNESS_MODES.load("native")().open_episode(
            episode_spec(world="bfcl_web", state={}), MemoryRecorder(), StoppedClock()
        )
