"""Two sellers and two buyers at one table, until one accepts what the other side offers."""

from __future__ import annotations

from fumehood.benchmarks.marble.record import Participant, Record
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Task

BUDGET = Budget(steps=40, calls=40, retries=10)
TOLD = """\
{content}
You are {name}, a {side}. The parties speak in turn; act with your tools, then submit to end your turn.

{profile}"""
ABOUT = About(
    licence="MIT (ulab-uiuc/MARBLE; its package metadata says Apache-2.0), from your file",
    criterion="an agreement is reached, as the records ask for; ratings from 1 to 5 by a judge beside it",
    judged="an offer that the other side accepted; ratings decide nothing and need a judge",
)


def bargaining_case(record: Record) -> Case:
    """Return a record as a task of as many seats as it has parties.

    Raises:
        SpecError: a party is of no side.
    """
    parties: list[Json] = [{"name": each.agent_id, "side": _side(each)} for each in record.agents]
    task = Task(
        task_id=record.task_id,
        world="bargaining",
        profile="native",
        initial_state={"parties": parties},
        fault_plan=(),
        seed=0,
        seats=tuple(_seat(record, each) for each in record.agents),
        tags={"parties": len(parties)},
        conversation=ConversationSpec("world", {}),
    )
    criterion: JsonObject = {"op": "agreement", "rated": ["seller", "buyer"]}
    return Case(task, Gold("marble", (criterion,), solvable=True, oracle=_oracle(record)))


def _seat(record: Record, party: Participant) -> SeatSpec:
    told = TOLD.format(
        content=record.task.content, name=party.agent_id, side=party.role, profile=party.profile
    )
    return SeatSpec(name=party.agent_id, instruction=told, budget=BUDGET)


def _side(party: Participant) -> str:
    if party.role is None:
        raise SpecError(f"agents.{party.agent_id}.role", "must be seller or buyer")
    return party.role


def _oracle(record: Record) -> tuple[JsonObject, ...]:
    """Let the first party offer something, and the first of the other side accept it."""
    first = record.agents[0]
    other = next((each for each in record.agents if each.role != first.role), first)
    return (
        {"tool_name": "offer_price", "args": {"price": 10, "reason": "it is fair"}},
        {"submit": "That is my offer."},
        {"seat": other.agent_id, "tool_name": "accept_offer", "args": {}},
        {"seat": other.agent_id, "submit": "Agreed."},
    )
