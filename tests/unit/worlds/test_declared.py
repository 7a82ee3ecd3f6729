"""The rules of declared worlds: results, rejections, limits."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.tools import ToolCall, Value
from fumehood.supervised.landlock import landlock_version
from fumehood.worlds.declared import Declared
from fumehood.worlds.declared_python import DeclaredPython
from tests.conformance.worlds.declared_examples import ACCOUNTS, TOOLS, tool


def world(*tools: dict[str, Any], **state: Any) -> Declared:
    return Declared({**(state or ACCOUNTS), "toolset": {"tools": [*(tools or TOOLS)]}})


def call(declared: Declared, name: str, /, **arguments: Any) -> Any:
    """Return the output, or the error code of a rejection."""
    result = declared.call(ToolCall(name, arguments))
    return result.output if isinstance(result, Value) else result.code


def test_an_entry_is_returned_with_its_id() -> None:
    assert call(world(), "read", id="a1")["result"]["id"] == "a1"


def test_a_list_is_filtered_and_a_filter_of_an_omitted_argument_is_ignored() -> None:
    assert call(world(), "find", owner="Bo")["accounts"] == [{"id": "a.2", "balance": 0.5}]
    found = call(world(), "find")
    assert [account["id"] for account in found["accounts"]] == ["a.2", "a1"]
    assert found["notes"] == [{"text": "first"}]


def test_fields_are_derived_and_an_omitted_argument_leaves_its_field_out() -> None:
    declared = world()
    assert call(declared, "order", count=3)["order"] == {
        "id": "o1",
        "count": 3,
        "price": 3.3,
        "label": "Order 0",
        "$key": "$literal",
    }
    assert call(declared, "order", count=1, note={"a": "$count"})["order"]["note"] == {
        "a": "$count"
    }, "an argument is never evaluated"


def test_a_number_of_a_new_entry_that_is_taken_is_skipped() -> None:
    declared = world(orders={"o2": {}})
    assert call(declared, "order", count=1)["order"]["id"] == "o3"


def test_a_text_selects_an_entry_of_a_list_in_one_notation() -> None:
    locked = {"op": "in", "path": "locked", "value": "$slot"}
    requires = [{"condition": {"op": "not", "condition": locked}, "message": "It is locked."}]
    rules = [{"op": "set", "path": "slots.$slot", "value": "taken"}]
    book = {**tool("book", rules, slot="string"), "requires": requires}
    declared = world(book, slots=["", "", ""], locked=["1"])
    for slot in ("1", "01", "+1", " 1", "0_1", "١", "-2"):
        assert call(declared, "book", slot=slot) in {"not_allowed", "not_found", "invalid_value"}
    assert call(declared, "book", slot="2") == {"ok": True}
    assert declared.state["slots"] == ["", "", "taken"]
    last = world(tool("last", [{"op": "get", "path": "slots.-1"}]), slots=["a", "b"])
    assert call(last, "last") == {"result": "b"}


def test_preconditions_are_checked_before_any_rule() -> None:
    assert call(world(), "rename", id="a1", owner="Di")["result"]["owner"] == "Di"
    assert call(world(), "rename", id="a.2", owner="Di") == "insufficient"


def test_a_call_that_fails_in_a_later_rule_changes_nothing() -> None:
    declared = world(
        tool(
            "both",
            [
                {"op": "append", "path": "log", "value": 1},
                {"op": "delete", "path": "items.absent"},
            ],
        ),
        log=[],
        items={},
    )
    assert call(declared, "both") == "not_found"
    assert (declared.state["log"], declared.revision) == ([], 0)


@pytest.mark.parametrize("amount", [1e-30, 0.1, 1.5])
def test_a_transfer_neither_makes_nor_loses_an_amount(amount: float) -> None:
    accounts = {"a": {"balance": 2**60}, "b": {"balance": 0.5}}
    move = {"source": "accounts.a.balance", "target": "accounts.b.balance", "amount": "$amount"}
    declared = world(tool("pay", [{"op": "transfer", **move}], amount="number"), accounts=accounts)
    assert call(declared, "pay", amount=amount) == "invalid_value"
    assert declared.state["accounts"] == accounts


def test_an_argument_is_one_step_of_a_path() -> None:
    assert call(world(), "read", id="a1.balance") == "not_found"
    assert call(world(), "read", id="a.2")["result"]["owner"] == "Bo"


def test_rules_cannot_reach_the_toolset() -> None:
    declared = world(tool("read", [{"op": "get", "path": "toolset.tools"}]), a=1)
    assert call(declared, "read") == "not_found"


def test_items_of_lists_can_be_read_and_removed_by_position() -> None:
    remove = tool("remove", [{"op": "delete", "path": "log.$at"}], at="integer")
    declared = world(remove, log=["a", "b", "c"])
    assert call(declared, "remove", at=-1) == {"ok": True}
    assert declared.state["log"] == ["a", "b"]
    assert call(declared, "remove", at=5) == "not_found"


def test_a_value_can_be_set_under_a_new_key_or_in_place_of_an_item() -> None:
    vote = [{"op": "set", "path": "votes.$who", "value": "$choice"}]
    declared = world(
        tool("vote", vote, who="string", choice="string"),
        tool("first", [{"op": "set", "path": "log.0", "value": 2}]),
        tool("deep", [{"op": "set", "path": "log.0.x", "value": 2}]),
        votes={},
        log=[1],
    )
    assert call(declared, "vote", who="a.b", choice="c") == {"ok": True}
    assert call(declared, "first") == {"ok": True}
    assert (declared.state["votes"], declared.state["log"]) == ({"a.b": "c"}, [2])
    assert call(declared, "deep") == "invalid_value"


def test_arguments_that_the_schema_does_not_list_are_not_allowed_by_default() -> None:
    bare = {**tool("a", [{"op": "get", "path": "n"}]), "parameters": {"type": "object"}}
    free = {**bare, "name": "b", "parameters": {"type": "object", "additionalProperties": True}}
    schemas = [spec.parameters for spec in world(bare, free, n=1).list_tools()]
    assert [schema["additionalProperties"] for schema in schemas] == [False, True]


def test_any_of_without_given_arguments_is_ignored() -> None:
    requirement = {
        "condition": {
            "op": "any_of",
            "conditions": [
                {"op": "equals", "path": "a", "value": "$x"},
                {"op": "not", "condition": {"op": "at_most", "path": "a", "value": "$y"}},
            ],
        },
        "message": "No.",
    }
    check = {**tool("check", [{"op": "get", "path": "a"}], _x="number", _y="number")}
    declared = world({**check, "requires": [requirement]}, a=3)
    assert call(declared, "check") == {"result": 3}
    assert call(declared, "check", x=4) == "not_allowed"
    assert call(declared, "check", x=4, y=2) == {"result": 3}


def test_the_state_and_the_copied_values_have_limits() -> None:
    save = [{"op": "append", "path": "log", "value": ["$text"] * 3}]
    declared = world(tool("save", save, text="string"), log=[])
    assert call(declared, "save", text="x" * 400_000) == "too_large"
    assert call(declared, "save", text="x" * 2_000_000) == "too_large"
    assert declared.state["log"] == []
    assert call(declared, "save", text="x") == {"ok": True}


def test_results_that_are_not_numbers_of_bounded_size_are_rejected() -> None:
    assert call(world(), "total", left=1e15, right=1e15) == "invalid_value"
    assert call(world(), "total", left=True, right=1) == "invalid_value"


SPY = """
import os

