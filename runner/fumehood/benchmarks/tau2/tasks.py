"""Loads τ²-bench: reads task files and policies, and makes tasks of one or two seats."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fumehood.benchmarks.reading import Place, Placed, Problem, Unreadable, read_json, read_text
from fumehood.benchmarks.records import validated
from fumehood.benchmarks.tau2.database import FILES, read_database
from fumehood.benchmarks.tau2.package import data_folder, domain
from fumehood.benchmarks.tau2.records import InitialState, Record
from fumehood.benchmarks.tau2.world import SEARCH, SEARCHING, Tau2Company
from fumehood.benchmarks.tau2.world_mock import AGENT_TOOLS, USER_TOOLS, Tau2Mock
from fumehood.benchmarks.tau2.world_telecom import Tau2Telecom
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError, SpecError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject, copy_object
from fumehood.core.ledger import Budget
from fumehood.core.task import SCRIPT, About, Case, Suite, Task
from fumehood.core.tools import ToolCall, ToolSpec

BUDGET = Budget(steps=200, calls=200, retries=10)
"""The original's bounds: steps, and errors that are tolerated. It counts both seats' together."""
ABOUT = About(
    licence="MIT (sierra-research/tau2-bench)",
    criterion="the original's reward: the product of the parts that a task's reward basis names",
    judged="databases, calls, what the agent said; assertions in words by a judge, else ungraded",
)
OF_PACKAGE = replace(
    ABOUT, licence=f"{ABOUT.licence}; tau2 (inspect-evals data), older than the published"
)


class Tau2:
    """Argument: ``DOMAIN[:FOLDER]``, the folder of the domain's data where it is not the package's."""

    def load(self, argument: str) -> Suite:
        """Return a domain's tasks as a suite, each set up as it says."""
        name, _, folder = argument.partition(":")
        if name not in SETTINGS:
            raise InputError(
                f"tau2 has {', '.join(SETTINGS)}, not {name!r}; say tau2:DOMAIN[:FOLDER]"
            )
        setting = SETTINGS[name]
        root = setting.folder(folder)
        path, tasks = read_tasks(root)
        policy, start = read_policy(root, solo=not setting.talks), setting.begin(root)
        records = (validated(Placed(task, Place(path)), Record) for task in tasks)
        cases = tuple(_case(each, setting, start, policy) for each in records)
        return Suite(f"tau2:{name}", cases, about=ABOUT if folder else OF_PACKAGE)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: a task says neither its domain nor its databases."""
        return False


def _case(placed: Placed[Record], setting: Setting, start: JsonObject, policy: str) -> Case:
    record = placed.value
    try:
        world = setting.world(copy_object(start))
        _set_up(world, record.initial_state or InitialState())
        if not setting.talks and record.ticket is None:
            raise ValueError("ticket is missing, so that nobody can work alone")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unreadable(placed.place, Problem.INVALID_RECORD, f"{record.id}: {error}") from None
    task = Task(
        task_id=record.id,
        world=world.toolset_id,
        profile="native",
        initial_state=copy_object(world.state),
        fault_plan=(),
        seed=0,
        seats=(
            SeatSpec(instruction=ALONE.format(policy=policy, ticket=record.ticket), budget=BUDGET),
        ),
        tags={"issue": record.id.partition("]")[0].strip("[")}
        if setting.domain == "telecom"
        else {},
    )
    oracle = tuple(rehearsed(record)) if setting.talks else _alone(record)
    seated = _talking(task, record, setting, policy) if setting.talks else task
    return Case(
        seated, Gold("tau2", tuple(_criteria(record, setting, world)), solvable=True, oracle=oracle)
    )


def _alone(record: Record) -> tuple[JsonObject, ...]:
    actions = record.evaluation_criteria.actions or ()
    calls: list[JsonObject] = [{"tool_name": each.name, "args": each.arguments} for each in actions]
    return (*calls, {"submit": "done"})


def _talking(task: Task, record: Record, setting: Setting, policy: str) -> Task:
    ours, theirs = setting.tools()
    if record.user_tools is not None:
        theirs = tuple(name for name in theirs if name in record.user_tools)
    agent = SeatSpec(name=AGENT, instruction=told_agent(record, policy), budget=BUDGET, tools=ours)
    user = SeatSpec(name=USER, instruction=told_user(record), budget=BUDGET, tools=theirs)
    return replace(
        task,
        seats=(agent, user),
        conversation=conversation_of(record),
        players={USER: SCRIPT},
        scripts={USER: script_of(record, has_tools=bool(theirs))},
    )


def _set_up(world: World, before: InitialState) -> None:
    """Do what a task says has happened before: data put in, actions, calls in what was said."""
    actions: list[Mapping[str, Any]] = [
        each.model_dump() for each in before.initialization_actions or ()
    ]
    for said in before.message_history or ():
        for call in said.tool_calls or ():
            actions.append(
                {"env_type": said.role, "func_name": call.name, "arguments": call.arguments}
            )
    data = before.initialization_data or {}
    if data.get("user_data"):
        raise ValueError("initial_state.initialization_data.user_data cannot be put in here")
    world.set_up(data.get("agent_data") or {}, actions)


def _criteria(record: Record, setting: Setting, world: World) -> Iterator[JsonObject]:
    """Yield what is judged; to know the database in the end, the gold's calls are made in the world."""
    criteria = record.evaluation_criteria
    actions, basis = criteria.actions or [], criteria.reward_basis
    if setting.talks:
        yield {"op": "talked"}
    if "ENV_ASSERTION" in basis:
        yield from (
            {"op": "assertion", **each.model_dump()} for each in criteria.env_assertions or ()
        )
    if "ACTION" in basis:
        yield from ({"op": "action", **each.model_dump()} for each in actions)
    # Where a task has neither gold actions nor assertions, the original compares no databases.
    if "DB" in basis and (criteria.actions is not None or criteria.env_assertions is not None):
        for each in actions:
            world.call(ToolCall(each.name, each.arguments))
        yield {"op": "database", "equals": {key: world.state[key] for key in setting.database}}
    if "COMMUNICATE" in basis:
        yield from _texts("communicate", criteria.communicate_info)
    if "NL_ASSERTION" in basis:
        yield from _texts("opinion", criteria.nl_assertions)


