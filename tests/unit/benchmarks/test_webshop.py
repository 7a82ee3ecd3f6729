"""Tests of WebShop on products and instructions of this project, in the published format."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.benchmarks.webshop.scorer import reward, token_set_ratio
from fumehood.core.errors import InputError
from fumehood.core.evidence import Evidence
from fumehood.core.task import Case
from tests.parts.folders import short_folder
from tests.parts.webshop import instructions, products, write_checkout
from tests.unit.benchmarks.scoring import play


@pytest.fixture(scope="module")
def checkout() -> Iterator[Path]:
    with short_folder() as folder:
        yield write_checkout(Path(folder) / "a checkout")


@pytest.fixture(scope="module")
def cases(checkout: Path) -> tuple[Case, ...]:
    return load_suite(f"webshop:words:{checkout}").cases


def search(keywords: str) -> Move:
    return {"tool_name": "search_action", "args": {"keywords": keywords}}


def clicks(*values: str) -> list[Move]:
    return [{"tool_name": "click_action", "args": {"value": value}} for value in values]


def pages(evidence: Evidence) -> list[Any]:
    return [call.output for call in evidence.calls]


def test_buying_the_goal_has_a_reward_of_1_and_doing_nothing_of_0(cases: tuple[Case, ...]) -> None:
    assert len(cases) == len(products()) >= 20
    for case in cases:
        bought, idle = play(case, case.gold.oracle or ()), play(case, [{"submit": ""}])
        assert (bought.success, bought.metrics["reward"]) == (True, 1.0), case.task.task_id
        assert (idle.success, idle.metrics["reward"], idle.metrics["bought"]) == (False, 0, False)


def test_pages_offer_what_can_be_clicked(cases: tuple[Case, ...]) -> None:
    moves = [
        search("Lamp"),
        *clicks("next >", "< Prev", "B000", "features", "< prev", "blue | matt", "< prev"),
        *clicks("b000", "no such button", "back to search", "search"),
    ]
    shown = pages(play_in_memory(cases[0].task, moves))
    results, second, again, product, features, _, chosen, back, _, same, start, _ = shown
    assert results["clickables"][:2] == ["back to search", "next >"]
    assert "Page 1 (Total results: 8)" in results["observation"]
    assert second["clickables"] == ["back to search", "< prev", "next >"]
    assert again == back == results
    assert product["clickables"][2:6] == ["description", "features", "reviews", "buy now"]
    assert product == chosen == same
    assert "easy clean lamp [SEP] long lasting" in features["observation"]
    assert (start["has_search_bar"], start["clickables"]) == (True, ["search"])


def test_a_purchase_ends_the_task_and_keeps_options_and_price(cases: tuple[Case, ...]) -> None:
    moves = [search("lamp copper"), *clicks("b050", "red | matt", "buy now", "b050")]
    evidence = play_in_memory(cases[0].task, moves)
    assert evidence.calls[-1].failure is not None
    assert evidence.calls[-1].failure.code == "over"
    bought: Any = evidence.final_state["bought"]
    assert (bought["asin"], bought["options"]) == ("B050", {"color": "red | matt"})
    assert bought["price"] == 100.0


def test_a_wrong_product_has_a_part_of_the_reward(cases: tuple[Case, ...]) -> None:
    goal: Any = cases[0].gold.criteria[0]
    other = next(product for product in products() if product["query"].strip() != goal["query"])
    moves = [search(other["name"]), *clicks(other["asin"].lower(), "buy now")]
    score = play(cases[0], moves)
    assert score.success is False
    assert 0 < float(str(score.metrics["reward"])) < 1


BOUGHT: dict[str, Any] = {
    **{"asin": "A", "name": "Steel Kettle", "description": "", "bullets": ["easy clean"]},
    **{"query": "kettles", "product_category": "a › b", "attributes": [], "price": 10.0},
    "options": {"color": "dark blue"},
}
GOAL: dict[str, Any] = {
    **{"query": "kettles", "product_category": "a › c", "title_scores": {"A": 0.5}},
    **{"attributes": ["easy clean"], "options": ["navy blue"], "price_upper": 10.0},
    "colors": ["blue"],
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, 1.0),
        ({"price_upper": 9.0}, 2 / 3),
        ({"attributes": ["easy clean", "red"]}, 3 / 4),
        ({"options": ["large"]}, 2 / 3),
        ({"query": "x", "title_scores": {"A": 0.2}}, 0.5),
        ({"title_scores": {"A": 0.05}}, 0.1),
        ({"title_scores": {}}, 0.0),
    ],
)
def test_the_reward_is_that_of_the_original(changed: dict[str, Any], expected: float) -> None:
    assert reward(BOUGHT, {**GOAL, **changed})["reward"] == pytest.approx(expected)


@given(st.text(max_size=20), st.text(max_size=20))
def test_similarity_is_symmetric_and_full_for_equal_words(left: str, right: str) -> None:
    assert 0 <= token_set_ratio(left, right) == token_set_ratio(right, left) <= 100


def test_similarity_has_the_values_of_thefuzz() -> None:
    assert token_set_ratio("water-proof", "water resistant") == 62
    assert token_set_ratio("high quality", "quality") == 100
    assert token_set_ratio("5.5 wide", "é 5 wide (x)") == 100
    assert token_set_ratio("", "red") == 0


def test_splits_are_ranges_of_the_shuffled_goals(checkout: Path, cases: tuple[Case, ...]) -> None:
    every = load_suite(f"webshop:words:{checkout}:all").cases
    assert [case.task.task_id for case in every] == [case.task.task_id for case in cases]
    with pytest.raises(InputError, match="has 24 goals, and none for dev"):
        load_suite(f"webshop:words:{checkout}:dev")


def test_without_spacy_the_default_is_refused(checkout: Path) -> None:
    if find_spec("spacy") is not None:
        pytest.skip("spaCy is installed")
    with pytest.raises(InputError, match=r"spaCy or its model is missing.*words:CHECKOUT"):
        load_suite(f"webshop:{checkout}")


WRONG = {**instructions()["B000"][0], "instruction_options": {"a": "b"}}


@pytest.mark.parametrize(
    ("replaced", "complaint"),
    [
        ({"items_shuffle_1000": [{"asin": "B1"}]}, "KeyError: 'small_description'"),
        ({"items_ins_v2_1000": []}, "AttributeError"),
        ({"items_human_ins": []}, "must be an object by ASIN"),
        ({"items_human_ins": {"B000": [WRONG]}}, r"ins.json\[0\]: instruction_options"),
        ({"items_human_ins": {}}, "has 0 goals"),
    ],
)
def test_wrong_data_is_one_line(tmp_path: Path, replaced: dict[str, Any], complaint: str) -> None:
    checkout = write_checkout(tmp_path / "checkout", **replaced)
    with pytest.raises(InputError, match=complaint) as refusal:
        load_suite(f"webshop:words:{checkout}")
    assert "\n" not in str(refusal.value)


def test_missing_files_are_refused(tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path / "checkout")
    (checkout / "web_agent_site" / "engine" / "normalize.py").write_text("COLORS = 1\n")
    with pytest.raises(InputError, match="does not define COLOR_SET"):
        load_suite(f"webshop:words:{checkout}")
    (checkout / "data" / "items_ins_v2_1000.json").unlink()
    with pytest.raises(InputError, match=r"COLOR_SET|needs items_shuffle_1000\.json"):
        load_suite(f"webshop:words:{checkout}")
