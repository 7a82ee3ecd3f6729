"""A table at which sellers and buyers bargain in turn until somebody accepts an offer of the other side.

Each hears all that was said and offered since its own last turn. Source: the six actions of MARBLE's world
environment, which there answer whatever is asked; here an offer has to be there before it can be accepted.
"""

from __future__ import annotations

import math
from typing import Any

from fumehood.core.conversation import Handover, one_voice
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import refuse, tool

SIDES = ("seller", "buyer")
TURNS_MAX = 40
"""Of all parties together, where the state does not say."""
OFFERS = ("offer_price", "reject_and_counter")
ANSWERING = ("accept_offer", "reject_and_counter")
_TOOLS = (
    tool("offer_price", "Offer a price to the other side.", price="number", reason="string"),
    tool(
        "accept_offer",
        "Accept the last offer, which must be of the other side: all is agreed then.",
    ),
    tool(
        "reject_and_counter",
        "Reject the last offer and name another price.",
        counter_price="number",
        reason="string",
    ),
    tool("provide_information", "Tell everybody something.", info_type="string", details="string"),
    tool("inquire_intentions", "Ask the others something.", question="string"),
    tool("end_negotiation", "End the negotiation without an agreement."),
)
_TOLD = {
    "offer_price": "offers {price}: {reason}",
    "accept_offer": "accepts.",
    "reject_and_counter": "rejects that and names {counter_price}: {reason}",
    "provide_information": "tells about {info_type}: {details}",
    "inquire_intentions": "asks: {question}",
    "end_negotiation": "leaves the table.",
    "say": "says: {text}",
}


class Bargaining:
    """State: ``parties`` (each ``name`` and ``side``) in the order in which they speak, and ``turns_max``;
    then ``speaker``, ``turns``, ``log``, ``heard``, ``ended`` and ``agreement``."""

    toolset_id = "bargaining_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: parties are not named, or are of no side.
        """
        self._sides = _sides(state)
        turns = state.get("turns_max", TURNS_MAX)
        if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1:
            raise SpecError("initial_state.turns_max", "must be a whole number from 1")
        self._turns_max = turns
        self._order = list(self._sides)
        self.state: dict[str, Any] = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the six actions."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Act for whoever has the floor."""
        offer = self._last_offer()
        speaker = str(self.state.get("speaker", next(iter(self._order), "")))
        refusal = self._refusal(call, speaker, offer)
        if refusal is not None:
            return refusal
        self._note(speaker, call.tool_name, dict(call.arguments))
        if call.tool_name == "accept_offer" and offer is not None:
            return Value({"agreement": dict(self._agree(speaker, offer))})
        if call.tool_name == "end_negotiation":
            self.state["ended"] = "no_agreement"
        return Value({"done": call.tool_name})

    def _refusal(
        self, call: ToolCall, speaker: str, offer: dict[str, Any] | None
    ) -> Failure | None:
        if "ended" in self.state:
            return refuse("over", "The negotiation is over.")
        if not speaker:
            return refuse("nobody", "Nobody bargains here.")
        price = call.arguments.get("price", call.arguments.get("counter_price", 1))
        if not isinstance(price, int | float) or not 0 < price < math.inf:
            return refuse("bad_price", "A price is more than nothing.")
        return self._no_answer(speaker, offer) if call.tool_name in ANSWERING else None

    def _no_answer(self, speaker: str, offer: dict[str, Any] | None) -> Failure | None:
        if offer is None:
            return refuse("no_offer", "Nobody has offered anything yet.")
        if self._sides[offer["by"]] == self._sides[speaker]:
            return refuse("own_side", f"The last offer is of your own side, by {offer['by']}.")
        return None

    def open(self) -> Handover:
        """Let the first party begin."""
        if not self._order:
            raise SpecError("initial_state.parties", "must be there for a conversation")
        return self._hand_to(self._order[0])

    def heard(self, seat: str, text: str) -> Handover | None:
        """Note the words, and let the next party speak, unless it is over."""
        if text:
            self._note(seat, "say", {"text": text})
        return self._next_after(seat, self._order)

    def left(self, seat: str) -> Handover | None:
        """Go on without the party, while both sides are there."""
        before, self._order = self._order, [name for name in self._order if name != seat]
        both_sides = len({self._sides[name] for name in self._order}) == len(SIDES)
        return self._next_after(seat, before) if both_sides else None

    def _next_after(self, seat: str, order: list[str]) -> Handover | None:
        self.state["turns"] = self.state.get("turns", 0) + 1
        self.revision += 1
        if "ended" in self.state or self.state["turns"] >= self._turns_max:
            return None
        return self._hand_to(order[(order.index(seat) + 1) % len(order)])

    def _hand_to(self, seat: str) -> Handover:
        heard = self.state.setdefault("heard", {})
        log = self.state.get("log", [])
        news = [each for each in log[heard.get(seat, 0) :] if each["by"] != seat]
        heard[seat], self.state["speaker"] = len(log), seat
        self.revision += 1
        return Handover(seat, "\n".join(self._told(each) for each in news))

    def _told(self, entry: dict[str, Any]) -> str:
        did = _TOLD[entry["act"]].format(**entry["what"])
        return one_voice(f"{entry['by']} ({self._sides[entry['by']]}) {did}")

    def _note(self, by: str, act: str, what: dict[str, Any]) -> None:
        self.state.setdefault("log", []).append({"by": by, "act": act, "what": what})
        self.revision += 1

    def _last_offer(self) -> dict[str, Any] | None:
        offers = [each for each in self.state.get("log", []) if each["act"] in OFFERS]
        return offers[-1] if offers else None

    def _agree(self, speaker: str, offer: dict[str, Any]) -> JsonObject:
        what = offer["what"]
        parties = {self._sides[name]: name for name in (offer["by"], speaker)}
        agreement: JsonObject = {"price": what.get("price", what.get("counter_price")), **parties}
        self.state |= {"agreement": agreement, "ended": "agreement"}
        return agreement


def _sides(state: JsonObject) -> dict[str, str]:
    parties = state.get("parties", [])
    if not isinstance(parties, list):
        raise SpecError("initial_state.parties", "must be a list")
    sides: dict[str, str] = {}
    for index, party in enumerate(parties):
        match party:
            case {"name": str(name), "side": "seller" | "buyer" as side} if name not in sides:
                sides[name] = side
            case _:
                raise SpecError(
                    f"initial_state.parties[{index}]", "must have a name of its own and a side"
                )
    return sides
