"""The report page in a browser: rendering, filters, links, and no network requests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.run_summary import agent_table
from fumehood.orchestrator.instructions import Instructions
from fumehood.records.run_reader import Accept, open_run
from fumehood.records.trust import Trust
from fumehood.report.summary import summarize
from tests.browser.conftest import Watched
from tests.browser.reports import report_of
from tests.parts.memory_runs import builtin, play_run
from tests.unit.report.runs import part_of_sample

pytestmark = pytest.mark.slow

AGENTS = ("policy_aware", "instruction_parser", "schema_repair")
TASK = "crud_gold_after_silence"
EPISODES = 40 * 2 * len(AGENTS)


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    players = {name: builtin(name) for name in AGENTS}
    run = play_run(folder / "run", load_suite("sample"), players, trials=2)
    return report_of(run, out=folder / "report")


def test_the_page_renders_without_network_requests(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    page = watched.page
    expect(page.get_by_role("heading", level=1)).to_have_text("sample")
    expect(page.locator("#agents .agent")).to_have_count(len(AGENTS))
    expect(page.locator("#agents .headline").first).to_have_text(re.compile(r"^\d+\.\d%$"))
    expect(page.locator("#count")).to_have_text(f"{EPISODES} episodes")
    assert page.locator("figure .picture.wide svg").count() >= 6
    assert watched.requests == [page_path.as_uri()]
    assert watched.complaints == []


def test_the_head_states_when_and_how_and_each_score_is_between_baselines(
    watched: Watched, page_path: Path
) -> None:
    watched.open(page_path)
    head = watched.page.locator("header.top")
    expect(head).to_contain_text(re.compile(r"started \d{4}-\d\d-\d\d \d\d:\d\d UTC"))
    expect(head).to_contain_text("seed 0")
    expect(head).to_contain_text("engine memory")
    for card in watched.page.locator("#agents .agent").all():
        expect(card).to_contain_text("no-op 0.0%, oracle 100.0%")
    metrics = watched.page.locator("#metrics table").first
    assert metrics.locator("thead th").all_inner_texts()[2:5] == ["Success", "No-op", "Oracle"]


def test_recovered_is_the_same_rate_in_the_page_and_the_terminal(
    watched: Watched, page_path: Path
) -> None:
    rows = open_run(page_path.parent.parent / "run", Trust.of_user(), Accept.UNVERIFIED).rows()
    shown = agent_table(summarize(rows, AGENTS))
    watched.open(page_path)
    table = watched.page.locator("#metrics table").first
    column = table.locator("thead th").all_inner_texts().index("Recovered")
    for name, row in zip(AGENTS, table.locator("tbody tr").all(), strict=True):
        terminal = dict(zip(shown.header, shown.rows[AGENTS.index(name)], strict=True))
        cell = row.locator("th, td").nth(column)
        expect(cell).to_have_text(re.compile(f"^{re.escape(terminal['recovered'])}"))


def test_the_policy_forbids_other_scripts_and_requests(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    ran = watched.page.evaluate(
        """() => {
            window.ran = false;
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            const image = "<img src=x onerror='window.ran = true'>";
            document.body.insertAdjacentHTML("beforeend", image);
            return new Promise((done) => setTimeout(() => done(window.ran), 200));
        }"""
    )
    assert ran is False
    assert any("Content Security Policy" in complaint for complaint in watched.complaints)
    fetched = watched.page.evaluate(
        "fetch('https://example.org/').then(() => 'sent', () => 'refused')"
    )
    assert fetched == "refused"


def test_filters_narrow_the_list_and_change_the_address(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    page = watched.page
    page.get_by_label("every agent").select_option("schema_repair")
    expect(page.locator("#count")).to_have_text(f"80 of {EPISODES} episodes")
    page.get_by_label("every fault").select_option("timeout")
    page.get_by_label("search episodes").fill("gold")
    expect(page.locator("#list tbody tr")).to_have_count(2)
    assert page.url.endswith("#episodes?text=gold&agent=schema_repair&fault=timeout")
    page.reload()
    expect(page.locator("#list tbody tr")).to_have_count(2)
    page.get_by_role("button", name="clear").click()
    expect(page.locator("#count")).to_have_text(f"{EPISODES} episodes")


def test_columns_sort_in_both_directions_and_the_list_has_pages(
    watched: Watched, page_path: Path
) -> None:
    watched.open(page_path)
    page = watched.page
    calls = page.locator("#list").get_by_role("columnheader", name="Calls")
    calls.get_by_role("button").click()
    fewest = page.locator("#list tbody tr").first.locator("td").nth(8)
    expect(fewest).to_have_text("0")
    calls.get_by_role("button").click()
    expect(calls).to_have_attribute("aria-sort", "descending")
    expect(fewest).not_to_have_text("0")
    page.get_by_role("button", name="next").click()
    expect(page.locator("#pager")).to_contain_text("51 to 100 of 240")


def test_a_link_opens_an_episode_and_the_back_button_returns(
    watched: Watched, page_path: Path
) -> None:
    watched.open(page_path)
    page = watched.page
    page.get_by_label("search episodes").fill(TASK)
    page.locator("#list tbody a").first.click()
    episode = page.locator("#episode")
    expect(episode.get_by_role("heading", level=1)).to_have_text(TASK)
    expect(page.locator("#overview")).to_be_hidden()
    expect(episode.locator("blockquote")).to_contain_text("its tier is gold")
    page.go_back()
    expect(episode).to_be_hidden()
    expect(page.locator("#list tbody tr")).to_have_count(6)


def test_an_episode_shows_calls_faults_budgets_changes_and_checks(
    watched: Watched, page_path: Path
) -> None:
    watched.open(page_path, f"#/instruction_parser/{TASK}/0")
    episode = watched.page.locator("#episode")
    expect(episode.locator(".call")).to_have_count(2)
    expect(episode.locator(".call").nth(0)).to_contain_text("failure injected by a fault")
    expect(episode.locator(".call").nth(0)).to_contain_text("5 calls, 1 retry left")
    expect(episode.locator(".call").nth(1).locator(".changes")).to_contain_text('"silver" → "gold"')
    expect(episode.locator(".timeline rect.cell")).to_have_count(2)
    expect(episode).to_contain_text("fired 1×")
    expect(episode).to_contain_text("check_0:equals")
    assert watched.complaints == []


def test_a_fault_is_shown_as_fired_or_not_reached(watched: Watched, page_path: Path) -> None:
    watched.open(page_path, "#/policy_aware/files_release_version/0")
    expect(watched.page.locator("#episode")).to_contain_text(re.compile("fired|not reached"))


def test_an_episode_links_to_the_other_episodes_of_its_task(
    watched: Watched, page_path: Path
) -> None:
    watched.open(page_path, f"#/instruction_parser/{TASK}/0")
    others = watched.page.get_by_role("navigation", name="Episodes of this task").get_by_role(
        "link"
    )
    expect(others).to_have_count(2 * len(AGENTS))
    others.nth(0).click()
    expect(watched.page.locator("#episode p:has(.badge)")).to_contain_text("policy_aware")


def test_a_failure_label_links_to_its_episodes(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    page = watched.page
    link = page.locator("#failures .chip").filter(has_text="schema_repair: Out of budget").first
    number = int(str(link.text_content()).rsplit(maxsplit=1)[-1])
    link.click()
    expect(page.locator("#count")).to_have_text(f"{number} of {EPISODES} episodes")


def test_a_flipped_task_links_to_both_episodes(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    page = watched.page
    page.locator("#flips details").nth(1).locator("summary").click()
    page.locator("#flips .flips a", has_text="second").first.click()
    expect(page.locator("#episode .badge")).to_be_visible()


def test_an_episode_shows_the_instruction_that_the_agent_received(
    watched: Watched, tmp_path: Path
) -> None:
    suite, instructions = part_of_sample(1), Instructions(prompt_variants=2)
    noop = {"noop": builtin("noop")}
    run = play_run(tmp_path / "run", suite, noop, trials=2, instructions=instructions)
    page_path = report_of(run, out=tmp_path / "report")
    (case,) = suite.cases
    texts = [instructions.of(case, trial)[0].instruction for trial in range(2)]
    assert len({*texts, case.task.seats[0].instruction}) > 1
    for trial, text in enumerate(texts):
        watched.open(page_path, f"#/noop/{case.task.task_id}/{trial}")
        expect(watched.page.locator(".chip[aria-current]")).to_contain_text(str(trial))
        expect(watched.page.locator("#episode blockquote").first).to_have_text(text)


def test_a_mark_in_a_picture_has_a_tooltip(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    page = watched.page
    page.locator("#success .wide [aria-roledescription=point]").first.hover(force=True)
    expect(page.locator("#hint")).to_have_text(re.compile(r"policy_aware, clean: \d+\.\d%"))


@pytest.mark.parametrize("width", [2560, 1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_screen_and_has_readable_contrast(
    browser: Browser, page_path: Path, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    for address in ("", f"#/instruction_parser/{TASK}/0"):
        page.goto("about:blank")
        page.goto(f"{page_path.as_uri()}{address}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = "narrow" if width < 790 else "wide"
    page.goto("about:blank")
    page.goto(page_path.as_uri())
    assert page.locator(f".picture.{shown}").first.is_visible()
    for ink, paper in (
        ("--ink", "--page"),
        ("--soft", "--page"),
        ("--ink", "--card"),
        ("--link", "--page"),
    ):
        assert _contrast(page.evaluate(_COLOUR, ink), page.evaluate(_COLOUR, paper)) >= 4.5, (
            ink,
            paper,
        )
    context.close()


def test_the_page_works_with_the_keyboard(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    page = watched.page
    page.keyboard.press("/")
    page.keyboard.type(f"{TASK} schema_repair")
    expect(page.locator("#list tbody tr")).to_have_count(2)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    episode = page.locator("#episode")
    expect(episode.locator("h1")).to_have_text(TASK)
    expect(episode.locator(".chip[aria-current]")).to_contain_text("0")
    page.keyboard.press("j")
    expect(episode.locator(".chip[aria-current]")).to_contain_text("1")
    page.keyboard.press("k")
    expect(episode.locator(".chip[aria-current]")).to_contain_text("0")
    page.keyboard.press("u")
    expect(episode).to_be_hidden()
    expect(page.locator("#list tbody tr")).to_have_count(2)
    assert watched.complaints == []


@pytest.mark.parametrize(
    ("words", "least"), [("gold SCHEMA_repair", 2), ("timeout instruction_parser failure", 1)]
)
def test_every_word_of_a_search_must_occur_in_the_episode(
    watched: Watched, page_path: Path, words: str, least: int
) -> None:
    watched.open(page_path)
    watched.page.get_by_label("search episodes").fill(words)
    lines = watched.page.locator("#list tbody tr")
    expect(lines.nth(least - 1)).to_be_visible()
    for line in lines.all():
        assert line.locator("td").nth(2).inner_text() == words.lower().split()[1]


def test_a_printed_page_is_light_and_shows_all_numbers(browser: Browser, page_path: Path) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(page_path.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate(_COLOUR, "--page") == [255, 255, 255]
    expect(page.locator("#success details table").first).to_be_visible()
    expect(page.locator("nav").first).to_be_hidden()
    context.close()


def test_pictures_and_text_have_one_font(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    fonts = watched.page.evaluate(
        """["body", ".picture.wide svg text"].map((selector) =>
            getComputedStyle(document.querySelector(selector)).fontFamily.replaceAll('"', "'"))"""
    )
    assert fonts[0] == fonts[1]


def test_flips_are_grouped_by_task(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    page = watched.page
    lists = page.locator("#flips details", has=page.locator(".flips"))
    lists.first.locator("summary").click()
    expect(lists.first.locator("summary")).to_contain_text(
        re.compile(r"\d+ flipped tasks, \d+ trials")
    )
    items = lists.first.locator("li")
    tasks = [text.split()[1] for text in items.all_inner_texts()]
    assert len(tasks) == len(set(tasks))
    expect(items.first.locator(".pair")).to_have_count(2)


def test_resources_have_one_row_for_each_agent(watched: Watched, page_path: Path) -> None:
    watched.open(page_path)
    table = watched.page.locator("#resources table")
    assert table.locator("tbody th").all_inner_texts() == list(AGENTS)
    titles = table.locator("thead th").all_inner_texts()
    assert {"Steps", "Calls", "Wall time"} <= set(titles)
    assert "Tokens" not in titles


_COLOUR = """(name) => {
    const probe = document.createElement("i");
    document.body.append(probe);
    probe.style.color = `var(${name})`;
    const [red, green, blue] = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
    probe.remove();
    return [red, green, blue];
}"""


def _contrast(one: list[int], other: list[int]) -> float:
    """Return the contrast of two colours (Web Content Accessibility Guidelines 2.1, 1.4.3)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: list[int]) -> float:
    parts = [value / 255 for value in colour]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
