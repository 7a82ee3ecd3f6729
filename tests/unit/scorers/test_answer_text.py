"""Values are found in answers as whole words and whole numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.scorers.answer_text import contains_words

NUMBERS = st.integers(0, 10**6).map(str)
WORDS = st.text("abcdef", min_size=1, max_size=5)


def mentions(text: str, value: str) -> bool:
    return contains_words(text, value, in_names=True, has_plural=True)


def contains(text: str, value: str) -> bool:
    return contains_words(text, value, in_names=False, has_plural=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("7.3", "7"), ("7.3", "3"), ("0.77", "77"), ("-77", "77"), ("12,000", "12"), (".5", "5")),
        *(
            ("3.4300", "4300"),
            ("3,400", "400"),
            ("112", "12"),
            ("12:305", "30"),
            ("1e5", "5"),
            ("not_5", "5"),
        ),
        *(
            ("-7.5", "7.5"),
            ("at -7 °c", "7 °c"),
        ),
        *(("a built-in option", "-i"), ("plug-in", "-i"), ("__a____slots____b__", "__slots__")),
        *(("nigeria", "niger"), ("♠♥♦♣", "♦"), ("+-*/", "*"), ("xhttp.server", "http.server")),
    ],
)
def test_a_part_of_a_word_or_number_is_no_value(text: str, value: str) -> None:
    assert not mentions(text, value)
    assert not contains(text, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("it is 7.3.", "7.3"), ("7, 3", "7"), ("-77", "-77"), ("$12", "12"), ("(5)", "5")),
        *(
            ("10,11,12", "11"),
            ("5 %", "5"),
            ("5%", "5"),
            ("iso-8601", "8601"),
            ("12:30", "30"),
            ("3 or 4", "4"),
        ),
        *(("use `-i`", "-i"), ("the attribute __slots__", "__slots__"), ("a ♦", "♦"), ("`*`", "*")),
        *(("nine weeks.", "nine weeks"), ("c++!", "c++"), ("naïve", "naïve"), ("~nine", "nine")),
    ],
)
def test_a_whole_word_or_number_is_a_value(text: str, value: str) -> None:
    assert mentions(text, value)
    assert contains(text, value)


def test_a_criterion_about_documents_also_finds_plurals_and_parts_of_names() -> None:
    for text, value in [("two weeks", "week"), ("json.loads", "json"), ("boxes", "box")]:
        assert mentions(text, value)
        assert not contains(text, value)


@given(st.lists(NUMBERS, max_size=5), NUMBERS)
def test_a_number_is_in_a_list_exactly_if_it_is_an_item(items: list[str], value: str) -> None:
    assert contains(", ".join(items), value) == (value in items)


@given(st.lists(WORDS, max_size=5), WORDS)
def test_a_word_is_in_a_text_exactly_if_it_is_one_of_its_words(
    words: list[str], value: str
) -> None:
    assert contains(" ".join(words), value) == (value in words)
