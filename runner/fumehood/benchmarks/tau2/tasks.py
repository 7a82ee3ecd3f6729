"""Loads τ²-bench: reads task files and policies, and makes tasks with one or two seats."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fumehood.benchmarks.shared.checkout import first_file
from fumehood.benchmarks.shared.reading import (
    Place,
    Placed,
    Problem,
    Unreadable,
    read_json,
    read_list,
    read_text,
)
from fumehood.benchmarks.shared.records import validated
from fumehood.benchmarks.tau2.checkout import CLASSES, SOURCE
from fumehood.benchmarks.tau2.database import FILES, read_database
from fumehood.benchmarks.tau2.package import data_folder, domain
from fumehood.benchmarks.tau2.records import InitialState, Record
from fumehood.benchmarks.tau2.scorer import ERRORS_MAX, STEPS_MAX
from fumehood.benchmarks.tau2.world import SEARCH, SEARCHING, Tau2Company, checkout_tools
from fumehood.benchmarks.tau2.world_mock import AGENT_TOOLS, USER_TOOLS, Tau2Mock
from fumehood.benchmarks.tau2.world_telecom import Tau2Telecom
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError, SpecError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.ledger import Budget
from fumehood.core.task import SCRIPT, About, Case, Suite, Task
from fumehood.core.tools import ToolCall

World = Tau2Company | Tau2Mock | Tau2Telecom
Names = tuple[str, ...]
AGENT, USER = "agent", "user"
SEATS: Mapping[str, str] = {"assistant": AGENT, "user": USER}
BUDGET = Budget(calls=400, retries=ERRORS_MAX - 1)
"""The tenth failed call of a seat ends its work. The scorer counts both seats together."""
ABOUT = About(
    licence="MIT (sierra-research/tau2-bench)",
    criterion="the original's reward: the product of the parts that a task's reward basis names",
    scored_on=(
        "databases, calls and the agent's messages; a judge decides assertions in natural language"
    ),
)
PACKAGE_ABOUT = replace(
    ABOUT,
    licence=f"{ABOUT.licence}; tau2 (inspect-evals data), older than the published",
)
PUBLISHED_SPLIT = "base"
"""The split that is published as the benchmark, out of thousands of generated tasks."""
TASK_FILES = ("tasks.json", "tasks.json.gz", "tasks_small.json")
TASK_FOLDER = "tasks"
"""If it exists, the original reads its ``task_*.json`` and no task file."""
_COMPONENT = re.compile(r"\{\{component:(\w+)\}\}")

STOPS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""Texts with which a user ends the conversation. Source: the original's user simulator."""
GREETING = "Hi! How can I help you today?"
"""Source: the original's orchestrator."""
NO_TOOLS_NOTICE = (
    "I follow a script: I give you the information I have, and I cannot use any tools."
)
NO_MORE_INFORMATION = "That is all I know. Please continue with what you can do."
THANKS = f"Thank you. {STOPS[0]}"
CONTINUE = "Please go on."
SOLO_INSTRUCTION = """\
You handle one ticket of a telecom company. There is no user to talk to. You have the tools of the \
company and the tools of the customer's phone. Follow the policy. When the ticket is resolved, \
submit any text.

{policy}

<ticket>
{ticket}
</ticket>"""
AGENT_INSTRUCTION = """\
You serve the customers of a company under the policy below. You talk to one customer: the text \
you submit is sent to the customer, and the customer's reply is your next turn.

<policy>
{policy}
</policy>{history}"""
USER_INSTRUCTION = """\
You are a customer who talks to a company's agent. Follow the scenario below and do not invent \
facts. When your request is fulfilled, or it is clear that it cannot be fulfilled, say {stops[0]}. \
When you are transferred to another agent, say {stops[1]}. When the scenario does not cover the \
situation, say {stops[2]}.

<scenario>
{scenario}
</scenario>{history}"""
SCENARIO_TITLES: Mapping[str, str] = {
    "": "",
    "reason_for_call": "Reason for your call: ",
    "known_info": "What you know: ",
    "unknown_info": "What you do not know: ",
    "task_instructions": "How you act: ",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """How one suite argument uses a domain."""

    domain: str
    world: Callable[[JsonObject], World]
    initial_state: Callable[[Path], JsonObject]
    """Folder of data → state before any task; raises SpecError if the data are missing."""
    database_keys: Names
    """Keys of a state that contain its databases."""
    tools: Callable[[JsonObject], tuple[Names, Names]]
    """State → the names of the agent's tools and of the user's tools."""
    has_user: bool = True
    """If false, one seat has the tools of both sides."""

    def folder(self, folder: str) -> Path:
        """Return the folder of the domain's data; the package's if ``folder`` is empty."""
        return Path(folder) if folder else data_folder(self.domain)


class Tau2:
    """The benchmark ``tau2``.

    Its argument is ``DOMAIN[:FOLDER]``. FOLDER contains the domain's data and replaces the
    package's.
    """

    source = "package inspect-evals 0.26.0, or sierra-research/tau2-bench a2c0247, your checkout"

    def load(self, argument: str) -> Suite:
        """Return a domain's tasks as a suite, each with its initial state."""
        name, _, folder = argument.partition(":")
        if name not in SETTINGS:
            raise InputError(
                "tau2: the argument must be DOMAIN[:FOLDER] with a domain of "
                f"{', '.join(SETTINGS)}, "
                f"not {name!r}"
            )
        setting = SETTINGS[name]
        root = setting.folder(folder)
        path, tasks = _read_tasks(root)
        policy = _read_policy(root, solo=not setting.has_user)
        start = setting.initial_state(root)
        records = (validated(Placed(task, Place(path)), Record) for task in tasks)
        cases = tuple(_case(record, setting, start, policy) for record in records)
        return Suite(f"tau2:{name}", cases, about=ABOUT if folder else PACKAGE_ABOUT)


def _read_tasks(folder: Path) -> tuple[Path, list[Any]]:
    """Return the task file and its tasks, restricted to the published split if splits are given."""
    single_files = sorted((folder / TASK_FOLDER).glob("task_*.json"))
    if single_files:
        return folder / TASK_FOLDER, [read_json(path) for path in single_files]
    path = first_file(folder, TASK_FILES)
    tasks = [record.value for record in read_list(path)]
    splits = folder / "split_tasks.json"
    selected = None
    if splits.is_file() and path.name != TASK_FILES[-1]:
        selected = read_json(splits).get(PUBLISHED_SPLIT)
    return path, [task for task in tasks if selected is None or task.get("id") in selected]


def _read_policy(folder: Path, *, solo: bool) -> str:
    """Return the agent's policy; telecom has a second one for ``solo``."""
    if (folder / "prompts").is_dir():
        prompts = folder / "prompts"
        return _COMPONENT.sub(
            lambda match: read_text(prompts / "components" / f"{match[1]}.md"),
            read_text(prompts / "grep_only.md"),
        )
    if not any(folder.glob("tech_support_manual.*")):
        return _read_policy_part(folder, "policy")
    main = _read_policy_part(folder, "main_policy_solo" if solo else "main_policy")
    manual = _read_policy_part(folder, "tech_support_manual")
    return (
        f"<main_policy>\n{main}\n</main_policy>\n"
        f"<tech_support_policy>\n{manual}\n</tech_support_policy>"
    )


def _read_policy_part(folder: Path, stem: str) -> str:
    return read_text(first_file(folder, (f"{stem}.md", f"{stem}.txt")))


def _case(placed: Placed[Record], setting: Setting, start: JsonObject, policy: str) -> Case:
    record = placed.value
    if "checkout" in start:
        start = {**start, "logged_reads": _logged_reads(record)}
    try:
        world = setting.world(copy_object(start))
        _set_up(world, record.initial_state or InitialState())
        if not setting.has_user and record.ticket is None:
            raise ValueError("ticket is required for a task without a user")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unreadable(placed.place, Problem.INVALID_RECORD, f"{record.id}: {error}") from None
    solo = SOLO_INSTRUCTION.format(policy=policy, ticket=record.ticket)
    is_telecom = setting.domain == "telecom"
    issue: JsonObject = {"issue": record.id.partition("]")[0].strip("[")} if is_telecom else {}
    task = Task(
        task_id=record.id,
        world=world.toolset_id,
        harness_mode="native",
        initial_state=copy_object(world.state),
        seats=(SeatSpec(instruction=solo, budget=BUDGET),),
        tags={"domain": setting.domain, **issue},
    )
    oracle = tuple(_conversation_oracle(record)) if setting.has_user else _solo_oracle(record)
    if setting.has_user:
        task = _add_user(task, record, setting, policy)
    criteria = tuple(_criteria(record, setting, world))
    return Case(task, Gold("tau2", criteria, solvable=True, oracle=oracle))


def _logged_reads(record: Record) -> list[Json]:
    """Return the discoverable tools that the gold calls.

    Source: ``_derive_read_log_allowlist`` of the original.
    """
    actions = record.evaluation_criteria.actions or ()
    names = {str(action.arguments.get("agent_tool_name") or "") for action in actions}
    return [*sorted(names - {""})]


def _add_user(task: Task, record: Record, setting: Setting, policy: str) -> Task:
    agent_tools, user_tools = setting.tools(task.initial_state)
    if record.user_tools is not None:
        user_tools = tuple(name for name in user_tools if name in record.user_tools)
    history = _history_text(record)
    agent = SeatSpec(
        name=AGENT,
        instruction=AGENT_INSTRUCTION.format(policy=policy, history=history),
        budget=BUDGET,
        tools=agent_tools,
    )
    scenario = "\n\n".join(_scenario_parts(record))
    user = SeatSpec(
        name=USER,
        instruction=USER_INSTRUCTION.format(stops=STOPS, scenario=scenario, history=history),
        budget=BUDGET,
        tools=user_tools,
    )
    return replace(
        task,
        seats=(agent, user),
        conversation=_conversation(record),
        counterparts={USER: SCRIPT},
        scripts={USER: _user_script(record, has_tools=bool(user_tools))},
    )


def _set_up(world: World, initial: InitialState) -> None:
    """Apply a task's initial data, actions and earlier calls to the world."""
    actions: list[Mapping[str, Any]] = [
        action.model_dump() for action in initial.initialization_actions or ()
    ]
    for message in initial.message_history or ():
        for call in message.tool_calls or ():
            actions.append(
                {"env_type": message.role, "func_name": call.name, "arguments": call.arguments}
            )
    data = initial.initialization_data or {}
    if data.get("user_data"):
        raise ValueError("initial_state.initialization_data.user_data is not supported")
    world.set_up(data.get("agent_data") or {}, actions)


def _criteria(record: Record, setting: Setting, world: World) -> Iterator[JsonObject]:
    """Yield the criteria; the gold calls are made in ``world`` to compute the expected database."""
    evaluation = record.evaluation_criteria
    actions, basis = evaluation.actions or [], evaluation.reward_basis
    if setting.has_user:
        yield {"op": "talked"}
    if "ENV_ASSERTION" in basis:
        for assertion in evaluation.env_assertions or ():
            yield {"op": "assertion", **assertion.model_dump()}
    if "ACTION" in basis:
        for action in actions:
            yield {"op": "action", **action.model_dump()}
    # The original compares no databases for a task without gold actions and assertions.
    has_gold = evaluation.actions is not None or evaluation.env_assertions is not None
    if "DB" in basis and has_gold:
        for action in actions:
            world.call(ToolCall(action.name, action.arguments))
        yield {"op": "database", "equals": {key: world.state[key] for key in setting.database_keys}}
    if "COMMUNICATE" in basis:
        for text in evaluation.communicate_info or ():
            yield {"op": "communicate", "text": text}
    if "NL_ASSERTION" in basis:
        for text in evaluation.nl_assertions or ():
            yield {"op": "opinion", "text": text}


def _solo_oracle(record: Record) -> tuple[JsonObject, ...]:
    actions = record.evaluation_criteria.actions or ()
    calls: list[JsonObject] = [
        {"tool_name": action.name, "args": action.arguments} for action in actions
    ]
    return (*calls, {"submit": "done"})


def _conversation_oracle(record: Record) -> Iterator[JsonObject]:
    """Yield the gold calls at their seats, the required texts, and the end of the conversation."""
    evaluation = record.evaluation_criteria
    turn_holder = str(_conversation(record).settings["first"])
    for action in evaluation.actions or ():
        seat = SEATS[action.requestor]
        if seat != turn_holder:
            yield {"seat": turn_holder, "submit": CONTINUE}
            turn_holder = seat
        yield {"seat": seat, "tool_name": action.name, "args": action.arguments}
    if turn_holder == USER:
        yield {"seat": USER, "submit": CONTINUE}
    yield {"seat": AGENT, "submit": "; ".join(evaluation.communicate_info or ()) or "Done."}
    yield {"seat": USER, "submit": THANKS}


def _conversation(record: Record) -> ConversationSpec:
    """Return the turn policy: the user answers the greeting, or the history's last message is
    answered."""
    seat, text = (_history(record) or [(AGENT, GREETING)])[-1]
    settings: JsonObject = {
        "first": AGENT if seat == USER else USER,
        "opening": text,
        "turns_max": STEPS_MAX,
    }
    return ConversationSpec("dialogue", {**settings, "stop": {USER: list(STOPS)}})


def _user_script(record: Record, *, has_tools: bool) -> tuple[JsonObject, ...]:
    """Return the moves of a scripted user: the scenario's reason and known facts, then closing
    texts."""
    scenario = record.user_scenario.instructions if record.user_scenario else ""
    if isinstance(scenario, str):
        texts: list[str | None] = [scenario]
    else:
        texts = [scenario.get("reason_for_call"), scenario.get("known_info")]
    first = "\n\n".join(text for text in (*texts, NO_TOOLS_NOTICE if has_tools else "") if text)
    return tuple({"submit": text} for text in (first, *[NO_MORE_INFORMATION] * 3, THANKS))


def _history(record: Record) -> list[tuple[str, str]]:
    messages = (record.initial_state and record.initial_state.message_history) or ()
    return [
        (SEATS[message.role], message.content)
        for message in messages
        if message.role in SEATS and message.content
    ]


def _history_text(record: Record) -> str:
    lines = "\n".join(f"{seat}: {text}" for seat, text in _history(record))
    return f"\n\nThe conversation so far:\n\n{lines}" if lines else ""


def _scenario_parts(record: Record) -> Iterator[str]:
    scenario = record.user_scenario
    if scenario and scenario.persona:
        yield f"Who you are: {scenario.persona}"
    instructions = scenario.instructions if scenario else ""
    parts = {"": instructions} if isinstance(instructions, str) else instructions
    for key, title in SCENARIO_TITLES.items():
        if parts.get(key):
            yield title + str(parts[key])


def _company_state(name: str, root: Path) -> JsonObject:
    # The user's tasks may use the package's database, which equals the published one.
    has_database = root != data_folder(name) and any((root / file).is_file() for file in FILES)
    folder = str(root.resolve()) if has_database else ""
    digest = read_database(name, folder).digest
    state: JsonObject = {"domain": name, "folder": folder, "database": digest}
    state |= {"changes": [], "kept": {}}
    # FOLDER is data/tau2/domains/NAME of the checkout.
    checkout = next(iter(root.resolve().parents[3:4]), None)
    if checkout and (checkout / SOURCE / "domains" / CLASSES[name][0] / "tools.py").is_file():
        state["checkout"] = str(checkout)
    return state


def _telecom_state(root: Path) -> JsonObject:
    return {"agent": _read_data(root / "db.toml"), "user": _read_data(root / "user_db.toml")}


def _mock_state(root: Path) -> JsonObject:
    user_file = root / "user_db.json"
    user = _read_data(user_file) if user_file.is_file() else {"notifications": {}}
    return {"agent": _read_data(root / "db.json"), "user": user}


def _read_data(path: Path) -> JsonObject:
    parse: Callable[[str], Any] = tomllib.loads if path.suffix == ".toml" else json.loads
    try:
        # A TOML date becomes text, which the package's models parse.
        data: JsonObject = json.loads(json.dumps(parse(path.read_text("utf-8")), default=str))
    except (OSError, ValueError) as error:
        raise SpecError("folder", f"{path} cannot be read: {error}") from None
    return data


def _tools_of(name: str, state: JsonObject) -> tuple[Names, Names]:
    search = [SEARCH] if name in SEARCHING else []
    if checkout := state.get("checkout"):
        place = str(state["folder"] or data_folder(name))
        tools = checkout_tools(name, str(checkout), place)
        agent, user = (tuple(tool.name for tool in tools[side]) for side in (AGENT, USER))
        return (*agent, *search), user
    sides = domain(name)
    user_tools = tuple(sides.user.executes) if sides.user else ()
    return (*sides.agent.executes, *search), user_tools


def _mock_tools(state: JsonObject) -> tuple[Names, Names]:
    return tuple(tool.name for tool in AGENT_TOOLS), tuple(tool.name for tool in USER_TOOLS)


def _company(name: str) -> Setting:
    state, tools = partial(_company_state, name), partial(_tools_of, name)
    return Setting(name, Tau2Company, state, ("changes",), tools)


_BOTH = ("agent", "user")
_TELECOM = Setting("telecom", Tau2Telecom, _telecom_state, _BOTH, partial(_tools_of, "telecom"))
SETTINGS: Mapping[str, Setting] = {
    "airline": _company("airline"),
    "retail": _company("retail"),
    "banking": _company("banking"),
    "mock": Setting("mock", Tau2Mock, _mock_state, _BOTH, _mock_tools),
    "telecom": replace(_TELECOM, has_user=False),
    "telecom_user": _TELECOM,
}
"""By the name in a suite argument."""
