"""τ²-bench as a benchmark: the domain telecom, in which an agent can work alone."""

from __future__ import annotations

from pathlib import Path

from runner.benchmarks.reading import Place, Placed, Problem, Unreadable
from runner.benchmarks.records import validated
from runner.benchmarks.tau2.files import read_databases, read_policy, read_tasks
from runner.benchmarks.tau2.record import Record
from runner.core.episode_spec import SeatSpec
from runner.core.errors import InputError
from runner.core.gold import Gold
from runner.core.json_values import JsonObject, copy_object
from runner.core.ledger import Budget
from runner.core.task import About, Case, Suite, Task
from runner.worlds.tau2_library import data_folder
from runner.worlds.tau2_telecom import Tau2Telecom

DOMAIN = "telecom"
BUDGET = Budget(steps=200, calls=200, retries=10)
"""The original's bounds of a conversation: steps, and errors that are tolerated."""
INSTRUCTION = """\
You handle one ticket of a telecom company alone: there is nobody to talk to, and you have the tools of the \
company and those of the customer's phone. Keep to the policy. When the ticket is handled, submit.

{policy}

<ticket>
{ticket}
</ticket>"""
ABOUT = About(
    licence="MIT (sierra-research/tau2-bench, in the package inspect-evals)",
    criterion="the original's reward basis: assertions on the environment hold, and gold actions were made",
    judged="both databases and the phone when the work was submitted; the calls where the basis says so",
)


class Tau2:
    """Argument: ``telecom[:FOLDER]``, the folder of the domain's data where it is not the package's."""

    def load(self, argument: str) -> Suite:
        """Return the domain's tasks as a suite, each set up as it says."""
        domain, _, folder = argument.partition(":")
        if domain != DOMAIN:
            raise InputError(f"tau2 has the domain {DOMAIN}, not {domain!r}; say tau2:{DOMAIN}[:FOLDER]")
        root = Path(folder) if folder else data_folder()
        path, tasks = read_tasks(root)
        databases, policy = read_databases(root), read_policy(root)
        records = [validated(Placed(task, Place(path)), Record) for task in tasks]
        if not records:
            raise Unreadable(Place(path), Problem.NOT_FOUND, "holds no task")
        cases = tuple(_case(each, databases, policy) for each in records)
        return Suite(f"tau2:{DOMAIN}", cases, about=ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: a task says neither its domain nor its databases."""
        return False


def _case(placed: Placed[Record], databases: JsonObject, policy: str) -> Case:
    record = placed.value
    task = Task(
        task_id=record.id,
        world="tau2_telecom",
        profile="native",
        initial_state=_set_up(placed, databases),
        fault_plan=(),
        seed=0,
        seats=(SeatSpec(instruction=INSTRUCTION.format(policy=policy, ticket=record.ticket), budget=BUDGET),),
        tags={"issue": record.id.partition("]")[0].strip("[")},
    )
    return Case(task, _gold(record))


def _set_up(placed: Placed[Record], databases: JsonObject) -> JsonObject:
    before = placed.value.initial_state
    try:
        world = Tau2Telecom(copy_object(databases))
        world.set_up([action.model_dump() for action in (before and before.initialization_actions) or ()])
    except (AttributeError, TypeError, ValueError) as error:
        reason = f"{placed.value.id}: initial_state: {error}"
        raise Unreadable(placed.place, Problem.INVALID_RECORD, reason) from None
    return world.state


def _gold(record: Record) -> Gold:
    criteria = record.evaluation_criteria
    actions = criteria.actions or []
    judged: list[JsonObject] = []
    if "ENV_ASSERTION" in criteria.reward_basis:
        judged += [{"op": "assertion", **each.model_dump()} for each in criteria.env_assertions or ()]
    if "ACTION" in criteria.reward_basis:
        judged += [{"op": "action", **each.model_dump()} for each in actions]
    calls: list[JsonObject] = [{"tool_name": each.name, "args": each.arguments} for each in actions]
    return Gold("tau2", tuple(judged), solvable=True, oracle=(*calls, {"submit": "done"}))
