"""A monitor whose rules are data: conditions over the step, in the language of criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from fumehood.core.conditions import AS_IDS, CONDITIONS, Condition, holds, inner_conditions
from fumehood.core.errors import SpecError, nearest
from fumehood.core.json_values import JsonObject, as_object
from fumehood.core.policy import PolicyChecker, Violation, observe, rule_paths, state_paths
from fumehood.core.score import SEVERITIES
from fumehood.monitors.monitor import (
    ALLOWED,
    Action,
    Decision,
    Facts,
    Stage,
    Step,
    StepKind,
    decision_from_json,
)

SEVERITY = (Action.ALLOW, Action.MODIFY, Action.ESCALATE, Action.REFUSE, Action.END)
"""The last action of the matching rules in this order counts."""
_FIELDS = frozenset(
    {"name", "stage", "kind", "tool", "seat", "conditions", "since", "times"}
    | Decision.__dataclass_fields__.keys()
)
_OF_A_FILE = frozenset({"name", "rules", "policy", "action"})
_POLICY_LISTS = ("rules", "irreversible", "canaries")
"""Parts of a policy that a monitor can evaluate: gates and limits belong to the world."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRule:
    """One rule: if a step matches, its decision counts."""

    name: str
    stage: Stage
    kind: StepKind
    tool: str
    """Name or pattern, such as ``transfer_*``."""
    seat: str
    """Name or pattern."""
    conditions: tuple[Condition, ...]
    """All must hold for the step as a JSON object, such as ``arguments.amount``."""
    since: str
    """A rule that must have matched an earlier step of the episode; empty for none."""
    times: int
    """The rule decides from this matching step on, from 1."""
    decision: Decision

    def matches(self, step: Step, as_json: JsonObject) -> bool:
        """Return whether a step matches, without ``since`` and ``times``."""
        return (
            step.stage is self.stage
            and step.kind is self.kind
            and fnmatchcase(step.tool, self.tool)
            and fnmatchcase(step.seat, self.seat)
            and all(holds(condition, as_json) for condition in self.conditions)
        )


class RuleMonitor:
    """Decides with the strictest action and the highest suspicion of the rules that match."""

    def __init__(self, settings: JsonObject) -> None:
        """Read the rules.

        Raises:
            SpecError: a rule is not valid; names its field.
        """
        self.rules = read_rules(settings)
        self._policy = read_policy(settings)
        self.needs_state = any(
            _uses_state(condition) for rule in self.rules for condition in rule.conditions
        ) or bool(self._policy and self._policy.needs_state)
        self._counts = dict.fromkeys((rule.name for rule in self.rules), 0)

    def begin(self, facts: Facts) -> None:
        """Forget earlier steps."""
        self._counts = dict.fromkeys(self._counts, 0)
        if self._policy is not None:
            self._policy.begin()

    def before(self, step: Step) -> Decision:
        """Decide about a step."""
        return self._decide(step)

    def after(self, step: Step) -> Decision:
        """Decide about a result."""
        return self._decide(step)

    def _decide(self, step: Step) -> Decision:
        as_json = step.to_json()
        before = dict(self._counts)
        decisions = [] if self._policy is None else self._policy.decide(step)
        for rule in self.rules:
            if (not rule.since or before[rule.since]) and rule.matches(step, as_json):
                self._counts[rule.name] += 1
                if self._counts[rule.name] >= rule.times:
                    decisions.append(rule.decision)
        if not decisions:
            return ALLOWED
        strictest = max(decisions, key=lambda decision: SEVERITY.index(decision.action))
        return Decision(
            action=strictest.action,
            suspicion=max(decision.suspicion for decision in decisions),
            reason="; ".join(decision.reason for decision in decisions),
            message=strictest.message,
            arguments=strictest.arguments,
            output=strictest.output,
        )


