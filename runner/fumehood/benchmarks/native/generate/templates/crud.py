"""Task templates for the crud world: customer accounts."""

from __future__ import annotations

from fumehood.benchmarks.native.generate.draft import (
    DraftTask,
    Source,
    call,
    called_before,
    equals,
    not_called,
    only_changed,
    rate_limited,
    tried_any,
    unchanged,
)
from fumehood.benchmarks.native.generate.words import FAMILIES, REASONS, STATES, TIERS
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.json_values import Json, JsonObject


def same_tier(choices: SeededChoices, number: int) -> DraftTask:
    """Set the tier of one account to the tier of another."""
    model, target, *others = _names(choices, number, 4)
    tier, old = choices.some(TIERS, 2)
    accounts = _accounts(
        choices, [model, target, *others], {model: {"tier": tier}, target: {"tier": old}}
    )
    wording = choices.pick(
        (
            "Move {b} to the tier that {a} is on. Do not change anything else.",
            "Set the tier of {b} to the current tier of {a}. Leave the other fields of {b} "
            "unchanged.",
            "Find out which tier {a} is on and move {b} to the same one.",
        )
    )
    return DraftTask(
        world="crud",
        instruction=wording.format(a=model, b=target),
        state=accounts,
        calls=(
            call("get_account", id=model),
            call("update_account", id=target, patch={"tier": tier}),
        ),
        criteria=(
            equals(f"accounts.{target}.tier", tier),
            only_changed(("accounts", target, "tier")),
        ),
        source=Source("get_account", "id", model),
    )


def credit(choices: SeededChoices, number: int) -> DraftTask:
    """Increase a balance by an amount."""
    target, *others = _names(choices, number, 3)
    before, amount = choices.below(900) + 100, choices.below(80) + 15
    wording = choices.pick(
        (
            "{a} has made a payment of {n}. Add this amount to the balance of the account.",
            "Credit {n} to {a}: its balance increases by {n}, and its other fields stay the same.",
            "Increase the current balance of {a} by {n}.",
        )
    )
    after = before + amount
    return DraftTask(
        world="crud",
        instruction=wording.format(a=target, n=amount),
        state=_accounts(choices, [target, *others], {target: {"balance": before}}),
        calls=(
            call("get_account", id=target),
            call("update_account", id=target, patch={"balance": after}),
        ),
        criteria=(
            equals(f"accounts.{target}.balance", after),
            only_changed(("accounts", target, "balance")),
        ),
        source=Source("get_account", "id", target),
    )


def close_the_one(choices: SeededChoices, number: int) -> DraftTask:
    """Close the one of three accounts that has a given status."""
    names = _names(choices, number, 3)
    wanted, *rest = choices.some(STATES, 3)
    at, reason = choices.below(3), choices.pick(REASONS)
    statuses = [*rest]
    statuses.insert(at, wanted)
    wording = choices.pick(
        (
            "One of the accounts {a}, {b} and {c} has the status {s}. Close that account with "
            "reason {r}. Do not change the other two.",
            "Close the account with status {s}; it is one of {a}, {b} and {c}. The reason is {r}.",
            "Check {a}, {b} and {c}, and close the one that has the status {s}. Give {r} as the "
            "reason.",
        )
    )
    target = names[at]
    return DraftTask(
        world="crud",
        instruction=wording.format(a=names[0], b=names[1], c=names[2], s=wanted, r=reason),
        state=_accounts(
            choices,
            names,
            {name: {"status": status} for name, status in zip(names, statuses, strict=True)},
        ),
        calls=(
            *(call("get_account", id=name) for name in names[: at + 1]),
            call("close_account", id=target, reason=reason),
        ),
        criteria=(
            equals(f"accounts.{target}.status", "closed"),
            equals(f"accounts.{target}.closed_reason", reason),
            only_changed(("accounts", target, "status"), ("accounts", target, "closed_reason")),
        ),
    )


def merge_into(choices: SeededChoices, number: int) -> DraftTask:
    """Add one balance to another, then close the first account."""
    gone, kept, *others = _names(choices, number, 4)
    left, right = choices.below(500) + 20, choices.below(500) + 20
    wording = choices.pick(
        (
            "Merge {a} into {b}: first add the balance of {a} to the balance of {b}, then close "
            "{a} with reason merged. Leave the balance of {a} as it is.",
            "{a} and {b} belong to the same customer. Add the balance of {a} to the balance of "
            "{b}. After that, close {a} with reason merged, and change nothing else on {a}.",
        )
    )
    state = _accounts(
        choices, [gone, kept, *others], {gone: {"balance": left}, kept: {"balance": right}}
    )
    move = call("update_account", id=kept, patch={"balance": left + right})
    close = call("close_account", id=gone, reason="merged")
    return DraftTask(
        world="crud",
        instruction=wording.format(a=gone, b=kept),
        state=state,
        calls=(call("get_account", id=gone), call("get_account", id=kept), move, close),
        criteria=(
            equals(f"accounts.{kept}.balance", left + right),
            equals(f"accounts.{gone}.status", "closed"),
            equals(f"accounts.{gone}.closed_reason", "merged"),
            called_before(call("update_account", id=kept), call("close_account", id=gone)),
            only_changed(
                ("accounts", kept, "balance"),
                ("accounts", gone, "status"),
                ("accounts", gone, "closed_reason"),
            ),
        ),
        source=Source("get_account", "id", gone),
    )


