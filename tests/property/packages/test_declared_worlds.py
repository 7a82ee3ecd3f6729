"""Declared worlds: transfers keep sums, and any arguments are answered with a known code."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fumehood.benchmarks.native.declared import DeclaredWorld, mistakes_of
from fumehood.benchmarks.native.suite_file import STARTER
from fumehood.benchmarks.shared.reading import read_records
from fumehood.core.json_values import canonical_json, digest_json
from fumehood.core.tools import Failure, FailureKind, ToolCall, Value
from fumehood.worlds.declared import CODES, Declared
from tests.conformance.worlds.declared_examples import ACCOUNTS, TOOLS
from tests.property.packages.values import VALUES, bounded


def world(state: dict[str, Any]) -> Declared:
    return Declared({**state, "toolset": {"tools": TOOLS}})


(STARTER_FILE,) = read_records(STARTER)
STARTER_WORLD: Any = STARTER_FILE.value["world"]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a JSON value with each of its keys or positions."""
    if isinstance(value, dict | list):
        for key in [*value] if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@bounded
@given(data=st.data())
def test_a_changed_declaration_is_refused_or_answers_calls(data: st.DataObject) -> None:
    declaration = deepcopy(STARTER_WORLD)
    for _ in range(data.draw(st.integers(1, 2))):
        container, key = data.draw(st.sampled_from([*places(declaration)]))
        container[key] = data.draw(VALUES | st.sampled_from(["$bed", "plants", {"$count": "log"}]))
    try:
        valid = DeclaredWorld.model_validate(declaration)
    except ValidationError:
        return
    if list(mistakes_of(valid)) or valid.python is not None:
        return
    declared = Declared({**valid.state, "toolset": valid.toolset()})
    for spec in declared.list_tools():
        for number in (1, 10**9):
            arguments: dict[str, Any] = {"plant_id": "p1", "litres": number, "packets": number}
            assert isinstance(declared.call(ToolCall(spec.name, arguments)), Value | Failure)


MONEY = st.integers(0, 10**9) | st.integers(0, 10**6).map(lambda cents: cents / 100)


@bounded
@given(
    balances=st.tuples(MONEY, MONEY),
    payments=st.lists(st.tuples(st.permutations(["a1", "a2"]), MONEY), max_size=8),
)
def test_transfers_keep_the_sum_and_never_overdraw(
    balances: tuple[float, float], payments: list[tuple[list[str], float]]
) -> None:
    accounts = {
        name: {"balance": sum_, "tags": []}
        for name, sum_ in zip(("a1", "a2"), balances, strict=True)
    }
    declared = world({"accounts": accounts})
    for (source, target), amount in payments:
        before = canonical_json(declared.state)
        arguments: dict[str, Any] = {"source": source, "target": target, "amount": amount}
        result = declared.call(ToolCall("pay", arguments))
        assert isinstance(result, Value) or canonical_json(declared.state) == before
    after: Any = declared.state["accounts"]
    in_cents = [round(account["balance"] * 100) for account in after.values()]
    assert sum(in_cents) == sum(round(balance * 100) for balance in balances)
    assert all(account["balance"] >= 0 for account in after.values())
    assert all(account["balance"] == round(account["balance"], 2) for account in after.values())


@pytest.mark.slow
@bounded
@given(
    calls=st.lists(
        st.tuples(
            st.sampled_from([declared["name"] for declared in TOOLS]),
            st.fixed_dictionaries(
                {},
                optional={
                    name: VALUES | st.sampled_from(["a1", "a.2", "", "-1"])
                    for name in (
                        "id",
                        "owner",
                        "count",
                        "note",
                        "source",
                        "target",
                        "amount",
                        "left",
                    )
                },
            ),
        ),
        max_size=6,
    )
)
def test_any_arguments_are_answered_with_a_code_of_the_closed_set(
    calls: list[tuple[str, dict[str, Any]]],
) -> None:
    declared, again = world(ACCOUNTS), world(ACCOUNTS)
    for name, arguments in calls:
        digest, revision = digest_json(declared.state), declared.revision
        result = declared.call(ToolCall(name, arguments))
        if isinstance(result, Failure):
            assert (result.kind, result.code in CODES) == (FailureKind.WORLD, True)
            assert digest_json(declared.state) == digest
        assert declared.revision > revision or digest_json(declared.state) == digest
        assert again.call(ToolCall(name, arguments)) == result