def read_rules(settings: JsonObject) -> tuple[MonitorRule, ...]:
    """Return the rules of a file.

    Args:
        settings: an object with ``rules``, a list, or with ``policy``.

    Raises:
        SpecError: a rule is not valid; names its field.
    """
    read_policy(settings)
    listed = settings.get("rules", [] if "policy" in settings else None)
    if not isinstance(listed, list) or not (listed or "policy" in settings):
        raise SpecError("rules", "must be a list with at least one rule")
    if unknown := settings.keys() - _OF_A_FILE:
        fields = ", ".join(sorted(_OF_A_FILE))
        raise SpecError(min(unknown), f"is not a field of a rule file; the fields are {fields}")
    rules: list[MonitorRule] = []
    for position, value in enumerate(listed):
        rules.append(_rule(value, f"rules[{position}]"))
    names = [rule.name for rule in rules]
    for position, rule in enumerate(rules):
        if names.count(rule.name) > 1:
            raise SpecError(f"rules[{position}].name", f"{rule.name!r} is used twice")
        if rule.since and rule.since not in names:
            raise SpecError(
                f"rules[{position}].since",
                f"no rule is called {rule.since!r}; {nearest(rule.since, names)}",
            )
    return tuple(rules)


def read_policy(settings: JsonObject) -> PolicyMonitor | None:
    """Return what decides with the policy of a file; None if it has none.

    Raises:
        SpecError: the policy or the action is not valid.
    """
    if "policy" not in settings:
        if "action" in settings:
            raise SpecError("action", "has an effect only with policy; rules have actions")
        return None
    action: Action = _choice(Action, settings, "action", "", Action.REFUSE)
    if action is Action.MODIFY:
        raise SpecError("action", "must be allow, escalate, refuse or end")
    return PolicyMonitor(settings["policy"], action)


def _rule(value: Any, where: str) -> MonitorRule:
    if not isinstance(value, dict):
        raise SpecError(where, "must be an object")
    if unknown := sorted(map(str, value.keys() - _FIELDS)):
        raise SpecError(f"{where}.{unknown[0]}", nearest(unknown[0], sorted(_FIELDS)))
    times = value.get("times", 1)
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise SpecError(f"{where}.times", "must be a whole number, at least 1")
    name = _text(value, "name", where, "")
    if not name:
        raise SpecError(f"{where}.name", "must be a name")
    stage = _choice(Stage, value, "stage", where, Stage.BEFORE)
    given = {key: value[key] for key in Decision.__dataclass_fields__ if key in value}
    try:
        decision = decision_from_json(
            {"suspicion": 0.0 if value.get("action") == "allow" else 1.0, "reason": name, **given},
            stage,
        )
    except ValueError as error:
        raise SpecError(where, str(error)) from None
    if "action" not in value and "suspicion" not in value:
        raise SpecError(where, "needs an action, such as refuse, or a suspicion")
    return MonitorRule(
        name=name,
        stage=stage,
        kind=_choice(StepKind, value, "kind", where, StepKind.TOOL),
        tool=_text(value, "tool", where, "*"),
        seat=_text(value, "seat", where, "*"),
        conditions=_conditions(value.get("conditions", []), f"{where}.conditions"),
        since=_text(value, "since", where, ""),
        times=times,
        decision=decision,
    )


def _conditions(value: Any, where: str) -> tuple[Condition, ...]:
    if not isinstance(value, list):
        raise SpecError(where, "must be a list")
    for position, condition in enumerate(value):
        _check_condition(condition, f"{where}[{position}]")
    return tuple(map(_with_ids, value))


def _with_ids(condition: Condition) -> Condition:
    """Return a condition in which 5 and "5" are the same argument, as for worlds."""
    bound: dict[str, Any] = dict(condition)
    bound[AS_IDS] = str(bound.get("path", "")).partition(".")[0] == "arguments"
    if isinstance(inner := bound.get("condition"), dict):
        bound["condition"] = _with_ids(inner)
    if "conditions" in bound:
        bound["conditions"] = list(map(_with_ids, inner_conditions(condition)))
    return bound


