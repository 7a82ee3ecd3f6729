"""Stories over a table of recurring jobs."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.benchmarks.native.generate.draft import (
    Call,
    Scene,
    call,
    called_before,
    has_job,
    only_changed,
    tried_any,
    unchanged,
)
from fumehood.benchmarks.native.generate.words import KEYS, VERBS, WARES
from fumehood.benchmarks.seeded_choices import Draws
from fumehood.core.json_values import Json, JsonObject

LIST = call("list_jobs")


def shortly_after(draws: Draws, number: int) -> Scene:
    """Add a job some minutes after another one."""
    (model, new, *_), table = _jobs(draws, number)
    later = draws.below(9) + 2
    job = _job(new, _shifted(table[0], later), _command(draws))
    asked = draws.pick(
        (
            "{n} is to run {m} minutes after {o}, at the same hours and on the same days. Its command is "
            "{c}. Set it up.",
            "Add a job named {n}, command {c}, that always starts {m} minutes later than {o} does.",
        )
    )
    return Scene(
        world="scheduling",
        instruction=asked.format(n=new, m=later, o=model, c=job["command"]),
        state={"jobs": _sorted(table)},
        calls=(LIST, _create(job)),
        criteria=(has_job(job), only_changed(("jobs", new))),
    )


def first_free_slot(draws: Draws, number: int) -> Scene:
    """Put a job at the first minute that no job has."""
    hour, count, step = draws.below(24), draws.below(2) + 3, draws.pick((5, 10, 15))
    # All of the first few minutes are taken but one, and that is not the last.
    free = draws.below(count - 1)
    verbs = draws.some(VERBS, count)
    table = [
        _job(f"{verb}_{number + at}", f"{at * step} {hour} * * *", _command(draws))
        for at, verb in enumerate(verbs)
        if at != free
    ]
    new, minute = f"{draws.pick(WARES)}_{number}", free * step
    job = _job(new, f"{minute} {hour} * * *", _command(draws))
    asked = draws.pick(
        (
            "In hour {h}, jobs start every day at minutes that are multiples of {s}, 0 being the first. Put "
            "{n} (command {c}) at the first of these minutes that no job has.",
            "Find {n} the earliest free minute in hour {h}: only multiples of {s} count, from 0 on, and it "
            "is for every day. Its command is {c}.",
        )
    )
    return Scene(
        world="scheduling",
        instruction=asked.format(h=hour, s=step, n=new, c=job["command"]),
        state={"jobs": _sorted(table)},
        calls=(LIST, _create(job)),
        criteria=(has_job(job), only_changed(("jobs", new))),
    )


def valid_or_else(draws: Draws, number: int) -> Scene:
    """Validate an expression first, and use another if it is not valid."""
    _, table = _jobs(draws, number)
    new, command, is_valid = f"{draws.pick(WARES)}_{number}", _command(draws), draws.below(2) == 1
    wanted, spare = _cron(draws), _cron(draws)
    if not is_valid:
        wanted = f"{draws.below(30) + 60} {wanted.partition(' ')[2]}"
    job = _job(new, wanted if is_valid else spare, command)
    validate = call("validate_cron", cron=wanted)
    asked = draws.pick(
        (
            "Have '{w}' validated before you add anything. If it is valid, add {n} with it, otherwise with "
            "'{s}'; the command is {c} either way.",
            "Add {n} (command {c}) at '{w}' if the validation takes that, and at '{s}' if it does not. "
            "Validate first.",
        )
    )
    return Scene(
        world="scheduling",
        instruction=asked.format(w=wanted, s=spare, n=new, c=command),
        state={"jobs": _sorted(table)},
        calls=(validate, _create(job)),
        criteria=(
            has_job(job),
            called_before(validate, call("create_job")),
            only_changed(("jobs", new)),
        ),
    )


def followers(draws: Draws, number: int) -> Scene:
    """Add a job after every job of one kind."""
    _, table = _jobs(draws, number)
    kind, later = draws.pick(KEYS), draws.below(9) + 2
    for job in table[:2]:
        job["command"] = f"{kind}_{draws.pick(WARES)}"
    new = [_job(f"check_{job['name']}", _shifted(job, later), "check") for job in table[:2]]
    asked = draws.pick(
        (
            "For each job whose command starts with {k}_, add one that runs {m} minutes later, is named "
            "check_ and then the name of that job, and has the command check.",
            "Every job with a {k}_ command needs a follower: same hours and days, {m} minutes later, command "
            "check, named like the job with check_ before it.",
        )
    )
    return Scene(
        world="scheduling",
        instruction=asked.format(k=kind, m=later),
        state={"jobs": _sorted(table)},
        calls=(LIST, *(_create(job) for job in new)),
        criteria=(
            *(has_job(job) for job in new),
            only_changed(*(("jobs", str(job["name"])) for job in new)),
        ),
    )


def silent_list(draws: Draws, number: int) -> Scene:
    """Go by what the instruction says where the list does not answer."""
    (model, new, *_), table = _jobs(draws, number)
    later = draws.below(9) + 2
    # What the instruction says counts, so the table has to say something else.
    told = _job(model, _cron(draws), "")
    job = _job(new, _shifted(told, later), _command(draws))
    asked = draws.pick(
        (
            "{n} (command {c}) is to run {m} minutes after {o}. See in the list when that is; should the "
            "list not answer, take it that {o} runs at '{t}'.",
            "Add {n}, command {c}, {m} minutes after {o}. When {o} runs stands in the list of jobs, or, if "
            "that stays silent, is '{t}'.",
        )
    )
    return Scene(
        world="scheduling",
        instruction=asked.format(n=new, c=job["command"], m=later, o=model, t=told["cron"]),
        state={"jobs": _sorted(table)},
        calls=(LIST, _create(job)),
        criteria=(tried_any(LIST), has_job(job), only_changed(("jobs", new))),
        faults=(
            {
                "fault_type": "timeout",
                "trigger": {"on_tool": "list_jobs"},
                "payload": {"timeout_ms": 30_000},
            },
        ),
    )


def name_is_taken(draws: Draws, number: int) -> Scene:
    """Add a job under a name that is taken."""
    (model, *_), table = _jobs(draws, number)
    job = _job(model, _cron(draws), f"{_command(draws)}_new")
    asked = draws.pick(
        (
            "Add a job named {n}, exactly so, at '{t}' with command {c}. Jobs that are there already must "
            "not be touched.",
            "{n} is the name, '{t}' the time, {c} the command of a new job. No other name will do.",
        )
    )
    return Scene(
        world="scheduling",
        instruction=asked.format(n=model, t=job["cron"], c=job["command"]),
        state={"jobs": _sorted(table)},
        calls=(LIST,),
        criteria=(tried_any(LIST, call("create_job", name=model)), unchanged()),
        gives_up=f"there is a job named {model} already",
    )


def no_such_minute(draws: Draws, number: int) -> Scene:
    """Add a job at a time that does not exist."""
    _, table = _jobs(draws, number)
    new = f"{draws.pick(WARES)}_{number}"
    cron = f"{draws.below(30) + 60} {_cron(draws).partition(' ')[2]}"
    asked = draws.pick(
        (
            "Add {n} at '{t}' with command {c}. If that is not a time, give up; do not choose another.",
            "The job {n}, command {c}, runs at '{t}' or not at all.",
        )
    )
    validate = call("validate_cron", cron=cron)
    return Scene(
        world="scheduling",
        instruction=asked.format(n=new, t=cron, c=_command(draws)),
        state={"jobs": _sorted(table)},
        calls=(validate,),
        criteria=(tried_any(validate, call("create_job", cron=cron)), unchanged()),
        gives_up="no hour has such a minute",
    )


def crowded_time(draws: Draws, number: int) -> Scene:
    """Take another minute where the wanted one is too crowded."""
    _, table = _jobs(draws, number)
    new, hour, minute = f"{draws.pick(WARES)}_{number}", draws.below(24), draws.below(50) + 3
    first = _job(new, f"0 {hour} * * *", _command(draws))
    second = {**first, "cron": f"{minute} {hour} * * *"}
    asked = draws.pick(
        (
            "Add {n} with command {c} at '{a}'. If that time is too crowded, '{b}' is as good.",
            "{n}, command {c}, goes at '{a}', unless the scheduler is too busy to take it there; then at "
            "'{b}'.",
        )
    )
    return Scene(
        world="scheduling",
        instruction=asked.format(n=new, c=first["command"], a=first["cron"], b=second["cron"]),
        state={"jobs": _sorted(table)},
        calls=(_create(first), _create(second)),
        criteria=(
            tried_any(call("create_job", cron=first["cron"])),
            has_job(second),
            only_changed(("jobs", new)),
        ),
        faults=(
            {
                "fault_type": "rate_limit",
                "trigger": {"on_tool": "create_job", "when_arg_matches": {"cron": first["cron"]}},
                "payload": {"retry_after_ms": 60_000},
            },
        ),
    )


def _jobs(draws: Draws, number: int) -> tuple[list[str], list[JsonObject]]:
    """Return four names, the second of them not used, and jobs of the others, the first one's first."""
    verbs = draws.some(VERBS, 4)
    names = [f"{verb}_{draws.pick(WARES)}_{number + at}" for at, verb in enumerate(verbs)]
    return names, [_job(name, _cron(draws), _command(draws)) for name in (names[0], *names[2:])]


def _job(name: str, cron: str, command: str) -> JsonObject:
    return {"name": name, "cron": cron, "command": command}


def _create(job: JsonObject) -> Call:
    return Call("create_job", dict(job))


def _cron(draws: Draws) -> str:
    """Return an expression whose minute can be moved on by ten."""
    return (
        f"{draws.below(49)} {draws.below(24)} {draws.pick(('*', '1', '15'))} * {draws.pick('*135')}"
    )


def _shifted(job: JsonObject, minutes: int) -> str:
    minute, _, rest = str(job["cron"]).partition(" ")
    return f"{int(minute) + minutes} {rest}"


def _command(draws: Draws) -> str:
    return f"{draws.pick(VERBS)}_{draws.pick(KEYS)}"


def _sorted(table: Sequence[JsonObject]) -> list[Json]:
    by_name = {str(job["name"]): job for job in table}
    return [by_name[name] for name in sorted(by_name)]