def spy(state):
    seen = []
    for attempt in (
        lambda: open("/etc/passwd"),
        lambda: open("/tmp/declared_world", "w"),
        lambda: os.listdir("/"),
        lambda: __import__("socket").create_connection(("127.0.0.1", 1)),
    ):
        try:
            attempt()
            seen.append("done")
        except Exception as error:
            seen.append("stopped")
    return {"seen": seen}

def spin(state):
    while True:
        pass

def lie(state):
    state["n"] = float("nan")

def forge(state):
    for number in range(3, 20):
        try:
            os.write(number, b'{"output": {}, "state": {}}\\n' * 2)
        except OSError:
            pass

def fail(state):
    state["n"] = 2
    raise ValueError("no")

def reject(state):
    raise Rejected("unknown_code", "No.")

absent = 3
"""


def python_world(*names: str) -> Declared:
    tools: list[Any] = [tool(name, None) for name in names]
    return DeclaredPython({"n": 1, "toolset": {"tools": tools, "python": SPY}})


def test_a_function_cannot_read_or_write_files_or_use_the_network() -> None:
    if not landlock_version():
        pytest.skip("this kernel has no Landlock")
    assert call(python_world("spy"), "spy") == {"seen": ["stopped"] * 4}


def test_a_function_that_fails_changes_nothing() -> None:
    declared = python_world("fail", "lie", "reject", "absent", "missing")
    for name in ("fail", "lie", "reject", "absent", "missing"):
        assert call(declared, name) == "raised"
    assert (declared.state["n"], declared.revision) == (1, 0)


def test_a_function_that_writes_its_own_reply_cannot_answer_a_later_call() -> None:
    declared = python_world("forge", "spy")
    call(declared, "forge")
    assert "seen" in call(declared, "spy")


@pytest.mark.slow
def test_a_function_that_never_ends_fails_within_its_limit() -> None:
    assert call(python_world("spin"), "spin") == "no_answer"


@pytest.mark.parametrize(
    "blocked",
    [
        {"op": "in", "path": "blocked", "value": "$id"},
        {"op": "in", "path": "states", "value": "$id"},
        {"op": "map_value_equals", "path": "states", "key": "$id", "value": "blocked"},
        {"op": "equals", "path": "last", "value": "$id"},
    ],
    ids=["list", "object", "key", "value"],
)
@pytest.mark.parametrize("name", [5, "5"])
def test_a_precondition_takes_a_number_and_its_text_for_the_same_id(
    blocked: dict[str, Any], name: Any
) -> None:
    pay = tool("pay", [{"op": "set", "path": "paid.$id", "value": True}])
    pay["parameters"]["properties"]["id"] = {"type": ["integer", "string"]}
    pay["requires"] = [{"condition": {"op": "not", "condition": blocked}, "message": "Blocked."}]
    state = {"blocked": ["5"], "states": {"5": "blocked"}, "last": "5", "paid": {}}
    declared = world(pay, **state)
    assert call(declared, "pay", id=name) == "not_allowed"
    assert call(declared, "pay", id=6) == {"ok": True}
