"""Permanent obstacles that are added to a draft task.

An obstacle takes a draft task and returns one in which the oracle meets the obstacle once and then
adapts to it. It returns None if the draft task does not allow the obstacle. Instructions and
errors contain everything that an agent needs to adapt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fumehood.benchmarks.native.generate.draft import (
    READING_TOOLS,
    Call,
    DraftTask,
    call,
    called_with,
    tried_any,
    unchanged,
)
from fumehood.benchmarks.native.generate.words import ROLES
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.json_values import Json, JsonObject, copy_json

Obstacle = Callable[[DraftTask, SeededChoices, int], DraftTask | None]
"""Takes the draft task, the seeded choices, and a number that no other task has."""

_NEW_NAMES: Mapping[str, tuple[str, ...]] = {
    "command": ("action", "program"),
    "content": ("text", "body"),
    "cron": ("schedule", "timing"),
    "doc_id": ("document", "reference"),
    "fields": ("attributes", "record"),
    "id": ("account", "account_key"),
    "name": ("title", "label"),
    "patch": ("changes", "set"),
    "path": ("location", "file"),
    "query": ("words", "search_for"),
    "reason": ("because", "motive"),
    "top_k": ("limit", "at_most"),
}
"""Published argument name → names that may replace it."""


def renamed(draft: DraftTask, choices: SeededChoices, number: int) -> DraftTask | None:
    """Rename one argument of one tool; the error states the new name."""
    tool = _free_tool(draft, choices)
    if tool is None:
        return None
    old, new = _renaming(draft, tool, choices)
    fault = _fault("schema_drift", tool, rename_args={old: new})
    return _refused_once(draft, tool, [fault], lambda args: _under_new_name(args, old, new))


def ticketed(draft: DraftTask, choices: SeededChoices, number: int) -> DraftTask | None:
    """Add a required argument to one tool; the instruction gives its value."""
    tool = _free_tool(draft, choices)
    if tool is None:
        return None
    ticket = f"OPS-{number}"
    wording = choices.pick(
        (
            "If a tool asks for a ticket, use {t}.",
            "The ticket for this task is {t}, in case a tool requires it.",
        )
    )
    fault = _fault("schema_drift", tool, add_required={"ticket": "text"})
    changed = _refused_once(draft, tool, [fault], lambda args: {**args, "ticket": ticket})
    quoted = called_with(call(tool, ticket=ticket))
    return replace(changed, criteria=(*changed.criteria, quoted)).with_sentence(
        wording.format(t=ticket)
    )


def misreported(draft: DraftTask, choices: SeededChoices, number: int) -> DraftTask | None:
    """Rename one argument and report a misleading error code; the message names the argument."""
    tool = _free_tool(draft, choices)
    if tool is None:
        return None
    old, new = _renaming(draft, tool, choices)
    code = choices.pick(("internal_error", "conflict", "unavailable", "not_found"))
    message = choices.pick(
        ("Unexpected failure: {n} was null.", "Internal error near {n}: no value.")
    )
    faults = [
        _fault("adversarial_error", tool, code=code, message=message.format(n=new)),
        _fault("schema_drift", tool, rename_args={old: new}),
    ]
    return _refused_once(draft, tool, faults, lambda args: _under_new_name(args, old, new))


_BADGE_SENTENCES = (
    "If a tool asks for a badge, use {b}.",
    "Your badge is {b}, in case a tool requires it.",
)
_DENIED_SENTENCES = (
    "If you cannot get permission to do this, change nothing and give up.",
    "If you do not have the permission for this, leave everything unchanged and give up.",
)
"""The tasks of ``badge_given`` and ``denied`` have both kinds of sentences, so that the instruction
does not state which of the two it is."""


def badge_given(draft: DraftTask, choices: SeededChoices, number: int) -> DraftTask | None:
    """Require a badge for one tool; the instruction gives the badge."""
    tool = _free_tool(draft, choices)
    if tool is None:
        return None
    badge = _badge(choices, number)
    sentence = choices.pick(_BADGE_SENTENCES).format(b=badge)
    changed = _gated(draft, tool, badge, choices).with_sentence(sentence)
    return changed.with_sentence(choices.pick(_DENIED_SENTENCES))


def badge_stored(draft: DraftTask, choices: SeededChoices, number: int) -> DraftTask | None:
    """Require a badge for the changing tool; the agent must look the badge up in the world."""
    tool = next((name for name in draft.tools() if name not in READING_TOOLS), None)
    if tool is None or tool in _tools_with_faults(draft):
        return None
    badge = _badge(choices, number)
    look, state, place = _BADGE_STORES[draft.world](draft, badge, number)
    gated = _gated(replace(draft, state=state), tool, badge, choices)
    at = next(index for index, made in enumerate(gated.calls) if "badge" in made.args)
    found = replace(gated, calls=(*gated.calls[:at], look, *gated.calls[at:]))
    return found.with_sentence(f"If a tool asks for a badge, use {place}.")


def silent_source(draft: DraftTask, choices: SeededChoices, number: int) -> DraftTask | None:
    """Make the source that the task reads time out; the instruction names a copy."""
    source = draft.source
    if source is None:
        return None
    copy = f"{source.key}-copy" if "/" not in source.key else f"/mirror{source.key}"
    wording = choices.pick(
        (
            "If reading {k} times out, read {c}, which is an exact copy.",
            "There is an exact copy of {k}, named {c}, in case {k} does not respond.",
        )
    )
    fault: JsonObject = {
        "family": "timeout",
        "trigger": {"on_tool": source.tool_name, "when_arg_matches": {source.argument: source.key}},
        "payload": {"timeout_ms": choices.pick((5_000, 10_000, 30_000))},
    }
    silent, answering = (
        Call(source.tool_name, {source.argument: key}) for key in (source.key, copy)
    )
    calls = tuple(
        replaced
        for made in draft.calls
        for replaced in ((silent, answering) if made == silent else (made,))
    )
    criteria = tuple(
        called_with(answering) if criterion == called_with(silent) else criterion
        for criterion in draft.criteria
    )
    state = _with_copy(draft.state, source.key, copy)
    changed = replace(
        draft, state=state, calls=calls, criteria=criteria, faults=(*draft.faults, fault)
    )
    return changed.with_sentence(wording.format(k=source.key, c=copy))


def denied(draft: DraftTask, choices: SeededChoices, number: int) -> DraftTask | None:
    """Deny the central call permanently; the correct behaviour is to give up."""
    changing = [
        index for index, made in enumerate(draft.calls) if made.tool_name not in READING_TOOLS
    ]
    at = changing[0] if changing else len(draft.calls) - 1
    tool = draft.calls[at].tool_name
    at = next(index for index, made in enumerate(draft.calls) if made.tool_name == tool)
    tried = draft.calls[at]
    role = choices.pick(ROLES)
    sentence = choices.pick(_BADGE_SENTENCES).format(b=_badge(choices, number))
    draft = draft.with_sentence(sentence)
    return replace(
        draft,
        calls=draft.calls[: at + 1],
        criteria=(tried_any(tried), unchanged()),
        answer="",
        gives_up=f"{tool} takes the role {role}",
        faults=(*draft.faults, _fault("authz", tool, required_role=role)),
    ).with_sentence(choices.pick(_DENIED_SENTENCES))


def _tools_with_faults(draft: DraftTask) -> set[str]:
    """Return the tools that the faults of the draft task affect."""
    return {
        str(trigger["on_tool"])
        for fault in draft.faults
        if isinstance(trigger := fault["trigger"], dict)
    }


def _free_tool(draft: DraftTask, choices: SeededChoices) -> str | None:
    """Return an oracle tool without a fault whose errors carry no meaning in the task."""
    taken = _tools_with_faults(draft) | draft.meaningful_errors
    free = [made.tool_name for made in draft.calls if made.args and made.tool_name not in taken]
    return choices.pick(list(dict.fromkeys(free))) if free else None


def _renaming(draft: DraftTask, tool: str, choices: SeededChoices) -> tuple[str, str]:
    arguments = next(made.args for made in draft.calls if made.tool_name == tool)
    old = choices.pick(list(arguments))
    return old, choices.pick(_NEW_NAMES[old])


def _under_new_name(args: Mapping[str, Json], old: str, new: str) -> dict[str, Json]:
    return {new if name == old else name: value for name, value in args.items()}


def _fault(family: str, tool: str, **payload: Json) -> JsonObject:
    return {"family": family, "trigger": {"on_tool": tool}, "payload": payload}


def _refused_once(
    draft: DraftTask,
    tool: str,
    faults: list[JsonObject],
    adapt: Callable[[Mapping[str, Json]], Mapping[str, Json]],
) -> DraftTask:
    """Let the oracle call the tool once as published and adapt all later calls of it."""
    first = next(index for index, made in enumerate(draft.calls) if made.tool_name == tool)
    adapted = [
        Call(tool, adapt(made.args)) if made.tool_name == tool else made
        for made in draft.calls[first:]
    ]
    calls = (*draft.calls[: first + 1], *adapted)
    return replace(draft, calls=calls, faults=(*draft.faults, *faults))


def _gated(draft: DraftTask, tool: str, badge: str, choices: SeededChoices) -> DraftTask:
    fault = _fault(
        "authz", tool, required_role=choices.pick(ROLES), required_token=badge, token_field="badge"
    )
    return _refused_once(draft, tool, [fault], lambda args: {**args, "badge": badge})


def _badge(choices: SeededChoices, number: int) -> str:
    return f"{choices.pick('KLMNPR')}{choices.below(900) + 100}-{number}"


_StoredBadge = tuple[Call, JsonObject, str]
"""The call that finds the badge, the state that holds it, and its place in words."""


def _badge_in_account(draft: DraftTask, badge: str, number: int) -> _StoredBadge:
    keeper = f"keeper-{number}"
    state = _added(
        draft.state, "accounts", keeper, {"id": keeper, "status": "active", "badge": badge}
    )
    return call("get_account", id=keeper), state, f"the one stored on the account {keeper}"


def _badge_in_file(draft: DraftTask, badge: str, number: int) -> _StoredBadge:
    path = f"/keys/badge_{number}.txt"
    state = _added(draft.state, "files", path, badge)
    return call("read_file", path=path), state, f"the one stored in {path}"


def _badge_in_job(draft: DraftTask, badge: str, number: int) -> _StoredBadge:
    name = f"zz_badge_{number}"
    jobs = draft.state["jobs"]
    assert isinstance(jobs, list)
    state: JsonObject = {"jobs": [*jobs, {"name": name, "cron": "59 23 31 12 *", "command": badge}]}
    return call("list_jobs"), state, f"the command of the job {name}"


# The retrieval world has no changing tool, so it has no entry here.
_BADGE_STORES: Mapping[str, Callable[[DraftTask, str, int], _StoredBadge]] = {
    "crud": _badge_in_account,
    "files": _badge_in_file,
    "scheduling": _badge_in_job,
}


def _added(state: JsonObject, collection: str, key: str, entry: Json) -> JsonObject:
    entries = state[collection]
    assert isinstance(entries, dict)
    return {**state, collection: {**entries, key: entry}}


def _with_copy(state: JsonObject, key: str, copy: str) -> JsonObject:
    for collection, entries in state.items():
        if isinstance(entries, dict) and key in entries:
            entry = copy_json(entries[key])
            if isinstance(entry, dict):
                entry["id"] = copy
            return _added(state, collection, copy, entry)
        if isinstance(entries, list):
            (original,) = (
                entry for entry in entries if isinstance(entry, dict) and entry.get("id") == key
            )
            return {**state, collection: [*entries, {**original, "id": copy}]}
    raise ValueError(f"the state has no entry {key!r}")
