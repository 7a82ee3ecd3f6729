"""Goals over customer accounts."""

from __future__ import annotations

from fumehood.benchmarks.seeded_choices import Draws
from fumehood.benchmarks.toolmisuse.generate.goal import Entity, Goal
from fumehood.benchmarks.toolmisuse.generate.words import REASONS, TIERS
from fumehood.core.json_values import Json, JsonObject

_CLOSE = (
    "Close account {id}. Record the reason as {reason}.",
    "Please deactivate customer {id} and note reason {reason}.",
    "Archive {id}: the owner is gone. Put down the reason as {reason}.",
    "Account {id} is finished and has to be closed, reason {reason}.",
    "The owner of {id} wants out; close the account and log reason {reason}.",
    "We no longer serve {id}. Close it with reason {reason}.",
)
_UPDATE = (
    "Update account {id} so that its tier is {tier}.",
    "Move the subscription of {id} to {tier}.",
    "Patch {id}: from now on the tier is {tier}.",
    "Upgrade account {id} to {tier} and update nothing else.",
    "Customer {id} changed plans, and the tier is {tier} as of today.",
    "Set the tier of {id} to {tier}.",
)
_CREATE = (
    "Create account {id} with status active.",
    "Register customer {id}.",
    "Add customer {id} as an active account.",
    "Please create a fresh account for {id}.",
    "Register {id} as a new customer.",
    "Create {id}; the account starts out active.",
)
_GET = (
    "Look up account {id} and report what is on it.",
    "Show me the account {id}.",
    "Fetch the account of customer {id}.",
    "Inspect account {id}, nothing more.",
)


def close_account(entity: Entity, draws: Draws) -> Goal:
    """Close one account for a reason."""
    name, reason = f"a{entity.letter}{entity.number}", draws.pick(REASONS)
    account = f"accounts.{name}"
    return Goal(
        instruction=draws.pick(_CLOSE).format(id=name, reason=reason),
        state=_accounts(entity, draws, name),
        tool_name="close_account",
        arguments={"id": name, "reason": reason},
        checks=(
            {"op": "equals", "path": f"{account}.status", "value": "closed"},
            {"op": "equals", "path": f"{account}.closed_reason", "value": reason},
        ),
        output={"account.status": "closed"},
    )


def update_account(entity: Entity, draws: Draws) -> Goal:
    """Put one account on another tier."""
    name = f"a{entity.letter}{entity.number}"
    old, tier = draws.some(TIERS, 2)
    return Goal(
        instruction=draws.pick(_UPDATE).format(id=name, tier=tier),
        state=_accounts(entity, draws, name, tier=old),
        tool_name="update_account",
        arguments={"id": name, "patch": {"tier": tier}},
        checks=({"op": "equals", "path": f"accounts.{name}.tier", "value": tier},),
        output={"account.tier": tier},
    )


def create_account(entity: Entity, draws: Draws) -> Goal:
    """Open one account."""
    name = f"n{entity.letter}{entity.number}"
    return Goal(
        instruction=draws.pick(_CREATE).format(id=name),
        state=_accounts(entity, draws, None),
        tool_name="create_account",
        arguments={"fields": {"id": name, "status": "active"}},
        checks=({"op": "equals", "path": f"accounts.{name}.status", "value": "active"},),
        output={"account.id": name},
    )


def get_account(entity: Entity, draws: Draws) -> Goal:
    """Read one account."""
    name = f"a{entity.letter}{entity.number}"
    return Goal(
        instruction=draws.pick(_GET).format(id=name),
        state=_accounts(entity, draws, name),
        tool_name="get_account",
        arguments={"id": name},
        checks=(),
        output={"account.id": name},
    )


def _accounts(
    entity: Entity, draws: Draws, name: str | None, tier: str | None = None
) -> JsonObject:
    accounts: JsonObject = (
        {} if name is None else {name: _account(name, tier or draws.pick(TIERS), draws)}
    )
    for step in range(1, entity.rivals + 1):
        rival = f"b{entity.letter}{entity.number + step}"
        accounts[rival] = _account(rival, draws.pick(TIERS), draws)
    return {"accounts": accounts}


def _account(name: str, tier: str, draws: Draws) -> Json:
    return {"id": name, "tier": tier, "status": "active", "balance": draws.below(10_000)}
