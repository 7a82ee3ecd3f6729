"""Names that traces and rows contain: readers of stored runs depend on each of them."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.conversation import TurnBegan, TurnEnded
from fumehood.core.episode_spec import DataMode, DataSource, data_source_from_json
from fumehood.core.errors import SpecError
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import (
    AgentCrashed,
    Finished,
    GaveUp,
    Infra,
    InfraKind,
    ModelProblem,
    Outcome,
    OutOfBudget,
    RefusalKind,
    Stopped,
    TimedOut,
    outcome_from_json,
    outcome_name,
    outcome_to_json,
)
from fumehood.core.task import SCRIPT
from fumehood.core.trace import ModelCalled, ModelRefused, ProviderChecked

OUTCOMES: list[tuple[Outcome, dict[str, Any], str]] = [
    (Finished("a"), {"outcome": "finished", "answer": "a"}, "finished"),
    (GaveUp("r"), {"outcome": "gave_up", "reason": "r"}, "gave_up"),
    (
        Stopped(ModelProblem.TURN_LIMIT),
        {"outcome": "stopped", "problem": "turn_limit"},
        "stopped(turn_limit)",
    ),
    (
        OutOfBudget(BudgetKind.STEPS),
        {"outcome": "out_of_budget", "kind": "steps"},
        "out_of_budget(steps)",
    ),
    (TimedOut(7), {"outcome": "timed_out", "wall_ms": 7}, "timed_out"),
    (AgentCrashed("d"), {"outcome": "agent_crashed", "detail": "d"}, "agent_crashed"),
    *(
        (
            Infra(InfraKind(name), "d"),
            {"outcome": "infra", "kind": name, "detail": "d"},
            f"infra({name})",
        )
        for name in ("engine", "service", "counterpart", "models", "task", "orchestrator")
    ),
]


@pytest.mark.parametrize(("outcome", "stored", "name"), OUTCOMES)
def test_an_outcome_is_stored_and_read_again(
    outcome: Outcome, stored: dict[str, Any], name: str
) -> None:
    assert outcome_to_json(outcome) == stored
    assert outcome_from_json(stored) == outcome
    assert outcome_name(outcome) == name


@pytest.mark.parametrize(
    "stored",
    [{}, {"outcome": "won"}, {"outcome": "timed_out", "wall_ms": "7"}, {"outcome": "finished"}],
)
def test_another_object_is_not_an_outcome(stored: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not an outcome"):
        outcome_from_json(stored)


def test_every_kind_of_infra_and_of_refusal_has_its_name() -> None:
    assert {kind.value for kind in InfraKind} == {
        *("engine", "service", "counterpart", "models", "monitor", "task", "orchestrator")
    }
    assert {kind.value for kind in RefusalKind} == {
        *("malformed", "too_large", "too_deep", "ended", "call_id_reused", "too_many_refusals")
    }
    assert SCRIPT == "script"


def test_events_of_models_have_their_names() -> None:
    called = ModelCalled(seat="a", model="m", request="r", status=200, response="s")
    refused = ModelRefused(seat="a", reason="ended")
    checked = ProviderChecked(seat="a", provider="p", model="m", result="answers 200", failed=True)
    assert (
        called.to_json().items()
        >= {
            **{"kind": "model_call", "seat": "a", "model": "m", "request": "r"},
            **{"status": 200, "response": "s"},
        }.items()
    )
    assert refused.to_json() == {
        **{"kind": "model_refused", "seat": "a", "reason": "ended", "needs": {}},
    }
    assert checked.to_json() == {
        **{"kind": "provider_checked", "seat": "a", "provider": "p", "model": "m"},
        **{"result": "answers 200", "failed": True},
    }


def test_events_of_turns_have_their_names() -> None:
    assert TurnBegan("a", 2, "hi").to_json().items() >= {"kind": "turn_began", "seat": "a"}.items()
    assert TurnEnded("a", 1, "x").to_json().items() >= {"kind": "turn_ended", "seat": "a"}.items()


@pytest.mark.parametrize("mode", list(DataMode))
def test_a_data_source_is_stored_and_read_again(mode: DataMode) -> None:
    source = DataSource(mode, {"folder": "f"})
    assert source.to_json() == {"data_mode": mode.value, "settings": {"folder": "f"}}
    assert data_source_from_json(source.to_json()) == source


@pytest.mark.parametrize(
    "stored",
    [None, {}, {"data_mode": "offline"}, {"data_mode": "online", "settings": {}}],
)
def test_another_object_is_not_a_data_source(stored: Any) -> None:
    with pytest.raises(SpecError, match="needs data_mode"):
        data_source_from_json(stored)
