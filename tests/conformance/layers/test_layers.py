"""The rules that every layer and every fault family follows."""

from __future__ import annotations

import pytest

from fumehood.benchmarks.native.faults import FaultRecord
from fumehood.core.tools import Value
from fumehood.layers.faults.registry import FAMILIES
from fumehood.testing.layers import *  # noqa: F403
from fumehood.testing.layers import CALL, Inside, MakeLayer, fires_and_names_its_rule
from tests.conformance.layers import makers
from tests.conformance.layers.makers import ACTING, EVERY_FAMILY, PASSING


@pytest.fixture(params=[*PASSING, *ACTING])  # type: ignore[no-redef]
def make_layer(request: pytest.FixtureRequest) -> MakeLayer:
    """Every layer, idle and active."""
    return {**PASSING, **ACTING}[request.param]


@pytest.mark.parametrize("name", PASSING)
def test_an_idle_layer_forwards_the_call_and_returns_the_result(name: str) -> None:
    inside = Inside(Value({"a": [1]}))
    assert PASSING[name]().around(CALL, inside) == inside.result
    assert [(call.tool_name, call.arguments) for call in inside.seen] == [
        (CALL.tool_name, CALL.arguments)
    ]


@pytest.mark.parametrize("label", EVERY_FAMILY)
def test_a_fired_fault_names_its_rule(label: str) -> None:
    layer = ACTING[f"firing {label}"]()
    assert fires_and_names_its_rule(EVERY_FAMILY[label], layer, makers.fault_rule(label, {}))


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_task_file_accepts_the_example_payload_of_a_family(name: str) -> None:
    FaultRecord.model_validate({"family": name, "payload": FAMILIES.load(name).example})
