"""Goals over a table of recurring jobs."""

from __future__ import annotations

from fumehood.benchmarks.seeded_choices import Draws
from fumehood.benchmarks.toolmisuse.generate.goal import Entity, Goal
from fumehood.benchmarks.toolmisuse.generate.words import THINGS, VERBS
from fumehood.core.json_values import JsonObject

_CREATE = (
    "Create scheduler job {name} with cron '{cron}' and command {command}.",
    "Add a cron job {name}: '{cron}', command {command}.",
    "Register job {name} at '{cron}' with command {command}.",
    "Please add a cron job {name} that fires at '{cron}', command {command}.",
    "Register job {name} on the schedule '{cron}'; it is to run {command}.",
    "Create scheduler job {name} ('{cron}') and let it run {command}.",
)
_VALIDATE = (
    "Validate '{cron}' for note {number}.",
    "Check whether '{cron}', as in note {number}, is a cron expression.",
    "Run cron validation on '{cron}' from note {number}.",
    "Before it goes into note {number}, validate '{cron}'.",
    "Note {number} mentions '{cron}'; check whether that is valid.",
)
"""With the number, because short expressions recur."""

_LIST = (
    "List the jobs for note {number}.",
    "Show all jobs; note {number} needs them.",
    "Note {number} asks for a list: show the jobs.",
)

_BAD_CRONS_OUT_OF = 5
"""One expression out of so many is not valid."""


def create_job(entity: Entity, draws: Draws) -> Goal:
    """Add one job."""
    name = f"{draws.pick(THINGS)}_{entity.split}_{entity.number}"
    cron, command = _cron(draws), _command(draws)
    job: JsonObject = {"name": name, "cron": cron, "command": command}
    return Goal(
        instruction=draws.pick(_CREATE).format(**job),
        state=_table(entity, draws),
        tool_name="create_job",
        arguments=job,
        checks=({"op": "in", "path": "jobs", "value": job},),
        output={"job.name": name},
    )


def validate_cron(entity: Entity, draws: Draws) -> Goal:
    """Tell whether one expression is valid."""
    valid = draws.below(_BAD_CRONS_OUT_OF) > 0
    cron = _cron(draws) if valid else f"{60 + draws.below(40)} {_cron(draws).partition(' ')[2]}"
    return Goal(
        instruction=draws.pick(_VALIDATE).format(cron=cron, number=entity.number),
        state=_table(entity, draws),
        tool_name="validate_cron",
        arguments={"cron": cron},
        checks=(),
        output={"cron": cron, "valid": valid},
    )


def list_jobs(entity: Entity, draws: Draws) -> Goal:
    """List the jobs."""
    state = _table(entity, draws)
    return Goal(
        instruction=draws.pick(_LIST).format(number=entity.number),
        state=state,
        tool_name="list_jobs",
        arguments={},
        checks=(),
        output={"jobs": state["jobs"]},
    )


def _cron(draws: Draws) -> str:
    fields = [
        str(draws.below(60)),
        str(draws.below(24)),
        str(draws.below(28) + 1),
        str(draws.below(12) + 1),
    ]
    weekday = draws.pick(("*", str(draws.below(7))))
    # Minutes and hours are always numbers, so that two tasks seldom ask for the same.
    return " ".join(
        (fields[0], fields[1], *(draws.pick(("*", field)) for field in fields[2:]), weekday)
    )


def _command(draws: Draws) -> str:
    return f"{draws.pick(VERBS)}_{draws.pick(THINGS)}"


def _table(entity: Entity, draws: Draws) -> JsonObject:
    names = sorted(
        f"{draws.pick(VERBS)}_{entity.number + step}" for step in range(1, entity.rivals + 1)
    )
    return {
        "jobs": [{"name": name, "cron": _cron(draws), "command": _command(draws)} for name in names]
    }
