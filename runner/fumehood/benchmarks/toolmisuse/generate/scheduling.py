"""Goals in the scheduling world: recurring jobs."""

from __future__ import annotations

from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.benchmarks.toolmisuse.generate.goal import THINGS, VERBS, Entity, Goal
from fumehood.core.json_values import JsonObject

_CREATE = (
    "Create scheduler job {name} with cron '{cron}' and command {command}.",
    "Add a cron job {name} at '{cron}' with command {command}.",
    "Register job {name} at '{cron}' with command {command}.",
    "Please add a cron job {name} that runs at '{cron}' with command {command}.",
    "Register job {name} with schedule '{cron}' to run {command}.",
    "Create scheduler job {name} with schedule '{cron}' to run {command}.",
)
_VALIDATE = (
    "Validate '{cron}' for note {number}.",
    "Check whether '{cron}' in note {number} is a valid cron expression.",
    "Run cron validation on '{cron}' from note {number}.",
    "Validate '{cron}' before it is added to note {number}.",
    "Note {number} mentions '{cron}'; check whether that is valid.",
)
"""Each text contains the number, because expressions repeat."""

_LIST = (
    "List the jobs for note {number}.",
    "Show all jobs for note {number}.",
    "Show the list of jobs for note {number}.",
)

_BAD_CRONS_OUT_OF = 5
"""One of this many expressions is invalid."""


def create_job(entity: Entity, choices: SeededChoices) -> Goal:
    """Add one job."""
    name = f"{choices.pick(THINGS)}_{entity.split}_{entity.number}"
    cron, command = _cron(choices), _command(choices)
    job: JsonObject = {"name": name, "cron": cron, "command": command}
    return Goal(
        instruction=choices.pick(_CREATE).format(**job),
        state=_jobs_state(entity, choices),
        tool_name="create_job",
        arguments=job,
        checks=({"op": "in", "path": "jobs", "value": job},),
        output={"job.name": name},
    )


def validate_cron(entity: Entity, choices: SeededChoices) -> Goal:
    """Validate one expression."""
    valid = choices.below(_BAD_CRONS_OUT_OF) > 0
    cron = (
        _cron(choices) if valid else f"{60 + choices.below(40)} {_cron(choices).partition(' ')[2]}"
    )
    return Goal(
        instruction=choices.pick(_VALIDATE).format(cron=cron, number=entity.number),
        state=_jobs_state(entity, choices),
        tool_name="validate_cron",
        arguments={"cron": cron},
        checks=(),
        output={"cron": cron, "valid": valid},
    )


def list_jobs(entity: Entity, choices: SeededChoices) -> Goal:
    """List the jobs."""
    state = _jobs_state(entity, choices)
    return Goal(
        instruction=choices.pick(_LIST).format(number=entity.number),
        state=state,
        tool_name="list_jobs",
        arguments={},
        checks=(),
        output={"jobs": state["jobs"]},
    )


def _cron(choices: SeededChoices) -> str:
    fields = [
        str(choices.below(60)),
        str(choices.below(24)),
        str(choices.below(28) + 1),
        str(choices.below(12) + 1),
    ]
    weekday = choices.pick(("*", str(choices.below(7))))
    # Minutes and hours are always numbers, so that expressions seldom repeat.
    return " ".join(
        (fields[0], fields[1], *(choices.pick(("*", field)) for field in fields[2:]), weekday)
    )


def _command(choices: SeededChoices) -> str:
    return f"{choices.pick(VERBS)}_{choices.pick(THINGS)}"


def _jobs_state(entity: Entity, choices: SeededChoices) -> JsonObject:
    names = sorted(
        f"{choices.pick(VERBS)}_{entity.number + step}" for step in range(1, entity.rivals + 1)
    )
    return {
        "jobs": [
            {"name": name, "cron": _cron(choices), "command": _command(choices)} for name in names
        ]
    }
