"""Untrusted text stays text: on the page, in pictures, in every file."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.ledger import Budget
from fumehood.core.task import Case, Suite, Task
from fumehood_agent.in_process import InProcessSession
from tests.browser.conftest import Watched
from tests.browser.reports import report_of
from tests.parts.memory_runs import play_run

SCRIPT = "</script><script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"
ANSI = "\x1b[31mred\x1b[0m\x07"
BIDI = "pay \u202etxt.exe\u202c \u2066now\u2069 \u200b"
COMMENT = "<!-- <script> ]]> &lt;b&gt; \u2028 ${1} {{ 7 * 7 }} {% raw %}"
FORMULA = "=HYPERLINK(1)"
HOSTILE = f"{SCRIPT} {ANSI} {BIDI} {COMMENT}"
AGENT = "a<b>=x"


def _player(seat: InProcessSession) -> None:
    seat.call(f"get_account{HOSTILE}", {"id": HOSTILE, HOSTILE: [HOSTILE]})
    seat.call("update_account", {"id": "a1", "patch": {HOSTILE: HOSTILE, "name": HOSTILE}})
    seat.submit(HOSTILE)


def _case(name: str) -> Case:
    task = Task(
        task_id=name,
        world="crud",
        harness_mode="native",
        initial_state={"accounts": {"a1": {"id": "a1", "note": HOSTILE}}},
        fault_plan=(),
        seed=1,
        seats=(SeatSpec(instruction=HOSTILE, budget=Budget(steps=9, calls=9, retries=9)),),
        tags={HOSTILE: HOSTILE},
    )
    return Case(task, Gold("native", ({"op": "equals", "path": HOSTILE, "value": HOSTILE},), True))


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    suite = Suite(HOSTILE, (_case(HOSTILE), _case(FORMULA)))
    run = play_run(
        folder / "run", suite, {AGENT: _player, "other": lambda seat: seat.give_up(HOSTILE)}
    )
    return report_of(run, out=folder / "report")


@pytest.mark.slow
def test_untrusted_text_is_shown_and_never_executed(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    page = watched.page
    expect(page.locator("#list tbody tr")).to_have_count(4)
    page.locator("#list tbody a").first.click()
    episode = page.locator("#episode")
    expect(episode.get_by_role("heading", level=1)).to_contain_text("window.ran = 1")
    expect(episode.locator("blockquote")).to_contain_text(SCRIPT)
    expect(episode.locator("blockquote")).to_contain_text("{{ 7 * 7 }}")
    expect(episode.locator(".call").first).to_contain_text(SCRIPT)
    assert page.evaluate("window.ran") is None
    assert page.locator("img, iframe, object, embed, base, form[action]").count() == 0
    assert watched.requests == [page_path.as_uri()]
    assert watched.complaints == []


@pytest.mark.slow
def test_control_characters_are_escaped(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    page = watched.page
    page.locator("#list tbody a").first.click()
    expect(page.locator("#episode blockquote")).to_contain_text("\\u202etxt.exe")
    expect(page.locator("#episode blockquote")).to_contain_text("\\x1b[31mred")
    text = page.evaluate("document.documentElement.textContent")
    assert [
        hex(ord(character))
        for character in "\x1b\x07\u202e\u202c\u2066\u2069\u200b"
        if character in text
    ] == []


@pytest.mark.slow
def test_an_address_with_special_characters_opens_its_episode(
    watched: Watched, page_path: Path
) -> None:
    watched.open(page_path)
    page = watched.page
    page.locator("#list tbody a").first.click()
    page.reload()
    expect(page.locator("#episode")).to_contain_text(AGENT)


@pytest.mark.slow
def test_unknown_addresses_show_the_overview(watched: Watched, page_path: Path) -> None:
    for address in (
        "#/no/such/0",
        "#/%E0%A4%A/x/0",
        "#<img src=x>",
        "#episodes?agent=unknown",
        "#/",
    ):
        watched.open(page_path, address)
        expect(watched.page.locator("#overview")).to_be_visible()
    assert watched.complaints == []


def test_pictures_contain_only_shapes_and_text(page_path: Path) -> None:
    for path in (page_path.parent / "figures").glob("*.svg"):
        for element in ElementTree.parse(path).iter():
            assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in {
                "svg",
                "g",
                "path",
                "line",
                "text",
                "rect",
            }
            assert not any(
                name.startswith("on") or name in ("style", "href") for name in element.attrib
            )


def test_markdown_and_csv_escape_untrusted_text(page_path: Path) -> None:
    markdown = (page_path.parent / "report.md").read_text(encoding="utf-8")
    assert "<script>" not in markdown.replace("\\<script\\>", "")
    with (page_path.parent / "tables" / "episodes.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["task"] for row in rows} == {
        f"'{FORMULA}",
        *(row["task"] for row in rows if "window.ran" in row["task"]),
    }
    for path in page_path.parent.rglob("*.csv"):
        assert not set("\x1b\u202e\u200b") & set(path.read_text(encoding="utf-8"))
