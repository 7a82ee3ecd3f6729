"""`compare --by data-mode` on a site that changed after its snapshot was built."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fumehood.cli.compare import compare
from fumehood.core.errors import InputError
from tests.parts.cut_short import cut_short
from tests.parts.folders import short_folder
from tests.parts.libraries import article, config_for, play, publish, seal, write_tasks
from tests.unit.snapshots.sites import Site, page, redirect, serving


@pytest.fixture(scope="module")
def compared() -> Iterator[tuple[Path, Site, Result]]:
    """Compare two agents offline and on a site that changed after its snapshot was built."""
    with serving() as site, short_folder() as folder:
        place = Path(folder)
        publish(site)
        tasks = write_tasks(place / "tasks.jsonl")
        play(config_for(site, tasks, "record", recording=place / "sealed"), place / "recorded")
        seal(place / "sealed", place / "snapshot")
        decay(site)
        settings = config_for(site, tasks, "live").model_dump(
            mode="json", include={"fetch", "search", "engine"}
        )
        settings["fetch"]["seconds_max"] = 1.0
        (place / "live.yaml").write_text(yaml.safe_dump(settings))
        yield place, site, invoke(place, "--json")


def decay(site: Site) -> None:
    """Change text and encoding of the owls, delay the cats, and cut the page of the foxes short."""
    changed = article("owls", "Owls fly to the café whenever they like.")
    site.routes["/owls"] = page(changed.encode("cp1252"), Content_Type="text/html")
    site.routes["/cats"] = lambda connection: time.sleep(1.5)
    site.routes["/foxes"] = redirect("/moved")
    site.routes["/moved"] = page("short", Content_Length="5000")


def invoke(place: Path, *more: str) -> Result:
    words = [
        str(place / "tasks.jsonl"),
        "--by",
        "data-mode",
        "--agent",
        "searcher,idle=noop",
        "--config",
        str(place / "live.yaml"),
    ]
    words += ["--snapshot", str(place / "snapshot"), "--out", str(place / "out"), *more]
    return CliRunner().invoke(compare, words, catch_exceptions=False)


def printed(result: Result) -> Any:
    return json.loads(result.stdout)


@pytest.mark.slow
def test_the_result_has_the_effect_of_the_data_mode_and_of_the_agent(
    compared: tuple[Path, Site, Result],
) -> None:
    result = printed(compared[2])
    of_searcher, of_idle = result["data_mode_effects"]
    assert (of_searcher["first"], of_searcher["second"]) == ("offline", "live")
    assert (of_searcher["success"], of_searcher["difference"]) == ([1.0, 0.0], -1.0)
    assert (of_searcher["lost"], of_searcher["won"], of_searcher["pairs"]) == (3, 0, 3)
    assert of_searcher["p_value"] == pytest.approx(0.0833, abs=1e-4)
    assert of_idle["success"] == [0.0, 0.0]
    assert of_idle["interval"][0] < 0 < of_idle["interval"][1]
    offline, live = result["agent_effects"]
    assert (offline["data_mode"], offline["difference"]) == ("offline", -1.0)
    assert (live["data_mode"], live["difference"]) == ("live", 0.0)


@pytest.mark.slow
def test_unavailable_pages_are_counted_apart_from_changed_ones(
    compared: tuple[Path, Site, Result],
) -> None:
    of_searcher = printed(compared[2])["data_mode_effects"][0]
    assert of_searcher["pages"]["offline"]["lost"] == {}
    assert set(of_searcher["pages"]["live"]["lost"]) == {"broken_response", "timed_out"}
    assert of_searcher["changed_pages"] >= 1
    assert of_searcher["cost_changes"]["calls"]["over"] == 3
    assert of_searcher["shared_pages"] >= of_searcher["changed_pages"]


@pytest.mark.slow
def test_every_pair_has_its_first_difference(compared: tuple[Path, Site, Result]) -> None:
    of_searcher, of_idle = printed(compared[2])["data_mode_effects"]
    assert {divergence["kind"] for divergence in of_searcher["divergences"]} == {"answer"}
    assert {divergence["kind"] for divergence in of_idle["divergences"]} == {None}


@pytest.mark.slow
def test_latency_is_measured_by_tool(compared: tuple[Path, Site, Result]) -> None:
    latency = printed(compared[2])["data_mode_effects"][0]["latency_ms"]
    assert latency["live"]["open_page"]["p95"] > 900
    assert latency["live"]["open_page"]["p95"] > latency["offline"]["open_page"]["p95"]


@pytest.mark.slow
def test_a_finished_comparison_is_printed_again_without_running(
    compared: tuple[Path, Site, Result],
) -> None:
    place, site, _ = compared
    requests = len(site.requests)
    shown = invoke(place).output
    assert len(site.requests) == requests
    for words in (
        "data mode: offline → live",
        "agent: searcher → idle",
        "Link rot",
        "timed_out",
    ):
        assert words in shown


@pytest.mark.slow
def test_an_interrupted_side_is_finished(compared: tuple[Path, Site, Result]) -> None:
    place, _, first = compared
    cut_short(place / "out" / "runs" / "offline", 1)
    again = printed(invoke(place, "--json"))
    assert [effect["pairs"] for effect in again["data_mode_effects"]] == [3, 3]
    assert again["data_mode_effects"][0]["success"] == [1.0, 0.0]
    assert again["runs"] == printed(first)["runs"]


@pytest.mark.slow
def test_finished_runs_of_two_data_modes_are_compared(
    compared: tuple[Path, Site, Result],
) -> None:
    place, _, _ = compared
    words = [
        str(place / "out" / "runs" / "offline"),
        str(place / "out" / "runs" / "live"),
        "--by",
        "data-mode",
    ]
    again = CliRunner().invoke(compare, [*words, "--json"], catch_exceptions=False)
    resumed = printed(invoke(place, "--json"))
    assert printed(again)["data_mode_effects"] == resumed["data_mode_effects"]


@pytest.mark.slow
def test_a_live_run_that_fetched_nothing_has_no_effect(
    compared: tuple[Path, Site, Result], tmp_path: Path
) -> None:
    place, _, _ = compared
    settings = yaml.safe_load((place / "live.yaml").read_text())
    settings["fetch"]["hosts"] = ["elsewhere.example"]
    config = tmp_path / "refused.yaml"
    config.write_text(yaml.safe_dump(settings))
    words = [str(place / "tasks.jsonl"), "--by", "data-mode", "--agent", "searcher"]
    words += ["--config", str(config), "--snapshot", str(place / "snapshot")]
    with pytest.raises(InputError, match=r"all 9 pages .*\(host_not_allowed 9\).*fetch\.hosts"):
        CliRunner().invoke(
            compare, [*words, "--out", str(tmp_path / "out")], catch_exceptions=False
        )


@pytest.mark.slow
def test_a_live_run_whose_searches_failed_has_no_effect(
    compared: tuple[Path, Site, Result], tmp_path: Path
) -> None:
    place, _, _ = compared
    settings = yaml.safe_load((place / "live.yaml").read_text())
    settings["search"]["private"] = False
    settings["fetch"]["private_hosts"] = []
    config = tmp_path / "private.yaml"
    config.write_text(yaml.safe_dump(settings))
    words = [str(place / "tasks.jsonl"), "--by", "data-mode", "--agent", "searcher"]
    words += ["--config", str(config), "--snapshot", str(place / "snapshot")]
    with pytest.raises(InputError, match=r"all \d+ searches .*\(address_not_public.*private"):
        CliRunner().invoke(
            compare, [*words, "--out", str(tmp_path / "out")], catch_exceptions=False
        )


def test_a_live_run_needs_a_list_of_hosts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--config with fetch\.hosts"):
        CliRunner().invoke(
            compare,
            [
                str(write_tasks(tmp_path / "t.jsonl")),
                "--by",
                "data-mode",
                "--agent",
                "noop",
                "--out",
                str(tmp_path / "out"),
            ],
            catch_exceptions=False,
        )
