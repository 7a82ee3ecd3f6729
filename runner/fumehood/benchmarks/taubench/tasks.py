"""Loads τ-bench from a checkout: tasks with an agent's seat and a user's seat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from fumehood.benchmarks.reading import Place, Placed
from fumehood.benchmarks.records import validated
from fumehood.benchmarks.taubench.world import AGENT, STOP, USER, described
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import SCRIPT, About, Case, Suite, Task

SPLITS = {"retail": ("test", "train", "dev"), "airline": ("test",)}
STEPS = 30
"""Of the original's loop, which counts calls and answers together."""
LEFT_OUT = ("respond", "transfer_to_human_agents")
"""Of the gold: what ends a conversation changes nothing, and the original leaves it out as well."""
GO_ON = "Yes, please go ahead."
AGENT_TOLD = "{wiki}\n\nYou talk to the user: what you submit is said to them, and what they answer is your next turn."
USER_TOLD = (
    "You are a user who talks to a company's agent. Stay with what you were told below, and make nothing up. "
    "Say what is needed for the next step and not all at once, in words of your own. When what you want is "
    f"done, or cannot be done, or you are handed to somebody else, submit {STOP} and nothing else.\n\n"
    "You were told: {instruction}"
)
ABOUT = About(
    licence="MIT (sierra-research/tau-bench), from your checkout",
    criterion="the original's calculate_reward, unmodified, in a process without privileges",
    judged="the database by its hash against the gold actions', and texts that answers must hold",
)


class TauBench:
    """Argument: ``retail[:SPLIT]:CHECKOUT`` (test, train or dev) or ``airline:CHECKOUT``."""

    def load(self, argument: str) -> Suite:
        """Return the tasks of a domain."""
        domain, _, rest = argument.partition(":")
        if domain not in SPLITS:
            raise InputError(
                f"say taubench:retail:CHECKOUT or taubench:airline:CHECKOUT, not {argument!r}"
            )
        split, _, folder = rest.partition(":")
        if split not in SPLITS[domain]:
            split, folder = "test", rest
        checkout = Path(folder)
        if not folder or not (checkout / "tau_bench").is_dir():
            raise InputError(
                f"{folder or argument}: is no checkout of tau-bench, it has no folder tau_bench"
            )
        where: JsonObject = {"folder": str(checkout.resolve()), "domain": domain, "split": split}
        told = described(str(where["folder"]), domain, split)
        place = Place(checkout / "tau_bench" / "envs" / domain)
        records = validated(Placed(told, place), Domain).value.tasks
        cases = tuple(
            _case(number, each, where, str(told["wiki"])) for number, each in enumerate(records)
        )
        return Suite(f"taubench:{domain}:{split}", cases, about=ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: tasks are Python."""
        return False


def _case(number: int, record: Record, where: JsonObject, wiki: str) -> Case:
    agent = SeatSpec(
        name=AGENT,
        instruction=AGENT_TOLD.format(wiki=wiki),
        budget=Budget(steps=STEPS, calls=STEPS),
    )
    user = SeatSpec(
        name=USER,
        instruction=USER_TOLD.format(instruction=record.instruction),
        budget=Budget(steps=STEPS, calls=STEPS),
        tools=(),
    )
    task = Task(
        task_id=f"{where['domain']}_{where['split']}_{number}",
        world="taubench",
        profile="native",
        initial_state={**where, "turns_max": STEPS},
        fault_plan=(),
        seed=0,
        seats=(agent, user),
        tags={"user": record.user_id},
        conversation=ConversationSpec("world", {}),
        players={USER: SCRIPT},
        scripts={
            USER: tuple({"submit": text} for text in (record.instruction, GO_ON, GO_ON, STOP))
        },
    )
    return Case(
        task, Gold("taubench", ({"op": "taubench", "task": number},), oracle=_oracle(record))
    )


def _oracle(record: Record) -> tuple[JsonObject, ...]:
    moves: list[JsonObject] = [{"seat": USER, "submit": record.instruction}]
    for action in record.actions:
        if action.name not in LEFT_OUT:
            moves.append({"tool_name": action.name, "args": action.kwargs})
    moves.append({"submit": "; ".join(record.outputs) or "Done."})
    moves.append({"seat": USER, "submit": STOP})
    return tuple(moves)


class _Published(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Action(_Published):
    """A call of the gold."""

    name: str
    kwargs: dict[str, Any]


class Record(_Published):
    """One task."""

    user_id: str
    instruction: str
    """For the user alone."""
    actions: tuple[Action, ...]
    outputs: tuple[str, ...]
    """Texts of which each must stand in an answer."""


class Domain(_Published):
    """All tasks of a domain."""

    tasks: tuple[Record, ...]
