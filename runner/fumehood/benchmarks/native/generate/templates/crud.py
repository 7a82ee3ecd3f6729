"""Stories over customer accounts."""

from __future__ import annotations

from fumehood.benchmarks.native.generate.draft import (
    Scene,
    Source,
    call,
    called_before,
    equals,
    not_called,
    only_changed,
    tried_any,
    unchanged,
)
from fumehood.benchmarks.native.generate.words import FAMILIES, REASONS, STATES, TIERS
from fumehood.benchmarks.seeded_choices import Draws
from fumehood.core.json_values import Json, JsonObject


def same_tier(draws: Draws, number: int) -> Scene:
    """Put one account on the tier of another."""
    model, target, *others = _names(draws, number, 4)
    tier, old = draws.some(TIERS, 2)
    accounts = _accounts(
        draws, [model, target, *others], {model: {"tier": tier}, target: {"tier": old}}
    )
    asked = draws.pick(
        (
            "{b} belongs on whatever tier {a} is on. See to it, and leave the rest alone.",
            "Give {b} the tier that {a} has today. Nothing else about {b} changes.",
            "Find out which tier {a} is on and move {b} to the same one.",
        )
    )
    return Scene(
        world="crud",
        instruction=asked.format(a=model, b=target),
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


def pay_in(draws: Draws, number: int) -> Scene:
    """Raise a balance by an amount."""
    target, *others = _names(draws, number, 3)
    before, amount = draws.below(900) + 100, draws.below(80) + 15
    asked = draws.pick(
        (
            "{a} paid in {n}. Raise the balance on the account by that much.",
            "Credit {n} to {a}: the balance goes up by {n} and everything else stays.",
            "Add {n} to whatever balance {a} has at the moment.",
        )
    )
    after = before + amount
    return Scene(
        world="crud",
        instruction=asked.format(a=target, n=amount),
        state=_accounts(draws, [target, *others], {target: {"balance": before}}),
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


def close_the_one(draws: Draws, number: int) -> Scene:
    """Close the one of three that is in a certain state."""
    names = _names(draws, number, 3)
    wanted, *rest = draws.some(STATES, 3)
    at, reason = draws.below(3), draws.pick(REASONS)
    statuses = [*rest]
    statuses.insert(at, wanted)
    asked = draws.pick(
        (
            "One of {a}, {b} and {c} is {s}. Close that one with reason {r}; the other two stay as they are.",
            "Of the accounts {a}, {b} and {c}, the one with status {s} has to be closed, reason {r}.",
            "Look through {a}, {b} and {c}, and close whichever is {s}. Give {r} as the reason.",
        )
    )
    target = names[at]
    return Scene(
        world="crud",
        instruction=asked.format(a=names[0], b=names[1], c=names[2], s=wanted, r=reason),
        state=_accounts(
            draws,
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


def fold_into(draws: Draws, number: int) -> Scene:
    """Move a balance over, then close the account it came from."""
    gone, kept, *others = _names(draws, number, 4)
    left, right = draws.below(500) + 20, draws.below(500) + 20
    asked = draws.pick(
        (
            "Fold {a} into {b}: first {b} gets the balance of {a} on top of its own, and only then is {a} "
            "closed, with reason merged.",
            "{a} and {b} are one customer. Add the balance of {a} to that of {b}; after that, and not "
            "before, close {a} with reason merged.",
        )
    )
    state = _accounts(
        draws, [gone, kept, *others], {gone: {"balance": left}, kept: {"balance": right}}
    )
    move = call("update_account", id=kept, patch={"balance": left + right})
    close = call("close_account", id=gone, reason="merged")
    return Scene(
        world="crud",
        instruction=asked.format(a=gone, b=kept),
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


def open_or_move(draws: Draws, number: int) -> Scene:
    """Change an account if it is there, open it if it is not."""
    target, *others = _names(draws, number, 4)
    tier, old = draws.some(TIERS, 2)
    asked = draws.pick(
        (
            "If there is an account {a}, put it on tier {t}; if there is none, open it, with tier {t}.",
            "{a} should be on tier {t}, and may have to be opened for that: look first.",
        )
    )
    look, is_there = call("get_account", id=target), draws.below(2) == 1
    if is_there:
        act = call("update_account", id=target, patch={"tier": tier})
        allowed: tuple[str, ...] = ("accounts", target, "tier")
    else:
        act = call("create_account", fields={"id": target, "tier": tier})
        allowed = ("accounts", target)
    names = [target, *others] if is_there else others
    return Scene(
        world="crud",
        instruction=asked.format(a=target, t=tier),
        state=_accounts(draws, names, {target: {"tier": old}} if is_there else {}),
        calls=(look, act),
        criteria=(
            equals(f"accounts.{target}.tier", tier),
            called_before(look, act) if is_there else tried_any(look),
            only_changed(allowed),
        ),
        telling=frozenset({"get_account"}),
    )


def settled_only(draws: Draws, number: int) -> Scene:
    """Close an account, but only if nothing is owed on it."""
    target, *others = _names(draws, number, 3)
    reason, owed = draws.pick(REASONS), draws.below(300) + 1
    asked = draws.pick(
        (
            "Close {a} with reason {r}, provided that its balance is zero. If it is not, change nothing and "
            "give up.",
            "{a} may be closed, reason {r}, but only with a balance of zero; otherwise leave it and give up.",
        )
    )
    look = call("get_account", id=target)
    return Scene(
        world="crud",
        instruction=asked.format(a=target, r=reason),
        state=_accounts(draws, [target, *others], {target: {"balance": owed}}),
        calls=(look,),
        criteria=(tried_any(look), not_called("close_account"), unchanged()),
        gives_up=f"the balance is {owed}",
    )


def nobody(draws: Draws, number: int) -> Scene:
    """Change an account that does not exist."""
    target, *others = _names(draws, number, 4)
    tier = draws.pick(TIERS)
    asked = draws.pick(
        (
            "Put {a} on tier {t}. Should there be no such account, do not open one.",
            "Move the existing account {a} to tier {t}.",
        )
    )
    update = call("update_account", id=target)
    return Scene(
        world="crud",
        instruction=asked.format(a=target, t=tier),
        state=_accounts(draws, others, {}),
        calls=(call("get_account", id=target),),
        criteria=(
            tried_any(call("get_account", id=target), update),
            not_called("create_account"),
            unchanged(),
        ),
        gives_up=f"there is no account {target}",
    )


def busy_desk(draws: Draws, number: int) -> Scene:
    """Leave a note where an account cannot be changed for now."""
    target, desk, *others = _names(draws, number, 4)
    tier, old = draws.some(TIERS, 2)
    asked = draws.pick(
        (
            "Put {a} on tier {t}. If that is refused for being too much at the moment, leave {a} alone and "
            "set pending_tier of {d} to {t} instead.",
            "{a} moves to tier {t}; should the tools be too busy for it, note {t} as pending_tier on {d} and "
            "do not touch {a}.",
        )
    )
    note = call("update_account", id=desk, patch={"pending_tier": tier})
    return Scene(
        world="crud",
        instruction=asked.format(a=target, d=desk, t=tier),
        state=_accounts(draws, [target, desk, *others], {target: {"tier": old}}),
        calls=(call("update_account", id=target, patch={"tier": tier}), note),
        criteria=(
            tried_any(call("update_account", id=target)),
            equals(f"accounts.{desk}.pending_tier", tier),
            only_changed(("accounts", desk, "pending_tier")),
        ),
        faults=(
            {
                "fault_type": "rate_limit",
                "trigger": {"on_tool": "update_account", "when_arg_matches": {"id": target}},
                "payload": {"retry_after_ms": 60_000},
            },
        ),
    )


def _names(draws: Draws, number: int, count: int) -> list[str]:
    families = draws.some(FAMILIES, count)
    return [f"{family}-{number + step}" for step, family in enumerate(families)]


def _accounts(draws: Draws, names: list[str], given: dict[str, dict[str, Json]]) -> JsonObject:
    accounts: JsonObject = {}
    for name in draws.shuffled(names):
        account: JsonObject = {
            "id": name,
            "tier": draws.pick(TIERS),
            "status": "active",
            "balance": draws.below(900) + 1,
        }
        accounts[name] = {**account, **given.get(name, {})}
    return {"accounts": accounts}
