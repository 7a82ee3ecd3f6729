"""The enums of the core, the wire and the SDK are equal."""

from __future__ import annotations

from fumehood.benchmarks.native.records import BudgetRecord
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import RefusalKind
from fumehood_agent._proto.v1 import tool_pb2
from fumehood_agent.errors import RefusalKind as RefusalKindOfTheSdk


def _kinds_on_the_wire() -> dict[str, int]:
    values = tool_pb2.DESCRIPTOR.enum_types_by_name["RefusalKind"].values
    kinds = {value.name.removeprefix("REFUSAL_KIND_"): value.number for value in values}
    assert kinds.pop("UNSPECIFIED") == 0
    return kinds


def test_the_wire_has_every_kind_of_refusal_and_no_other() -> None:
    assert _kinds_on_the_wire().keys() == {kind.name for kind in RefusalKind}


def test_the_sdk_has_every_kind_of_refusal_under_its_number() -> None:
    assert _kinds_on_the_wire() == {kind.name: kind.value for kind in RefusalKindOfTheSdk}


def test_native_records_limit_only_budget_kinds() -> None:
    assert set(BudgetRecord.model_fields) <= {kind.value for kind in BudgetKind}
