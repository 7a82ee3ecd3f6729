"""Edge cases of the four worlds' answers (docs/reference/toolmisuse.md, Worlds)."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.tools import Failure, ToolCall, Value
from fumehood.worlds.crud import Crud
from fumehood.worlds.files import Files
from fumehood.worlds.retrieval import Retrieval
from fumehood.worlds.scheduling import Scheduling, is_valid_cron


def ids_found(docs: Any, query: str, top_k: int) -> list[Any]:
    answer = Retrieval({"docs": docs}).call(
        ToolCall("search_docs", {"query": query, "top_k": top_k})
    )
    assert isinstance(answer, Value)
    results = answer.output["results"]
    assert isinstance(results, list)
    return [result["id"] for result in results if isinstance(result, dict)]


def test_equally_good_documents_are_ordered_by_id() -> None:
    docs = [
        {"id": name, "title": title, "text": "pump"}
        for name, title in (("b", "A"), ("a", "Z"), ("c", ""))
    ]
    assert ids_found(docs, "pump", 3) == ["a", "b", "c"]
    assert ids_found([*docs, {"text": "pump"}], "pump", 2) == [None, "a"]


def test_words_are_counted_at_any_position_and_once_per_query_word() -> None:
    docs = [{"id": "a", "text": "aaaa"}, {"id": "b", "text": "a aa"}, {"id": "c", "title": "AA"}]
    assert ids_found(docs, "aa", 9) == ["a", "b", "c"]
    assert ids_found(docs, " A \t a ", 9) == ["a", "b", "c"]


def test_misses_are_dropped_after_the_cut() -> None:
    docs = [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]
    assert ids_found(docs, "y", 1) == ["b"]
    assert ids_found(docs, "z", 2) == []
    assert ids_found(docs, "", 2) == []
    assert ids_found(docs, "y", 0) == ["b"]


@pytest.mark.parametrize(
    ("path", "entries"),
    [
        ("/a", ["b", "c.txt"]),
        ("/a///", ["b", "c.txt"]),
        ("", ["", "rel"]),
        ("/", ["", "rel"]),
        ("/a/b", ["d.txt"]),
        ("/a/c.txt", []),
        ("/nowhere", []),
        ("re", []),
    ],
)
def test_folders_are_common_prefixes_of_paths(path: str, entries: list[str]) -> None:
    files = Files({"files": {"/a/b/d.txt": "", "/a/c.txt": "", "rel/x": ""}})
    assert files.call(ToolCall("list_dir", {"path": path})) == Value(
        {"path": path, "entries": [*entries]}
    )


def test_bytes_written_counts_characters() -> None:
    answer = Files({}).call(ToolCall("write_file", {"path": "/a", "content": "é😀"}))
    assert answer == Value({"path": "/a", "bytes_written": 2})


@pytest.mark.parametrize(
    ("cron", "valid"),
    [
        ("* * * * *", True),
        ("0 59 00 059 *", True),
        (" 1\t2\n3 4 5 ", True),
        ("٣ * * * *", True),
        ("60 * * * *", False),
        ("-1 * * * *", False),
        ("+1 * * * *", False),
        ("*/5 * * * *", False),
        ("1-5 * * * *", False),
        ("² * * * *", False),
        ("* * * *", False),
        ("* * * * * *", False),
        ("", False),
        ("1.0 * * * *", False),
        ("0" * 5000 + "9 * * * *", True),
    ],
)
def test_five_fields_from_0_to_59(cron: str, valid: bool) -> None:
    assert is_valid_cron(cron) is valid


def test_the_cron_expression_is_checked_before_the_name_and_jobs_are_sorted() -> None:
    world = Scheduling({"jobs": [{"name": "m", "cron": "* * * * *", "command": ""}]})

    def create(name: str, cron: str) -> str:
        result = world.call(ToolCall("create_job", {"name": name, "cron": cron, "command": "c"}))
        return result.code if isinstance(result, Failure) else "ok"

    assert [create("m", "?"), create("m", "* * * * *"), create("a", "1 1 1 1 1")] == [
        "invalid_cron",
        "already_exists",
        "ok",
    ]
    jobs = world.state["jobs"]
    assert isinstance(jobs, list)
    assert [job["name"] for job in jobs if isinstance(job, dict)] == ["a", "m"]


@pytest.mark.parametrize("given", [None, 0, False, "", [], {}])
def test_a_falsy_id_is_replaced_by_a_generated_one(given: Any) -> None:
    world = Crud({"accounts": {"x": {}}})
    answer = world.call(ToolCall("create_account", {"fields": {"id": given, "status": "odd"}}))
    assert answer == Value({"account": {"id": "acct_2", "status": "odd"}})


def test_a_numeric_id_is_stored_as_text_but_cannot_be_addressed_by_it() -> None:
    world = Crud({"accounts": {}})
    for given, expected in (
        (7, "ok"),
        (7.0, "already_exists"),
        (True, "ok"),
        (1, "already_exists"),
        ("7", "already_exists"),
        ("true", "already_exists"),
        ("True", "ok"),
    ):
        result = world.call(ToolCall("create_account", {"fields": {"id": given}}))
        assert (result.code if isinstance(result, Failure) else "ok") == expected
    accounts = world.state["accounts"]
    assert isinstance(accounts, dict)
    assert set(accounts) == {"7", "true", "True"}


def test_a_numeric_id_cannot_hide_an_account_of_the_same_text() -> None:
    world = Crud({"accounts": {"34": {"status": "active"}}})
    world.call(ToolCall("close_account", {"id": "34", "reason": "x"}))
    result = world.call(ToolCall("create_account", {"fields": {"id": 34, "status": "active"}}))
    assert isinstance(result, Failure)
    assert result.code == "already_exists"
    assert world.state["accounts"] == {"34": {"status": "closed", "closed_reason": "x"}}


def test_an_account_may_change_its_id_and_is_still_found_under_the_old_one() -> None:
    world = Crud({"accounts": {"a": {"id": "a"}}})
    world.call(ToolCall("update_account", {"id": "a", "patch": {"id": "b"}}))
    assert world.call(ToolCall("get_account", {"id": "a"})) == Value({"account": {"id": "b"}})
    assert isinstance(world.call(ToolCall("get_account", {"id": "b"})), Failure)


def test_an_account_that_is_null_exists_and_is_not_found() -> None:
    world = Crud({"accounts": {"a": None}})
    codes = [
        result.code
        for result in (
            world.call(ToolCall("get_account", {"id": "a"})),
            world.call(ToolCall("close_account", {"id": "a", "reason": ""})),
            world.call(ToolCall("create_account", {"fields": {"id": "a"}})),
        )
        if isinstance(result, Failure)
    ]
    assert codes == ["not_found", "not_found", "already_exists"]
