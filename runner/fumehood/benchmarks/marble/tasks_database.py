"""Why has a database become slow: a planner sends five experts, and names the causes."""

from __future__ import annotations

from fumehood.benchmarks.marble.record import Participant, Record
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Task

PLANNER = "planner"
BUDGET = Budget(steps=30, calls=30, retries=10)
TURNS_MAX = 40
PLANNER_TOLD = """\
{content}
You are the planner of a team. To give an expert something to do, submit "@NAME: what to do"; what they find \
out is your next turn. The experts:
{experts}

When you know enough, submit one last line, with at most {most} of {labels}:
Root causes: NAME, NAME"""
EXPERT_TOLD = """\
{content}
You are {name}, an expert in a team that a planner leads. {profile}
You are told what to find out, and what you submit goes back to the planner."""
ABOUT = About(
    licence="MIT (ulab-uiuc/MARBLE; its package metadata says Apache-2.0), from your file",
    criterion="the original's score over labels: the share of gold causes that were named; success is all",
    judged="the planner's last line; a pair of labels that is always named is right in up to 30 of 100 tasks",
)


def database_case(record: Record) -> Case:
    """Return a record as a task of six seats: the planner and the experts.

    Raises:
        SpecError: no cause is named, or one that is no label.
    """
    told = record.task
    if not told.root_causes or not set(told.root_causes) <= set(told.labels):
        raise SpecError(
            "task.root_causes", f"must be some of {', '.join(told.labels) or 'its labels'}"
        )
    planner = SeatSpec(
        name=PLANNER,
        instruction=PLANNER_TOLD.format(
            content=told.content,
            experts="\n".join(f"{each.agent_id}: {each.profile}" for each in record.agents),
            most=told.number_of_labels_pred,
            labels=", ".join(told.labels),
        ),
        budget=BUDGET,
    )
    task = Task(
        task_id=record.task_id,
        world="postgres_sketch",
        profile="native",
        initial_state={"init_sql": record.environment.init_sql},
        fault_plan=(),
        seed=0,
        seats=(planner, *(_expert(record, each) for each in record.agents)),
        tags={"causes": len(told.root_causes)},
        conversation=ConversationSpec("supervisor", {"head": PLANNER, "turns_max": TURNS_MAX}),
    )
    criterion: JsonObject = {
        "op": "root_causes",
        "labels": list(told.labels),
        "wanted": list(told.root_causes),
        "most": told.number_of_labels_pred,
    }
    answer: JsonObject = {"submit": f"Root causes: {', '.join(told.root_causes)}"}
    return Case(task, Gold("marble", (criterion,), solvable=True, oracle=(answer,)))


def _expert(record: Record, expert: Participant) -> SeatSpec:
    told = EXPERT_TOLD.format(
        content=record.task.content, name=expert.agent_id, profile=expert.profile
    )
    return SeatSpec(name=expert.agent_id, instruction=told, budget=BUDGET)
