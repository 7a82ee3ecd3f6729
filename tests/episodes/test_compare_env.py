"""``compare-env`` on a site that changed, stalls, moved and lies since it was sealed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fumehood.cli.compare_env import compare_env
from fumehood.core.errors import InputError
from tests.parts.folders import short_folder
from tests.parts.libraries import article, config_for, play, publish, seal, write_tasks
from tests.unit.snapshots.sites import Site, page, redirect, serving


@pytest.fixture(scope="module")
def compared() -> Iterator[tuple[Path, Site, Result]]:
    """A comparison of two agents on a site that has decayed since it was sealed."""
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
    """Owls say something else now; cats stall; foxes have moved and lie about their length."""
    site.routes["/owls"] = article("owls", "Owls hunt whenever they like.")
    site.routes["/cats"] = lambda connection: time.sleep(1.5)
    site.routes["/foxes"] = redirect("/moved")
    site.routes["/moved"] = page("short", Content_Length="5000")


def invoke(place: Path, *more: str) -> Result:
    words = [
        str(place / "tasks.jsonl"),
        "--agents",
        "searcher,idle=noop",
        "--config",
        str(place / "live.yaml"),
    ]
    words += ["--snapshot", str(place / "snapshot"), "--out", str(place / "out"), *more]
    return CliRunner().invoke(compare_env, words, catch_exceptions=False)


def found(result: Result) -> Any:
    return json.loads(result.stdout)


def test_the_effect_of_the_environment_stands_beside_that_of_the_agent(
    compared: tuple[Path, Site, Result],
) -> None:
    told = found(compared[2])
    of_searcher, of_idle = told["environment_effects"]
    assert (of_searcher["first"], of_searcher["second"]) == ("offline", "live")
    assert (of_searcher["success"], of_searcher["difference"]) == ([1.0, 0.0], -1.0)
    assert (of_searcher["lost"], of_searcher["won"], of_searcher["pairs"]) == (3, 0, 3)
    assert of_searcher["p_value"] == pytest.approx(0.25)
    assert of_idle["success"] == [0.0, 0.0]
    assert of_idle["interval"][0] < 0 < of_idle["interval"][1]
    offline, live = told["agent_effects"]
    assert (offline["environment"], offline["difference"]) == ("offline", -1.0)
    assert (live["environment"], live["difference"]) == ("live", 0.0)


def test_link_rot_is_told_apart_from_change(compared: tuple[Path, Site, Result]) -> None:
    of_searcher = found(compared[2])["environment_effects"][0]
    assert of_searcher["pages"]["offline"]["lost"] == {}
    assert set(of_searcher["pages"]["live"]["lost"]) == {"broken_response", "timed_out"}
    assert of_searcher["changed_pages"] >= 1
    assert of_searcher["shared_pages"] >= of_searcher["changed_pages"]


def test_every_pair_says_where_it_parted(compared: tuple[Path, Site, Result]) -> None:
    of_searcher, of_idle = found(compared[2])["environment_effects"]
    assert {each["way"] for each in of_searcher["divergences"]} == {"answer"}
    assert {each["way"] for each in of_idle["divergences"]} == {None}


def test_latency_is_told_by_tool(compared: tuple[Path, Site, Result]) -> None:
    latency = found(compared[2])["environment_effects"][0]["latency_ms"]
    assert latency["live"]["open_page"]["p95"] > 900
    assert latency["live"]["open_page"]["p95"] > latency["offline"]["open_page"]["p95"]


def test_what_is_done_is_not_run_again_and_is_told_in_tables(
    compared: tuple[Path, Site, Result],
) -> None:
    place, site, _ = compared
    asked = len(site.requests)
    shown = invoke(place).output
    assert len(site.requests) == asked
    for words in (
        "environment: offline → live",
        "agent: searcher → idle",
        "Link rot",
        "timed_out",
    ):
        assert words in shown


def test_without_hosts_to_ask_there_is_no_live_side(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--config with fetch\.hosts"):
        CliRunner().invoke(
            compare_env,
            [
                str(write_tasks(tmp_path / "t.jsonl")),
                "--agents",
                "noop",
                "--out",
                str(tmp_path / "out"),
            ],
            catch_exceptions=False,
        )
