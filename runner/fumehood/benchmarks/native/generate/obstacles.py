"""What stands in the way of a story, for good, and how it can be learnt.

A trouble takes a scene and returns one in which the oracle meets it once and then does what it asks for; None
where the scene has no room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fumehood.benchmarks.native.generate.draft import (
    READING_TOOLS,
    Call,
    Scene,
    call,
    called_with,
    tried_any,
    unchanged,
)
from fumehood.benchmarks.native.generate.words import ROLES
from fumehood.benchmarks.seeded_choices import Draws
from fumehood.core.json_values import Json, JsonObject, copy_json

Trouble = Callable[[Scene, Draws, int], Scene | None]
"""Args: the scene, named chance, and a number that no other task has."""

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
"""Published argument → what it may be called now."""


def renamed(scene: Scene, draws: Draws, number: int) -> Scene | None:
    """One argument of one tool has another name now, and the tool says which."""
    tool = _free_tool(scene, draws)
    if tool is None:
        return None
    old, new = _renaming(scene, tool, draws)
    fault = _fault("schema_drift", tool, rename_args={old: new})
    return _refused_once(scene, tool, [fault], lambda given: _under_new_name(given, old, new))


def ticketed(scene: Scene, draws: Draws, number: int) -> Scene | None:
    """One tool asks for one argument more now, and the instruction says what to give it."""
    tool = _free_tool(scene, draws)
    if tool is None:
        return None
    ticket = f"OPS-{number}"
    asked = draws.pick(
        (
            "Whatever asks for a ticket gets {t}.",
            "This goes under ticket {t}, should a tool want to know.",
        )
    )
    fault = _fault("schema_drift", tool, add_required={"ticket": "text"})
    changed = _refused_once(scene, tool, [fault], lambda given: {**given, "ticket": ticket})
    quoted = called_with(call(tool, ticket=ticket))
    return replace(changed, criteria=(*changed.criteria, quoted)).saying(asked.format(t=ticket))


def misreported(scene: Scene, draws: Draws, number: int) -> Scene | None:
    """One argument has another name now; the code lies about it, and only the message gives it away."""
    tool = _free_tool(scene, draws)
    if tool is None:
        return None
    old, new = _renaming(scene, tool, draws)
    code = draws.pick(("internal_error", "conflict", "unavailable", "not_found"))
    message = draws.pick(
        ("Unexpected failure: {n} was null.", "Internal error near {n}: no value.")
    )
    faults = [
        _fault("adversarial_error", tool, code=code, message=message.format(n=new)),
        _fault("schema_drift", tool, rename_args={old: new}),
    ]
    return _refused_once(scene, tool, faults, lambda given: _under_new_name(given, old, new))


def badge_told(scene: Scene, draws: Draws, number: int) -> Scene | None:
    """One tool wants a badge, which the instruction gives."""
    tool = _free_tool(scene, draws)
    if tool is None:
        return None
    badge = _badge(draws, number)
    asked = draws.pick(
        ("If you are asked for a badge, it is {b}.", "Your badge, where one is wanted: {b}.")
    )
    return _gated(scene, tool, badge, draws).saying(asked.format(b=badge))


def badge_kept(scene: Scene, draws: Draws, number: int) -> Scene | None:
    """The tool that changes something wants a badge, which has to be looked up in the world."""
    tool = next((each for each in scene.tools() if each not in READING_TOOLS), None)
    if tool is None or tool in _struck(scene):
        return None
    look, badge, state, sentence = _KEEPERS[scene.world](scene, _badge(draws, number), number)
    gated = _gated(replace(scene, state=state), tool, badge, draws)
    at = next(index for index, each in enumerate(gated.calls) if "badge" in each.args)
    return replace(gated, calls=(*gated.calls[:at], look, *gated.calls[at:])).saying(sentence)


def silent_source(scene: Scene, draws: Draws, number: int) -> Scene | None:
    """What the story reads does not answer, and the instruction names a copy that does."""
    source = scene.source
    if source is None:
        return None
    copy = f"{source.key}-copy" if "/" not in source.key else f"/mirror{source.key}"
    asked = draws.pick(
        (
            "If {k} does not answer, {c} is a true copy of it.",
            "Of {k} there is a faithful copy, {c}, for the case that it stays silent.",
        )
    )
    fault: JsonObject = {
        "fault_type": "timeout",
        "trigger": {"on_tool": source.tool_name, "when_arg_matches": {source.argument: source.key}},
        "payload": {"timeout_ms": draws.pick((5_000, 10_000, 30_000))},
    }
    silent, answering = (
        Call(source.tool_name, {source.argument: key}) for key in (source.key, copy)
    )
    calls = tuple(
        each
        for made in scene.calls
        for each in ((silent, answering) if made == silent else (made,))
    )
    criteria = tuple(
        called_with(answering) if criterion == called_with(silent) else criterion
        for criterion in scene.criteria
    )
    state = _with_copy(scene.state, source.key, copy)
    changed = replace(
        scene, state=state, calls=calls, criteria=criteria, faults=(*scene.faults, fault)
    )
    return changed.saying(asked.format(k=source.key, c=copy))


def denied(scene: Scene, draws: Draws, number: int) -> Scene | None:
    """What the story comes down to is not allowed, for good: the right thing is to leave it."""
    changing = [
        index for index, made in enumerate(scene.calls) if made.tool_name not in READING_TOOLS
    ]
    at = changing[0] if changing else len(scene.calls) - 1
    tool = scene.calls[at].tool_name
    at = next(index for index, made in enumerate(scene.calls) if made.tool_name == tool)
    tried = scene.calls[at]
    role = draws.pick(ROLES)
    asked = draws.pick(
        (
            "If you are not allowed to, leave everything as it is and give up.",
            "Should that not be yours to do, do nothing about it but give up.",
        )
    )
    return replace(
        scene,
        calls=scene.calls[: at + 1],
        criteria=(tried_any(tried), unchanged()),
        answer="",
        gives_up=f"{tool} takes the role {role}",
        faults=(*scene.faults, _fault("authz", tool, required_role=role)),
    ).saying(asked)


def _struck(scene: Scene) -> set[str]:
    """Return the tools that a fault of the scene strikes."""
    return {
        str(trigger["on_tool"])
        for fault in scene.faults
        if isinstance(trigger := fault["trigger"], dict)
    }


def _free_tool(scene: Scene, draws: Draws) -> str | None:
    """Return a tool of the oracle that no fault strikes yet and whose refusals nothing else depends on."""
    taken = _struck(scene) | scene.telling
    free = [made.tool_name for made in scene.calls if made.args and made.tool_name not in taken]
    return draws.pick(list(dict.fromkeys(free))) if free else None


def _renaming(scene: Scene, tool: str, draws: Draws) -> tuple[str, str]:
    arguments = next(made.args for made in scene.calls if made.tool_name == tool)
    old = draws.pick(list(arguments))
    return old, draws.pick(_NEW_NAMES[old])


def _under_new_name(given: Mapping[str, Json], old: str, new: str) -> dict[str, Json]:
    return {new if name == old else name: value for name, value in given.items()}


def _fault(family: str, tool: str, **payload: Json) -> JsonObject:
    return {"fault_type": family, "trigger": {"on_tool": tool}, "payload": payload}


def _refused_once(
    scene: Scene,
    tool: str,
    faults: list[JsonObject],
    adapt: Callable[[Mapping[str, Json]], Mapping[str, Json]],
) -> Scene:
    """Let the oracle call the tool once as published, and from then on as it wants to be called now."""
    first = next(index for index, made in enumerate(scene.calls) if made.tool_name == tool)
    adapted = [
        Call(tool, adapt(made.args)) if made.tool_name == tool else made
        for made in scene.calls[first:]
    ]
    calls = (*scene.calls[: first + 1], *adapted)
    return replace(scene, calls=calls, faults=(*scene.faults, *faults))


def _gated(scene: Scene, tool: str, badge: str, draws: Draws) -> Scene:
    fault = _fault(
        "authz", tool, required_role=draws.pick(ROLES), required_token=badge, token_field="badge"
    )
    return _refused_once(scene, tool, [fault], lambda given: {**given, "badge": badge})


def _badge(draws: Draws, number: int) -> str:
    return f"{draws.pick('KLMNPR')}{draws.below(900) + 100}-{number}"


_Kept = tuple[Call, str, JsonObject, str]
"""How the badge is looked up, the badge, the state that holds it, and the sentence that says where."""


def _kept_by_account(scene: Scene, badge: str, number: int) -> _Kept:
    keeper = f"keeper-{number}"
    state = _added(
        scene.state, "accounts", keeper, {"id": keeper, "status": "active", "badge": badge}
    )
    return (
        call("get_account", id=keeper),
        badge,
        state,
        f"The badge for it stands on the account {keeper}.",
    )


def _kept_by_file(scene: Scene, badge: str, number: int) -> _Kept:
    path = f"/keys/badge_{number}.txt"
    state = _added(scene.state, "files", path, badge)
    return call("read_file", path=path), badge, state, f"The badge for it lies in {path}."


def _kept_by_job(scene: Scene, badge: str, number: int) -> _Kept:
    name = f"zz_badge_{number}"
    jobs = scene.state["jobs"]
    assert isinstance(jobs, list)
    state: JsonObject = {"jobs": [*jobs, {"name": name, "cron": "59 23 31 12 *", "command": badge}]}
    return (
        call("list_jobs"),
        badge,
        state,
        f"The badge for it is what the job {name} has for a command.",
    )


# On a shelf of documents nothing is ever changed, so nothing there is gated like this.
_KEEPERS: Mapping[str, Callable[[Scene, str, int], _Kept]] = {
    "crud": _kept_by_account,
    "files": _kept_by_file,
    "scheduling": _kept_by_job,
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
            (found,) = (
                each for each in entries if isinstance(each, dict) and each.get("id") == key
            )
            return {**state, collection: [*entries, {**found, "id": copy}]}
    raise ValueError(f"nothing in the state is called {key!r}")
