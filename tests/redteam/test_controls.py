"""Without its protection each attack succeeds, and the probe reports it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fumehood.redteam.attacks import ATTACKS, ONLY_IN_WORKSPACES, Attack, Boundary, Result, Verdict
from fumehood.redteam.controls.declared import (
    Control,
    ControlOutcome,
    ControlResult,
    Setting,
)
from fumehood.redteam.controls.runs import ControlRuns

ALWAYS = {"other-boxes", "egress", "dns", "json-bombs", "endless-line", "terminal"}
"""One for most settings; ``make redteam`` runs them all."""


@pytest.fixture(scope="module")
def controls() -> Iterator[ControlRuns]:
    with ControlRuns() as runs:
        yield runs


def test_every_attack_declares_a_control() -> None:
    assert all(attack.control for attack in ATTACKS)


def test_every_setting_is_used() -> None:
    assert {attack.control.setting for attack in ATTACKS if attack.control} == set(Setting)


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(
            attack,
            id=attack.name,
            marks=() if attack.name in ALWAYS else (pytest.mark.every_attack,),
        )
        for attack in (*ATTACKS, *ONLY_IN_WORKSPACES)
    ],
)
def test_an_attack_succeeds_without_its_protection(controls: ControlRuns, attack: Attack) -> None:
    result = controls.run(attack)
    if result.outcome is ControlOutcome.NOT_POSSIBLE:
        pytest.skip(result.detail)
    assert result.outcome is ControlOutcome.SUCCEEDED, result.detail


def _verdict(result: Result) -> Verdict:
    attack = Attack("one", "one.py", Boundary.BOX, "something", "do something")
    return Verdict(attack, result, "", 1, 1)


@pytest.mark.parametrize("outcome", [ControlOutcome.FAILED, ControlOutcome.NOT_POSSIBLE])
def test_an_attack_without_a_successful_control_does_not_count_as_stopped(
    outcome: ControlOutcome,
) -> None:
    control = ControlResult(Setting.ROOT, outcome, "needs root")
    verdict = _verdict(Result.STOPPED).with_control(control)
    assert verdict.result is Result.NOT_SHOWN
    assert verdict.detail == f"its control {outcome.value}: needs root"


def test_an_attack_that_succeeds_needs_no_control() -> None:
    control = ControlResult(Setting.ROOT, ControlOutcome.FAILED, "")
    assert _verdict(Result.NOT_STOPPED).with_control(control).result is Result.NOT_STOPPED


def test_a_control_must_show_the_declared_breach() -> None:
    control = Control(Setting.NO_BOX, "a file was read|a file was written")
    assert control.shown_in("nothing; a file was written on the host") == (
        "a file was written on the host"
    )
    assert not control.shown_in("a socket was reached")