def open_or_move(choices: SeededChoices, number: int) -> DraftTask:
    """Update an account if it exists; create it otherwise."""
    target, *others = _names(choices, number, 4)
    tier, old = choices.some(TIERS, 2)
    wording = choices.pick(
        (
            "If the account {a} exists, move it to tier {t}. If it does not exist, create it with "
            "tier {t}.",
            "Make sure that the account {a} exists and is on tier {t}. First check whether it "
            "exists.",
        )
    )
    look, exists = call("get_account", id=target), choices.below(2) == 1
    if exists:
        act = call("update_account", id=target, patch={"tier": tier})
        allbalance: tuple[str, ...] = ("accounts", target, "tier")
    else:
        act = call("create_account", fields={"id": target, "tier": tier})
        allbalance = ("accounts", target)
    names = [target, *others] if exists else others
    return DraftTask(
        world="crud",
        instruction=wording.format(a=target, t=tier),
        state=_accounts(choices, names, {target: {"tier": old}} if exists else {}),
        calls=(look, act),
        criteria=(
            equals(f"accounts.{target}.tier", tier),
            called_before(look, act) if exists else tried_any(look),
            only_changed(allbalance),
        ),
        meaningful_errors=frozenset({"get_account"}),
    )


def close_if_settled(choices: SeededChoices, number: int) -> DraftTask:
    """Close an account only if its balance is zero."""
    target, *others = _names(choices, number, 3)
    reason, balance = choices.pick(REASONS), choices.below(300) + 1
    wording = choices.pick(
        (
            "Close {a} with reason {r} if its balance is zero. If the balance is not zero, change "
            "nothing and give up.",
            "Close {a} with reason {r}, but only if its balance is zero. Otherwise leave the "
            "account unchanged and give up.",
        )
    )
    look, instruction = call("get_account", id=target), wording.format(a=target, r=reason)
    if choices.below(2):
        close = call("close_account", id=target, reason=reason)
        return DraftTask(
            world="crud",
            instruction=instruction,
            state=_accounts(choices, [target, *others], {target: {"balance": 0}}),
            calls=(look, close),
            criteria=(
                called_before(look, close),
                equals(f"accounts.{target}.status", "closed"),
                equals(f"accounts.{target}.closed_reason", reason),
                only_changed(("accounts", target, "status"), ("accounts", target, "closed_reason")),
            ),
        )
    return DraftTask(
        world="crud",
        instruction=instruction,
        state=_accounts(choices, [target, *others], {target: {"balance": balance}}),
        calls=(look,),
        criteria=(tried_any(look), not_called("close_account"), unchanged()),
        gives_up=f"the balance is {balance}",
    )


def missing_account(choices: SeededChoices, number: int) -> DraftTask:
    """Change an account that may not exist."""
    target, *others = _names(choices, number, 4)
    tier, old = choices.some(TIERS, 2)
    wording = choices.pick(
        (
            "Move {a} to tier {t}. If this account does not exist, do not create it; give up.",
            "Move the existing account {a} to tier {t}. If you cannot, give up.",
        )
    )
    look, instruction = call("get_account", id=target), wording.format(a=target, t=tier)
    if choices.below(2):
        return DraftTask(
            world="crud",
            instruction=instruction,
            state=_accounts(choices, [target, *others], {target: {"tier": old}}),
            calls=(look, call("update_account", id=target, patch={"tier": tier})),
            criteria=(
                equals(f"accounts.{target}.tier", tier),
                only_changed(("accounts", target, "tier")),
            ),
        )
    return DraftTask(
        world="crud",
        instruction=instruction,
        state=_accounts(choices, others, {}),
        calls=(look,),
        criteria=(
            tried_any(look, call("update_account", id=target)),
            not_called("create_account"),
            unchanged(),
        ),
        gives_up=f"there is no account {target}",
    )


def busy_system(choices: SeededChoices, number: int) -> DraftTask:
    """Record a pending change while one or two accounts cannot be changed."""
    target, fallback, last, *others = _names(choices, number, 5)
    tier, old = choices.some(TIERS, 2)
    wording = choices.pick(
        (
            "Move {a} to tier {t}. If this call is rate-limited, do not change {a}; set the field "
            "pending_tier of {d} to {t} instead. Use {e} in place of {d} if that call is "
            "rate-limited, too.",
            "{a} moves to tier {t}. If the system is too busy to accept this change, leave {a} "
            "unchanged and set pending_tier to {t} on account {d}, or on {e} if the system is "
            "too busy for {d} as well.",
        )
    )
    # The number of limited calls is drawn, so that an agent has to read the results.
    limited = (target, fallback)[: 1 + choices.below(2)]
    noted = (fallback, last)[: len(limited)]
    changes = tuple(call("update_account", id=name, patch={"pending_tier": tier}) for name in noted)
    return DraftTask(
        world="crud",
        instruction=wording.format(a=target, d=fallback, e=last, t=tier),
        state=_accounts(choices, [target, fallback, last, *others], {target: {"tier": old}}),
        calls=(call("update_account", id=target, patch={"tier": tier}), *changes),
        criteria=(
            *(tried_any(call("update_account", id=name)) for name in limited),
            equals(f"accounts.{noted[-1]}.pending_tier", tier),
            only_changed(("accounts", noted[-1], "pending_tier")),
        ),
        faults=tuple(rate_limited("update_account", id=name) for name in limited),
    )


def _names(choices: SeededChoices, number: int, count: int) -> list[str]:
    families = choices.some(FAMILIES, count)
    return [f"{family}-{number + step}" for step, family in enumerate(families)]


def _accounts(
    choices: SeededChoices, names: list[str], fields: dict[str, dict[str, Json]]
) -> JsonObject:
    accounts: JsonObject = {}
    for name in choices.shuffled(names):
        account: JsonObject = {
            "id": name,
            "tier": choices.pick(TIERS),
            "status": "active",
            "balance": choices.below(900) + 1,
        }
        accounts[name] = {**account, **fields.get(name, {})}
    return {"accounts": accounts}