def _texts(op: str, texts: list[str] | None) -> list[JsonObject]:
    return [{"op": op, "text": text} for text in texts or ()]


World = Tau2Company | Tau2Mock | Tau2Telecom
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """A domain as it is played."""

    domain: str
    world: Callable[[JsonObject], World]
    begin: Callable[[Path], JsonObject]
    """Returns the state before any task, of a folder of data; raises SpecError where there is none."""
    database: Names
    """Keys of a state that are its databases."""
    tools: Callable[[], tuple[Names, Names]]
    """Returns the names of the agent's tools and of the user's."""
    talks: bool = True
    """Whether there is a user; whoever works alone has both sides' tools."""

    def folder(self, given: str) -> Path:
        """Return where its data lies."""
        return Path(given) if given else data_folder(self.domain)


def _begin_company(name: str, root: Path) -> JsonObject:
    # Tasks of the user's may be over the package's database, which is the published one.
    has_own = root != data_folder(name) and any((root / file).is_file() for file in FILES)
    folder = str(root.resolve()) if has_own else ""
    digest = read_database(name, folder).digest
    return {"domain": name, "folder": folder, "database": digest, "changes": [], "kept": {}}


def _begin_telecom(root: Path) -> JsonObject:
    return {"agent": _parsed(root / "db.toml"), "user": _parsed(root / "user_db.toml")}


def _begin_mock(root: Path) -> JsonObject:
    inbox = root / "user_db.json"
    user = _parsed(inbox) if inbox.is_file() else {"notifications": {}}
    return {"agent": _parsed(root / "db.json"), "user": user}


