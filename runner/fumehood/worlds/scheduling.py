"""A list of recurring jobs (docs/reference/toolmisuse.md, Worlds)."""

from __future__ import annotations

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject, tool

_TOOLS = (
    tool("create_job", "Add a recurring job.", name="string", cron="string", command="string"),
    tool("validate_cron", "Check whether a cron expression is valid.", cron="string"),
    tool("list_jobs", "List all jobs, sorted by name."),
)

_FIELDS = 5
_HIGHEST = 59


class Scheduling:
    """State: ``jobs``, a list of ``name``, ``cron`` and ``command``, sorted by name."""

    toolset_id = "scheduler_v1"

    def __init__(self, state: JsonObject) -> None:
        """Use ``state`` as the state of the world.

        Raises:
            SpecError: ``jobs`` is there and is not a list of objects.
        """
        jobs = state.get("jobs", [])
        if not isinstance(jobs, list):
            raise SpecError("initial_state.jobs", "must be a list of jobs")
        for position, job in enumerate(jobs):
            if not isinstance(job, dict):
                raise SpecError(f"initial_state.jobs[{position}]", "must be an object")
        self.state = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the three tools."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call with valid arguments."""
        jobs = self._jobs()
        match call.tool_name:
            case "create_job":
                return self._create(
                    jobs, {key: call.arguments[key] for key in ("name", "cron", "command")}
                )
            case "validate_cron":
                cron = call.arguments["cron"]
                return Value({"cron": cron, "valid": is_valid_cron(str(cron))})
            case _:
                return Value({"jobs": copy_json(jobs)})

    def _jobs(self) -> list[Json]:
        if "jobs" not in self.state:
            self.state["jobs"] = []
            self.revision += 1
        jobs = self.state["jobs"]
        assert isinstance(jobs, list)
        return jobs

    def _create(self, jobs: list[Json], job: JsonObject) -> ToolResult:
        if not is_valid_cron(str(job["cron"])):
            return reject("invalid_cron", "Cron expression is invalid.")
        names = [_name(other, position) for position, other in enumerate(jobs)]
        if job["name"] in names:
            return reject("already_exists", "Job already exists.")
        if not all(isinstance(name, str) for name in names):
            raise SpecError("initial_state.jobs", "names must be text to be ordered")
        jobs.append(job)
        jobs.sort(key=lambda other: str(other["name"]) if isinstance(other, dict) else "")
        self.revision += 1
        return Value({"job": copy_json(job)})


def _name(job: Json, position: int) -> Json:
    if not isinstance(job, dict) or "name" not in job:
        raise SpecError(f"initial_state.jobs[{position}].name", "is missing")
    return job["name"]


def is_valid_cron(cron: str) -> bool:
    """Return whether ``cron`` has five fields, each ``*`` or decimal digits for 0 to 59.

    All five fields have the same range, as in the reference. Digits are Unicode's: the reference
    takes Arabic-Indic ones and stops at superscripts, which have no value and are not valid here.
    """
    fields = cron.split()
    return len(fields) == _FIELDS and all(field == "*" or _is_in_range(field) for field in fields)


def _is_in_range(field: str) -> bool:
    if not field.isdecimal():
        return False
    # Leading zeros are allowed in any number, so they are removed before the length is checked.
    significant = "".join(str(int(digit)) for digit in field).lstrip("0")
    return len(significant) <= 2 and int(significant or "0") <= _HIGHEST
