"""Loads τ-bench from a checkout: every task has an agent's seat and a user's seat."""

from __future__ import annotations

from typing import Any

from fumehood.benchmarks.shared.checkout import checkout_folder
from fumehood.benchmarks.shared.published_record import PublishedRecord
from fumehood.benchmarks.shared.reading import Place, Placed
from fumehood.benchmarks.shared.records import validated
from fumehood.benchmarks.taubench.world import AGENT, STOP, USER, describe
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import SCRIPT, About, Case, Suite, Task

SPLITS = {"retail": ("test", "train", "dev"), "airline": ("test",)}
STEPS_MAX = 30
"""Limit of the original's loop, which counts calls and messages together."""
OMITTED_ACTIONS = ("respond", "transfer_to_human_agents")
"""Gold actions that end a conversation and change nothing. The original omits them as well."""
CONTINUE = "Yes, please go ahead."
AGENT_INSTRUCTION = (
    "{wiki}\n\nYou talk to the user. The text you submit is sent to the user, "
    "and the user's reply is your next turn."
)
USER_INSTRUCTION = (
    "You are a user who talks to a company's agent. Follow the scenario below and do not invent "
    "facts. Write in your own words. Give only the information that the next step needs, not "
    "everything at once. When your request is fulfilled, cannot be fulfilled, or you are "
    "transferred to another agent, submit "
    f"{STOP} and nothing else.\n\nScenario: {{instruction}}"
)
ABOUT = About(
    licence="MIT (sierra-research/tau-bench), from your checkout",
    criterion="the original's calculate_reward, unmodified, in an unprivileged process",
    scored_on=(
        "the hash of the database against the gold actions', "
        "and required texts in the agent's messages"
    ),
)


class Action(PublishedRecord):
    """A gold call."""

    name: str
    kwargs: dict[str, Any]


class Record(PublishedRecord):
    """One task as the original's classes serialise it."""

    user_id: str
    instruction: str
    """Visible to the user only."""
    actions: tuple[Action, ...]
    outputs: tuple[str, ...]
    """Texts that the agent's messages must contain."""


class Domain(PublishedRecord):
    """All tasks of a domain."""

    tasks: tuple[Record, ...]


class TauBench:
    """The benchmark ``taubench``. Its argument is ``retail[:SPLIT]:CHECKOUT`` or
    ``airline:CHECKOUT``."""

    source = "sierra-research/tau-bench 59a200c, your checkout"

    def load(self, argument: str) -> Suite:
        """Return the tasks of a domain."""
        domain, _, rest = argument.partition(":")
        if domain not in SPLITS:
            raise InputError(
                "taubench: the argument must be retail[:test|train|dev]:CHECKOUT or "
                "airline:CHECKOUT, "
                f"not {argument!r}"
            )
        split, _, folder = rest.partition(":")
        if split not in SPLITS[domain]:
            split, folder = "test", rest
        usage = f"taubench:{domain}[:SPLIT]:CHECKOUT"
        checkout = checkout_folder(folder, contains="tau_bench", usage=usage)
        where: JsonObject = {"folder": str(checkout.resolve()), "domain": domain, "split": split}
        description = describe(str(where["folder"]), domain, split)
        place = Place(checkout / "tau_bench" / "envs" / domain)
        records = validated(Placed(description, place), Domain).value.tasks
        cases = tuple(
            _case(number, record, where, str(description["wiki"]))
            for number, record in enumerate(records)
        )
        return Suite(f"taubench:{domain}:{split}", cases, about=ABOUT)


def _case(number: int, record: Record, where: JsonObject, wiki: str) -> Case:
    agent = SeatSpec(
        name=AGENT,
        instruction=AGENT_INSTRUCTION.format(wiki=wiki),
        budget=Budget(steps=STEPS_MAX, calls=STEPS_MAX),
    )
    user = SeatSpec(
        name=USER,
        instruction=USER_INSTRUCTION.format(instruction=record.instruction),
        budget=Budget(steps=STEPS_MAX, calls=STEPS_MAX),
        tools=(),
    )
    script = (record.instruction, CONTINUE, CONTINUE, STOP)
    task = Task(
        task_id=f"{where['domain']}_{where['split']}_{number}",
        world="taubench",
        harness_mode="native",
        initial_state={**where, "turns_max": STEPS_MAX},
        seats=(agent, user),
        tags={"domain": where["domain"], "user": record.user_id},
        conversation=ConversationSpec("world", {}),
        counterparts={USER: SCRIPT},
        scripts={USER: tuple({"submit": text} for text in script)},
    )
    criterion: JsonObject = {"op": "taubench", "task": number}
    return Case(task, Gold("taubench", (criterion,), oracle=_oracle(record)))


def _oracle(record: Record) -> tuple[JsonObject, ...]:
    moves: list[JsonObject] = [{"seat": USER, "submit": record.instruction}]
    for action in record.actions:
        if action.name not in OMITTED_ACTIONS:
            moves.append({"tool_name": action.name, "args": action.kwargs})
    moves.append({"submit": "; ".join(record.outputs) or "Done."})
    moves.append({"seat": USER, "submit": STOP})
    return tuple(moves)
