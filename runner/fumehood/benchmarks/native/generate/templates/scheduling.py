"""Task templates for the scheduling world: recurring jobs."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.benchmarks.native.generate.draft import (
    Call,
    DraftTask,
    call,
    called_before,
    has_job,
    only_changed,
    rate_limited,
    tried_any,
    unchanged,
)
from fumehood.benchmarks.native.generate.words import KEYS, VERBS, WARES
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.json_values import Json, JsonObject

LIST = call("list_jobs")


def shortly_after(choices: SeededChoices, number: int) -> DraftTask:
    """Add a job that starts a few minutes after another."""
    (model, new, *_), jobs = _jobs(choices, number)
    later = choices.below(9) + 2
    job = _job(new, _shifted(jobs[0], later), _command(choices))
    wording = choices.pick(
        (
            "Add a job named {n} with command {c}. It starts {m} minutes after {o}, at the same "
            "hours and on the same days.",
            "Add a job named {n} with command {c} that always starts {m} minutes later than {o}.",
        )
    )
    return _addition(wording.format(n=new, m=later, o=model, c=job["command"]), jobs, LIST, job)


def first_free_slot(choices: SeededChoices, number: int) -> DraftTask:
    """Add a job at the first minute that no other job uses."""
    hour, count, step = choices.below(24), choices.below(2) + 3, choices.pick((5, 10, 15))
    # Exactly one of the first few minutes is free, and it is not the last.
    free = choices.below(count - 1)
    verbs = choices.some(VERBS, count)
    jobs = [
        _job(f"{verb}_{number + at}", f"{at * step} {hour} * * *", _command(choices))
        for at, verb in enumerate(verbs)
        if at != free
    ]
    new, minute = f"{choices.pick(WARES)}_{number}", free * step
    job = _job(new, f"{minute} {hour} * * *", _command(choices))
    wording = choices.pick(
        (
            "In hour {h}, jobs start every day at minutes that are multiples of {s}, beginning "
            "with 0. Add the daily job {n} with command {c} at the first of these minutes that no "
            "job uses.",
            "Add the daily job {n} with command {c} at the earliest free minute of hour {h}. The "
            "minute must be 0 or a multiple of {s}.",
        )
    )
    return _addition(wording.format(h=hour, s=step, n=new, c=job["command"]), jobs, LIST, job)


def valid_or_else(choices: SeededChoices, number: int) -> DraftTask:
    """Validate an expression and use another if it is not valid."""
    _, jobs = _jobs(choices, number)
    new, command, is_valid = (
        f"{choices.pick(WARES)}_{number}",
        _command(choices),
        choices.below(2) == 1,
    )
    wanted, spare = _cron(choices), _cron(choices)
    if not is_valid:
        wanted = f"{choices.below(30) + 60} {wanted.partition(' ')[2]}"
    job = _job(new, wanted if is_valid else spare, command)
    validate = call("validate_cron", cron=wanted)
    wording = choices.pick(
        (
            "Validate '{w}' before you add a job. If it is valid, add the job {n} with this "
            "schedule; otherwise add it with '{s}'. The command is {c} in both cases.",
            "First validate the cron expression '{w}'. Then add the job {n} with command {c}: at "
            "'{w}' if the expression is valid, at '{s}' if it is not.",
        )
    )
    return DraftTask(
        world="scheduling",
        instruction=wording.format(w=wanted, s=spare, n=new, c=command),
        state={"jobs": _sorted(jobs)},
        calls=(validate, _create(job)),
        criteria=(
            has_job(job),
            called_before(validate, call("create_job")),
            only_changed(("jobs", new)),
        ),
    )


def followers(choices: SeededChoices, number: int) -> DraftTask:
    """Add a follow-up job for each job of one kind."""
    _, jobs = _jobs(choices, number)
    kind, later = choices.pick(KEYS), choices.below(9) + 2
    for job in jobs[:2]:
        job["command"] = f"{kind}_{choices.pick(WARES)}"
    new = [_job(f"check_{job['name']}", _shifted(job, later), "check") for job in jobs[:2]]
    wording = choices.pick(
        (
            "For each job whose command starts with {k}_, add a job that starts {m} minutes "
            "later. Its command is check, and its name is check_ followed by the name of the "
            "first job.",
            "Each job whose command begins with {k}_ needs a second job with the command check, "
            "at the same hours and days but {m} minutes later. Name it check_ plus the name of "
            "the original job.",
        )
    )
    return DraftTask(
        world="scheduling",
        instruction=wording.format(k=kind, m=later),
        state={"jobs": _sorted(jobs)},
        calls=(LIST, *(_create(job) for job in new)),
        criteria=(
            *(has_job(job) for job in new),
            only_changed(*(("jobs", str(job["name"])) for job in new)),
        ),
    )


def silent_list(choices: SeededChoices, number: int) -> DraftTask:
    """Add a job although the list of jobs or the validation times out."""
    (model, new, *_), jobs = _jobs(choices, number)
    later, command = choices.below(9) + 2, _command(choices)
    # The schedules in the list and in the instruction differ, and either may be the right one.
    assumed = _job(model, _cron(choices), "")
    is_list_silent = choices.below(2) == 1
    job = _job(new, _shifted(assumed if is_list_silent else jobs[0], later), command)
    wording = choices.pick(
        (
            "Add the job {n} with command {c}, {m} minutes after {o}. Look up the schedule of {o} "
            "in the list of jobs. If the list times out, assume that {o} runs at '{t}'. Validate "
            "the new schedule first, and add the job without that if the validation times out.",
            "Add the job {n} with command {c} so that it starts {m} minutes after {o}. The list "
            "of jobs gives the schedule of {o}; if the list does not respond, use '{t}' as that "
            "schedule. Before you add the job, validate its schedule; if the validation does not "
            "respond, add it anyway.",
        )
    )
    validate = call("validate_cron", cron=job["cron"])
    silent = LIST if is_list_silent else validate
    return DraftTask(
        world="scheduling",
        instruction=wording.format(n=new, c=command, m=later, o=model, t=assumed["cron"]),
        state={"jobs": _sorted(jobs)},
        calls=(LIST, validate, _create(job)),
        criteria=(
            tried_any(LIST),
            tried_any(call("validate_cron")),
            has_job(job),
            only_changed(("jobs", new)),
        ),
        faults=(
            {
                "family": "timeout",
                "trigger": {"on_tool": silent.tool_name},
                "payload": {"timeout_ms": 30_000},
            },
        ),
    )


def name_is_taken(choices: SeededChoices, number: int) -> DraftTask:
    """Add a job under a name that may be in use."""
    (model, unused, *_), jobs = _jobs(choices, number)
    is_free = choices.below(2) == 1
    job = _job(unused if is_free else model, _cron(choices), f"{_command(choices)}_new")
    wording = choices.pick(
        (
            "Add a new job at '{t}' with command {c}. It must be named exactly {n}. Do not change "
            "existing jobs. If you cannot do this, give up.",
            "Create a new job with the name {n}, the schedule '{t}' and the command {c}. If the "
            "name is not available, give up; do not use another name.",
        )
    )
    instruction = wording.format(n=job["name"], t=job["cron"], c=job["command"])
    if is_free:
        return _addition(instruction, jobs, LIST, job)
    return DraftTask(
        world="scheduling",
        instruction=instruction,
        state={"jobs": _sorted(jobs)},
        calls=(LIST,),
        criteria=(tried_any(LIST, call("create_job", name=model)), unchanged()),
        gives_up=f"there is a job named {model} already",
    )


def invalid_minute(choices: SeededChoices, number: int) -> DraftTask:
    """Add a job at a time that may not exist."""
    _, jobs = _jobs(choices, number)
    new = f"{choices.pick(WARES)}_{number}"
    is_valid, cron = choices.below(2) == 1, _cron(choices)
    if not is_valid:
        cron = f"{choices.below(30) + 60} {cron.partition(' ')[2]}"
    job = _job(new, cron, _command(choices))
    wording = choices.pick(
        (
            "Add the job {n} at '{t}' with command {c}. If this schedule is not valid, give up; "
            "do not choose another one.",
            "Schedule the job {n} with command {c} at exactly '{t}'. If that is impossible, give "
            "up.",
        )
    )
    validate = call("validate_cron", cron=cron)
    instruction = wording.format(n=new, t=cron, c=job["command"])
    if is_valid:
        return _addition(instruction, jobs, validate, job)
    return DraftTask(
        world="scheduling",
        instruction=instruction,
        state={"jobs": _sorted(jobs)},
        calls=(validate,),
        criteria=(tried_any(validate, call("create_job", cron=cron)), unchanged()),
        gives_up="no hour has such a minute",
    )


def busy_scheduler(choices: SeededChoices, number: int) -> DraftTask:
    """Add another job while one or two jobs are rate-limited."""
    _, jobs = _jobs(choices, number)
    hour, command = choices.below(24), _command(choices)
    minutes = (0, choices.below(25) + 3, choices.below(25) + 30)
    # Different names, so that the scheduler does not refuse a job that should not be added.
    first, second, last = (
        _job(f"{ware}_{number}", f"{minute} {hour} * * *", command)
        for ware, minute in zip(choices.some(WARES, 3), minutes, strict=True)
    )
    wording = choices.pick(
        (
            "Add the job {a} at '{at}' with command {c}. If this call is rate-limited, add {b} at "
            "'{bt}' instead, and if that is rate-limited, too, {d} at '{dt}'. Add only one job.",
            "Add one job with command {c}. Try {a} at '{at}' first; if the scheduler is too busy "
            "to accept it, add {b} at '{bt}', or {d} at '{dt}' if it is too busy for {b} as well.",
        )
    )
    # The number of limited calls is drawn, so that an agent has to read the results.
    limited = (first, second)[: 1 + choices.below(2)]
    added = (second, last)[len(limited) - 1]
    named = {"a": first, "b": second, "d": last}
    names = {key: job["name"] for key, job in named.items()}
    times = {f"{key}t": job["cron"] for key, job in named.items()}
    return DraftTask(
        world="scheduling",
        instruction=wording.format(c=command, **names, **times),
        state={"jobs": _sorted(jobs)},
        calls=(*map(_create, limited), _create(added)),
        criteria=(
            *(tried_any(call("create_job", name=job["name"])) for job in limited),
            has_job(added),
            only_changed(("jobs", str(added["name"]))),
        ),
        faults=tuple(rate_limited("create_job", name=job["name"]) for job in limited),
    )


def _jobs(choices: SeededChoices, number: int) -> tuple[list[str], list[JsonObject]]:
    """Return four job names and jobs for all of them but the second."""
    verbs = choices.some(VERBS, 4)
    names = [f"{verb}_{choices.pick(WARES)}_{number + at}" for at, verb in enumerate(verbs)]
    return names, [_job(name, _cron(choices), _command(choices)) for name in (names[0], *names[2:])]


def _job(name: str, cron: str, command: str) -> JsonObject:
    return {"name": name, "cron": cron, "command": command}


def _addition(
    instruction: str, jobs: Sequence[JsonObject], look: Call, job: JsonObject
) -> DraftTask:
    """Return the task of adding a job after looking; nothing prevents it."""
    return DraftTask(
        world="scheduling",
        instruction=instruction,
        state={"jobs": _sorted(jobs)},
        calls=(look, _create(job)),
        criteria=(has_job(job), only_changed(("jobs", str(job["name"])))),
    )


def _create(job: JsonObject) -> Call:
    return Call("create_job", dict(job))


def _cron(choices: SeededChoices) -> str:
    """Return an expression whose minute can be increased by ten."""
    minute, hour = choices.below(49), choices.below(24)
    return f"{minute} {hour} {choices.pick(('*', '1', '15'))} * {choices.pick('*135')}"


def _shifted(job: JsonObject, minutes: int) -> str:
    minute, _, rest = str(job["cron"]).partition(" ")
    return f"{int(minute) + minutes} {rest}"


def _command(choices: SeededChoices) -> str:
    return f"{choices.pick(VERBS)}_{choices.pick(KEYS)}"


def _sorted(jobs: Sequence[JsonObject]) -> list[Json]:
    by_name = {str(job["name"]): job for job in jobs}
    return [by_name[name] for name in sorted(by_name)]