def _check_condition(condition: Any, where: str) -> None:
    operation = condition.get("op") if isinstance(condition, dict) else None
    if operation not in CONDITIONS:
        raise SpecError(f"{where}.op", f"must be one of {', '.join(sorted(CONDITIONS))}")
    if operation in ("not", "any_of"):
        inner = inner_conditions(condition)
        if not inner:
            raise SpecError(where, "needs conditions")
        for each in inner:
            _check_condition(each, where)
    elif not isinstance(condition.get("path"), str):
        raise SpecError(f"{where}.path", "must be a path in the step, such as arguments.amount")


def _uses_state(condition: Condition) -> bool:
    path = str(condition.get("path", ""))
    return path.partition(".")[0] == "state" or any(map(_uses_state, inner_conditions(condition)))


def _text(value: JsonObject, name: str, where: str, default: str) -> str:
    text = value.get(name, default)
    if not isinstance(text, str):
        raise SpecError(f"{where}.{name}", "must be text")
    return text


def _choice(kind: Any, value: JsonObject, name: str, where: str, default: Any) -> Any:
    choices: Sequence[str] = [each.value for each in kind]
    chosen = value.get(name, default.value)
    if chosen not in choices:
        raise SpecError(f"{where}.{name}".strip("."), f"must be one of {', '.join(choices)}")
    return kind(chosen)


class PolicyMonitor:
    """Decides about calls that violate the policy of a rule file (docs/policies.md).

    The suspicion is the weight of the severity.
    """

    def __init__(self, policy: Any, action: Action) -> None:
        """Read the policy.

        Args:
            policy: as in a task.
            action: about a call that violates it.

        Raises:
            SpecError: the policy is not valid.
        """
        if not isinstance(policy, dict) or not policy.keys() <= set(_POLICY_LISTS):
            raise SpecError("policy", f"must be an object with {', '.join(_POLICY_LISTS)}")
        self._policy, self._action = policy, action
        try:
            self.begin()
            self._paths = state_paths(rule_paths(policy))
        except (AttributeError, KeyError, TypeError) as error:
            problem = f"is not a policy (documentation page on policies): {error!r}"
            raise SpecError("policy", problem) from None
        self.needs_state = bool(self._paths)

    def begin(self) -> None:
        """Forget earlier calls."""
        self._checker = PolicyChecker(self._policy)
        self._observed: dict[int, JsonObject] = {}
        """By number of a call, the state before it."""
        self._decided: dict[int, frozenset[str]] = {}
        """By number of a call, the entries that the decision before it named."""

    def decide(self, step: Step) -> list[Decision]:
        """Return a decision about a call that would violate the policy, or has violated it."""
        if step.kind is not StepKind.TOOL:
            return []
        event: JsonObject = {
            "kind": "call",
            "seat": step.seat,
            "number": step.number,
            "tool": step.tool,
            "arguments": step.arguments,
        }
        if step.time_ms is not None:
            event["at_ms"] = step.time_ms
        if step.stage is Stage.BEFORE:
            observed = observe(self._paths, as_object(step.state), step.arguments, None)
            self._observed[step.number] = observed
            violations = self._checker.preview({**event, "observed": observed, "output": {}})
            self._decided[step.number] = frozenset(each.rule for each in violations)
            return self._about(violations)
        event["observed"] = self._observed.pop(step.number, {})
        if step.failure is None:
            event["output"] = step.output
        else:
            event["failure"] = {"kind": "world", **step.failure}
        decided = self._decided.pop(step.number, frozenset())
        return self._about(
            tuple(each for each in self._checker.feed(event) if each.rule not in decided)
        )

    def _about(self, violations: tuple[Violation, ...]) -> list[Decision]:
        return [
            Decision(
                action=self._action,
                suspicion=SEVERITIES.get(each.severity, 1.0),
                reason=f"violates {each.rule}",
            )
            for each in violations
        ]