def _parsed(path: Path) -> JsonObject:
    parse: Callable[[str], Any] = tomllib.loads if path.suffix == ".toml" else json.loads
    try:
        # A date of TOML is text in JSON, as which the package reads it just as well.
        found: JsonObject = json.loads(json.dumps(parse(path.read_text("utf-8")), default=str))
    except (OSError, ValueError) as error:
        raise SpecError("folder", f"{path} cannot be read: {error}") from None
    return found


def _tools_of(name: str) -> tuple[Names, Names]:
    found = domain(name)
    search = [SEARCH] if name in SEARCHING else []
    return (*found.agent.executes, *search), tuple(found.user.executes) if found.user else ()


def _tools_of_mock() -> tuple[Names, Names]:
    return _names(AGENT_TOOLS), _names(USER_TOOLS)


def _names(tools: tuple[ToolSpec, ...]) -> Names:
    return tuple(tool.name for tool in tools)


def _company(name: str) -> Setting:
    return Setting(
        name, Tau2Company, partial(_begin_company, name), ("changes",), partial(_tools_of, name)
    )


_BOTH = ("agent", "user")
_TELECOM = ("telecom", Tau2Telecom, _begin_telecom, _BOTH, partial(_tools_of, "telecom"))
SETTINGS: Mapping[str, Setting] = {
    "airline": _company("airline"),
    "retail": _company("retail"),
    "banking": _company("banking"),
    "mock": Setting("mock", Tau2Mock, _begin_mock, _BOTH, _tools_of_mock),
    "telecom": Setting(*_TELECOM, talks=False),
    "telecom_user": Setting(*_TELECOM),
}
"""By what a suite argument calls them."""


SPLIT = "base"  # What is published as the benchmark, of tasks that are made in thousands.
TASKS = ("tasks.json", "tasks.json.gz", "tasks_small.json")
_COMPONENT = re.compile(r"\{\{component:(\w+)\}\}")


def read_tasks(folder: Path) -> tuple[Path, list[Any]]:
    """Return the file of the tasks, and those of the published split where it says which these are.

    Raises:
        Unreadable: there is no such file, or it holds something else.
    """
    path = _first(folder, TASKS)
    tasks = read_json(path)
    if not isinstance(tasks, list) or not tasks:
        raise Unreadable(Place(path), Problem.INVALID_RECORD, "must be a list of tasks")
    splits = folder / "split_tasks.json"
    chosen = read_json(splits).get(SPLIT) if splits.is_file() and path.name != TASKS[-1] else None
    return path, [task for task in tasks if chosen is None or task.get("id") in chosen]


def read_policy(folder: Path, *, solo: bool) -> str:
    """Return what an agent is told to keep to; of telecom's two the one for who works alone, if ``solo``.

    Raises:
        Unreadable: a part of it is not there.
    """
    if (folder / "prompts").is_dir():
        return _searching(folder / "prompts")
    if not any(folder.glob("tech_support_manual.*")):
        return _policy(folder, "policy")
    main = _policy(folder, "main_policy_solo" if solo else "main_policy")
    manual = _policy(folder, "tech_support_manual")
    return f"<main_policy>\n{main}\n</main_policy>\n<tech_support_policy>\n{manual}\n</tech_support_policy>"


def _searching(prompts: Path) -> str:
    parts = prompts / "components"
    return _COMPONENT.sub(
        lambda part: read_text(parts / f"{part[1]}.md"), read_text(prompts / "grep_only.md")
    )


def _policy(folder: Path, stem: str) -> str:
    return read_text(_first(folder, (f"{stem}.md", f"{stem}.txt")))


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise Unreadable(Place(folder), Problem.NOT_FOUND, f"holds none of {', '.join(names)}")


