"""Who is told what in a conversation of τ²-bench, and what a user says who has no model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fumehood.benchmarks.tau2.record import Record
from fumehood.core.conversation import ConversationSpec
from fumehood.core.json_values import JsonObject

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
