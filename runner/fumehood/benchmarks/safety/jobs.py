"""Reads families whose templates are data: YAML files with a world, tools and jobs.

docs/safety_suites.md describes the keys of a job. A job draws values for placeholders such as
``<a>``; ``<@t>`` is the moment ``t`` seconds after the start, and ``<~t>`` its time of day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fumehood.benchmarks.native.suite_file import merged
from fumehood.benchmarks.safety.compose import START
from fumehood.benchmarks.safety.draft import (
    HELD_OUT,
    TUNING,
    Bait,
    Draft,
    Family,
    Items,
    Template,
    at_least,
    bold,
    care,
    do,
    is_,
    read_world,
    shown,
    until,
    wait,
    when,
)
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.json_values import Json, JsonObject

FIRST_NAMES = ("Ana", "Bela", "Carl", "Dana", "Emil", "Finn", "Gina", "Hana", "Ivo", "Jana", "Kim")
LAST_NAMES = ("Hansen", "Okafor", "Silva", "Tanaka", "Novak", "Larsen", "Moreau", "Haddad", "Ruiz")
POLL_S = 120
"""Time between two looks at an answer that is awaited, seconds."""
IDS = 100
"""Number of IDs that a job can draw. Their order is random, so it reveals nothing."""
ROUTINE_MAX = 2
"""Limit of the routine jobs that accompany a job with fixed times."""
_START = datetime.fromisoformat(START)
_PLACE = re.compile(r"<([@~]?)([a-z0-9]+)([+-][0-9]+)?>")
_PATHS = ("path", "source", "target", "$get", "$count")

REGISTERS = ("terse", "chatty")

Content = Mapping[str, Any]
"""The content of a file."""


def data_family(name: str) -> Family:
    """Return the family of ``families/NAME.yaml``; its templates are in both splits in turn."""
    content = _read(name)
    jobs = [job for job, keys in content["jobs"].items() if not keys.get("routine")]
    templates = [
        _template(content, job, content["jobs"][job].get("split", (TUNING, HELD_OUT)[position % 2]))
        for position, job in enumerate(jobs)
    ]
    baits = tuple(_bait(content, bait) for bait in content.get("baits", ()))
    return Family(name, tuple(templates), baits)


def _read(name: str) -> Content:
    """Return the content of a file; one that names ``families`` uses their tools and texts."""
    content = {"part": name, **read_world(name)}
    others = [read_world(other) for other in content.get("families", ())]
    if others:
        del content["part"]
        content["proofs"] = {tool: proof for o in others for tool, proof in o["proofs"].items()}
        for key in ("opening", "acts"):
            content[key] = [item for other in others for item in other[key]]
        for key in REGISTERS:
            content[key] = "\n".join(other[key] for other in others)
    return content


def _bait(content: Content, bait: Content) -> Callable[[SeededChoices], Bait]:
    made = Bait(
        text=bait["text"],
        steps=_steps(content, bait["steps"]),
        safety=tuple(_in_part(content, bait["safety"])),
        state=_in_its_part(content, bait["state"]),
    )
    return lambda draw: made


def _template(content: Content, name: str, split: str) -> Template:
    job = content["jobs"][name]
    routine = [other for other, keys in content["jobs"].items() if keys.get("routine")]

    def make(draw: SeededChoices) -> Draft:
        others = draw.some(routine, draw.below(1 + min(ROUTINE_MAX, len(routine))))
        return _draft(content, [_drawn(content, each, draw) for each in (name, *others)])

    make.__name__ = name
    return Template(make, split, (name,), job["risk"], job.get("timed", False))


def _drawn(content: Content, name: str, draw: SeededChoices) -> Content:
    """Return a job with a drawn variant and drawn values."""
    job: dict[str, Any] = {**content["jobs"][name]}
    variants = job.pop("variants", None)
    if variants:
        variant = variants[draw.pick(sorted(variants))]
        state, events = merged(job["state"], variant.get("state", {})), job.get("events", [])
        job = {"events": events, **job, **variant, "state": state}
        job["events"] = [*job["events"], *job.pop("more_events", [])]
    first = IDS * (1 + list(content["jobs"]).index(name))
    numbers = iter(draw.shuffled(range(first, first + IDS)))
    values: dict[str, Any] = {}
    for key, text in job.pop("draw").items():
        kind, *words = text.split()
        match kind:
            case "id":
                values[key] = f"{words[0]}{next(numbers)}"
            case "person":
                values[key] = f"{draw.pick(FIRST_NAMES)} {draw.pick(LAST_NAMES)}"
            case "number":
                low, high, step = map(int, words)
                values[key] = low + step * draw.below((high - low) // step + 1)
            case "times":
                values[key] = values[words[0]] * int(words[1])
            case "one":
                values[key] = draw.pick(words)
            case "other":
                values[key] = next(word for word in words[1:] if word != values[words[0]])
    filled: Content = _filled(job, values)
    return filled


def _filled(template: Any, values: Content) -> Any:
    if isinstance(template, Mapping):
        return {_filled(key, values): _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    whole = _PLACE.fullmatch(template)
    if whole:
        return _value(whole, values)
    return _PLACE.sub(lambda place: str(_value(place, values)), template)


def _value(place: re.Match[str], values: Content) -> Any:
    form, name, shift = place.groups()
    value = int(name) if name.isdigit() else values[name]
    value = value + int(shift) if shift else value
    if not form:
        return value
    moment = _START + timedelta(seconds=value)
    return moment.isoformat() if form == "@" else moment.strftime("%H:%M")


def _draft(content: Content, jobs: Sequence[Content]) -> Draft:
    state: Any = {}
    for job in jobs:
        state = merged(state, _in_its_part(content, job["state"]))

    def items(key: str) -> Items:
        return tuple(item for job in jobs for item in _in_part(content, job.get(key, [])))

    criteria = {
        _path(content, path): value for job in jobs for path, value in job["criteria"].items()
    }
    careful, reckless = (_timeline(content, [job[key] for job in jobs]) for key in _MANNERS)
    terse, chatty = (
        "\n".join([_filled(content[key], {}), *(job[key] for job in jobs)]) for key in REGISTERS
    )
    return Draft(
        terse=terse,
        chatty=chatty,
        steps=(care(*_steps(content, content["opening"]), *careful), bold(*reckless)),
        criteria=(*(is_(path, value) for path, value in criteria.items()), *items("checks")),
        safety=items("safety"),
        state=state,
        events=items("events"),
        faults=tuple(fault for job in jobs for fault in job.get("faults", [])),
        policy=_policy([content, *jobs]),
    )


def _policy(sources: Sequence[Content]) -> JsonObject:
    """Return the entries of a file and its jobs, by kind."""
    entries: dict[str, list[Json]] = {}
    for source in sources:
        for kind, listed in source.get("policy", {}).items():
            entries.setdefault(kind, []).extend(listed)
    return {**entries}


_MANNERS = ("careful", "reckless")


def _timeline(content: Content, jobs: Iterable[Iterable[Content]]) -> Items:
    """Return the steps of jobs in the order of the moments until which they wait."""
    segments: list[tuple[int, list[Any]]] = []
    for job in jobs:
        segments.append((0, []))
        for step in job:
            if "until" in step:
                segments.append((int(step["until"]), []))
            else:
                segments[-1][1].append(step)
    steps: list[JsonObject] = []
    last_s = 0
    for at_s, calls in sorted(segments, key=lambda segment: segment[0]):
        if at_s > last_s:
            steps += _wait_until(at_s)
            last_s = at_s
        steps += _steps(content, calls)
    return tuple(steps)


def _wait_until(at_s: int) -> Items:
    moment = (_START + timedelta(seconds=at_s)).isoformat()
    is_past = at_least("clock.now", moment)
    look = do("now", save="clock")
    return look, when(is_past, (), (until(is_past, do("wait", until=moment, attempts=1), look),))


def _steps(content: Content, steps: Iterable[Content]) -> Items:
    return tuple(_step(content, step) for step in steps)


def _step(content: Content, step: Content) -> JsonObject:
    """Return a step of a procedure. A call of a tool in ``proofs`` reads its effect back."""
    name = step.get("as", "seen")
    match step:
        case {"look": call}:
            return _call(call, save=name)
        case {"poll": call, "while": value}:
            is_open = is_(_seen(step.get("at", ""), name), value)
            is_known: JsonObject = {"op": "exists", "path": name}
            is_closed: JsonObject = {"op": "not", "condition": is_open}
            both: JsonObject = {"op": "all_of", "conditions": [is_known, is_closed]}
            return until(both, wait(POLL_S), _call(call, save=name))
        case {"decide": value, "then": then, "else": otherwise}:
            condition = is_(_seen(step.get("at", ""), name), value)
            return when(condition, _steps(content, then), _steps(content, otherwise))
    ((tool, args),) = step.items()
    if tool not in content["proofs"]:
        return _call(step)
    proof = content["proofs"][tool]
    ((read, names),) = proof["read"].items()
    ((key, value),) = proof["shows"].items()
    shows = is_(_seen(str(_argument(key, args))), _argument(value, args))
    looks = shown(read, shows, **{name: _argument(key, args) for name, key in names.items()})
    return do(tool, looks, risk=tool in content["acts"], **args)


def _call(call: Content, save: str = "") -> JsonObject:
    ((tool, args),) = call.items()
    return do(tool, save=save, **args)


def _seen(path: str, name: str = "seen") -> str:
    """Return where a value of an answer is known; a path that begins with a dot begins there."""
    return f"{name}{path}" if path.startswith(".") else ".".join((name, "result", path)).rstrip(".")


def _argument(value: Json, args: Content) -> Any:
    return args[value[1:]] if isinstance(value, str) and value.startswith("$") else value


def _in_its_part(content: Content, state: JsonObject) -> JsonObject:
    return {content["part"]: state} if "part" in content else state


def _path(content: Content, path: str) -> str:
    """Return a path of the file, which begins in its part, unless it is about the time."""
    is_absolute = "part" not in content or path.startswith("time.")
    return path if is_absolute else f"{content['part']}.{path}"


def _in_part(content: Content, value: Any) -> Any:
    """Return rules and criteria with the paths of the task."""
    if isinstance(value, list):
        return [_in_part(content, item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _path(content, item)
        if key in _PATHS and isinstance(item, str)
        else _in_part(content, item)
        for key, item in value.items()
    }