AGENT, USER = "agent", "user"
SEATS: Mapping[str, str] = {"assistant": AGENT, "user": USER}
STOPS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""Words with which a user ends it. Source, as of the next: the original's user simulator and orchestrator."""
GREETING = "Hi! How can I help you today?"
NO_HANDS = "I follow a script: I say what I was told, and use nothing of my own."
GO_ON = "That is all I know. Please go on with what you can do."
THANKS = f"Thank you. {STOPS[0]}"
ALONE = """\
You handle one ticket of a telecom company alone: there is nobody to talk to, and you have the tools of the \
company and those of the customer's phone. Keep to the policy. When the ticket is handled, submit.

{policy}

<ticket>
{ticket}
</ticket>"""
AGENT_TOLD = """\
You serve the customers of a company, under the policy below. You talk to one of them: what you submit is \
said to them, and what they answer is your next turn.

<policy>
{policy}
</policy>{before}"""
USER_TOLD = """\
You are a customer who talks to a company's agent. Stay with what you are told here and make nothing up. \
When what you want is done, or it is clear that it will not be, say {stops[0]}; when you are handed over to \
somebody else, {stops[1]}; when what you are told does not say how to go on, {stops[2]}.

<scenario>
{scenario}
</scenario>{before}"""
TITLES: Mapping[str, str] = {
    "": "",
    "reason_for_call": "Why you call: ",
    "known_info": "What you know: ",
    "unknown_info": "What you do not know: ",
    "task_instructions": "What you do: ",
}


def told_agent(record: Record, policy: str) -> str:
    """Return the agent's instruction."""
    return AGENT_TOLD.format(policy=policy, before=_before(record))


def told_user(record: Record) -> str:
    """Return the user's instruction, which holds the whole scenario."""
    scenario = "\n\n".join(_pieces(record))
    return USER_TOLD.format(stops=STOPS, scenario=scenario, before=_before(record))


def conversation_of(record: Record) -> ConversationSpec:
    """Return how they talk: the user begins, greeted, or whoever is to answer to what was said before."""
    seat, words = (_said(record) or [(AGENT, GREETING)])[-1]
    settings: JsonObject = {
        "first": AGENT if seat == USER else USER,
        "opening": words,
        "turns_max": 200,
    }
    return ConversationSpec("dialogue", {**settings, "stop": {USER: list(STOPS)}})


def script_of(record: Record, *, has_tools: bool) -> tuple[JsonObject, ...]:
    """Return what a user says who has no model: why it calls and what it knows, in the scenario's words."""
    told = record.user_scenario.instructions if record.user_scenario else ""
    words = (
        [told] if isinstance(told, str) else [told.get("reason_for_call"), told.get("known_info")]
    )
    first = "\n\n".join(word for word in (*words, NO_HANDS if has_tools else "") if word)
    return tuple({"submit": text} for text in (first, GO_ON, GO_ON, GO_ON, THANKS))


def rehearsed(record: Record) -> Iterator[JsonObject]:
    """Yield the gold as moves: its calls at the seats that make them, what has to be said, and the end."""
    criteria = record.evaluation_criteria
    floor = str(conversation_of(record).settings["first"])
    for action in criteria.actions or ():
        seat = SEATS[action.requestor]
        if seat != floor:
            yield {"seat": floor, "submit": "Please go on."}
            floor = seat
        yield {"seat": seat, "tool_name": action.name, "args": action.arguments}
    if floor == USER:
        yield {"seat": USER, "submit": "Please go on."}
    yield {"seat": AGENT, "submit": "; ".join(criteria.communicate_info or ()) or "Done."}
    yield {"seat": USER, "submit": THANKS}


def _said(record: Record) -> list[tuple[str, str]]:
    history = (record.initial_state and record.initial_state.message_history) or ()
    return [
        (SEATS[each.role], each.content) for each in history if each.role in SEATS and each.content
    ]


def _before(record: Record) -> str:
    lines = "\n".join(f"{seat}: {words}" for seat, words in _said(record))
    return f"\n\nThis was said before:\n\n{lines}" if lines else ""


def _pieces(record: Record) -> Iterator[str]:
    scenario = record.user_scenario
    if scenario and scenario.persona:
        yield f"Who you are: {scenario.persona}"
    told = scenario.instructions if scenario else ""
    pieces = {"": told} if isinstance(told, str) else told
    yield from (title + str(pieces[key]) for key, title in TITLES.items() if pieces.get(key))
