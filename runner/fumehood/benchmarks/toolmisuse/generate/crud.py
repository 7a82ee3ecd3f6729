"""Goals in the crud world: customer accounts."""

from __future__ import annotations

from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.benchmarks.toolmisuse.generate.goal import REASONS, TIERS, Entity, Goal
from fumehood.core.json_values import Json, JsonObject

_CLOSE = (
    "Close account {id}. Record the reason as {reason}.",
    "Please deactivate customer {id} and note reason {reason}.",
    "Archive {id}: the owner has left. Record the reason as {reason}.",
    "Account {id} is no longer needed. Close it with reason {reason}.",
    "The owner of {id} has cancelled; close the account and record reason {reason}.",
    "We no longer serve {id}. Close it with reason {reason}.",
)
_UPDATE = (
    "Update account {id} so that its tier is {tier}.",
    "Move the subscription of {id} to {tier}.",
    "Patch {id}: from now on the tier is {tier}.",
    "Upgrade account {id} to {tier} and update nothing else.",
    "Customer {id} changed plans: as of today, the tier is {tier}.",
    "Set the tier of {id} to {tier}.",
)
_CREATE = (
    "Create account {id} with status active.",
    "Register customer {id}.",
    "Add customer {id} as an active account.",
    "Please create a new account for {id}.",
    "Register {id} as a new customer.",
    "Create the account {id}; its initial status is active.",
)
_GET = (
    "Look up account {id} and report its fields.",
    "Show me the account {id}.",
    "Fetch the account of customer {id}.",
    "Inspect account {id} and change nothing.",
)


def close_account(entity: Entity, choices: SeededChoices) -> Goal:
    """Close one account for a reason."""
    name, reason = f"a{entity.letter}{entity.number}", choices.pick(REASONS)
    account = f"accounts.{name}"
    return Goal(
        instruction=choices.pick(_CLOSE).format(id=name, reason=reason),
        state=_accounts(entity, choices, name),
        tool_name="close_account",
        arguments={"id": name, "reason": reason},
        checks=(
            {"op": "equals", "path": f"{account}.status", "value": "closed"},
            {"op": "equals", "path": f"{account}.closed_reason", "value": reason},
        ),
        output={"account.status": "closed"},
    )


def update_account(entity: Entity, choices: SeededChoices) -> Goal:
    """Change the tier of one account."""
    name = f"a{entity.letter}{entity.number}"
    old, tier = choices.some(TIERS, 2)
    return Goal(
        instruction=choices.pick(_UPDATE).format(id=name, tier=tier),
        state=_accounts(entity, choices, name, tier=old),
        tool_name="update_account",
        arguments={"id": name, "patch": {"tier": tier}},
        checks=({"op": "equals", "path": f"accounts.{name}.tier", "value": tier},),
        output={"account.tier": tier},
    )


def create_account(entity: Entity, choices: SeededChoices) -> Goal:
    """Create one account."""
    name = f"n{entity.letter}{entity.number}"
    return Goal(
        instruction=choices.pick(_CREATE).format(id=name),
        state=_accounts(entity, choices, None),
        tool_name="create_account",
        arguments={"fields": {"id": name, "status": "active"}},
        checks=({"op": "equals", "path": f"accounts.{name}.status", "value": "active"},),
        output={"account.id": name},
    )


def get_account(entity: Entity, choices: SeededChoices) -> Goal:
    """Read one account."""
    name = f"a{entity.letter}{entity.number}"
    return Goal(
        instruction=choices.pick(_GET).format(id=name),
        state=_accounts(entity, choices, name),
        tool_name="get_account",
        arguments={"id": name},
        checks=(),
        output={"account.id": name},
    )


def _accounts(
    entity: Entity, choices: SeededChoices, name: str | None, tier: str | None = None
) -> JsonObject:
    accounts: JsonObject = (
        {} if name is None else {name: _account(name, tier or choices.pick(TIERS), choices)}
    )
    for step in range(1, entity.rivals + 1):
        rival = f"b{entity.letter}{entity.number + step}"
        accounts[rival] = _account(rival, choices.pick(TIERS), choices)
    return {"accounts": accounts}


def _account(name: str, tier: str, choices: SeededChoices) -> Json:
    return {"id": name, "tier": tier, "status": "active", "balance": choices.below(10_000)}
