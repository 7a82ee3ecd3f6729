"""Sellers and buyers bargain in turn until one side accepts an offer of the other.

At the start of its turn, a party receives all messages and actions since its previous turn. Source:
the six actions of MARBLE's world environment. There, each action returns its arguments unchecked;
here, a party can accept an offer only after the other side has made one.
"""

from __future__ import annotations

from typing import Any

from fumehood.core.conversation import Handover, indent_continuation
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject, tool

SIDES = ("seller", "buyer")
TURNS_MAX = 40
"""Default maximum of turns of all parties together."""
PRICE_MAX = 1e15
"""Maximum price, so that reports can compute means of all prices."""
OFFERS = ("offer_price", "reject_and_counter")
ANSWERING = ("accept_offer", "reject_and_counter")
_TOOLS = (
    tool("offer_price", "Offer a price to the other side.", price="number", reason="string"),
    tool(
        "accept_offer",
        "Accept the last offer, which must come from the other side. This ends the negotiation.",
    ),
    tool(
        "reject_and_counter",
        "Reject the last offer and propose another price.",
        counter_price="number",
        reason="string",
    ),
    tool(
        "provide_information",
        "Give information to all parties.",
        info_type="string",
        details="string",
    ),
    tool("inquire_intentions", "Ask the other parties a question.", question="string"),
    tool("end_negotiation", "End the negotiation without an agreement."),
)
_NEWS = {
    "offer_price": "offers {price}: {reason}",
    "accept_offer": "accepts.",
    "reject_and_counter": "rejects the offer and proposes {counter_price}: {reason}",
    "provide_information": "gives information about {info_type}: {details}",
    "inquire_intentions": "asks: {question}",
    "end_negotiation": "ends the negotiation.",
    "say": "says: {text}",
}


class Bargaining:
    """A negotiation; it is its own turn policy.

    Initial state: ``parties`` (each ``name`` and ``side``) in turn order, and ``turns_max``. Later
    also ``speaker``, ``turns``, ``log``, ``heard``, ``ended`` and ``agreement``.
    """

    toolset_id = "bargaining_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: A party lacks a unique name or a side, or ``turns_max`` is not positive.
        """
        self._sides = _sides(state)
        turns = state.get("turns_max", TURNS_MAX)
        if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1:
            raise SpecError("initial_state.turns_max", "must be an integer of at least 1")
        self._turns_max = turns
        self._order = list(self._sides)
        self.state: dict[str, Any] = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the six actions."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out an action of the party whose turn it is."""
        offer = self._last_offer()
        speaker = str(self.state.get("speaker", next(iter(self._order), "")))
        rejection = self._rejection(call, speaker, offer)
        if rejection is not None:
            return rejection
        self._note(speaker, call.tool_name, dict(call.arguments))
        if call.tool_name == "accept_offer" and offer is not None:
            return Value({"agreement": dict(self._agree(speaker, offer))})
        if call.tool_name == "end_negotiation":
            self.state["ended"] = "no_agreement"
        return Value({"done": call.tool_name})

    def _rejection(
        self, call: ToolCall, speaker: str, offer: dict[str, Any] | None
    ) -> Failure | None:
        if "ended" in self.state:
            return reject("over", "The negotiation is over.")
        if not speaker:
            return reject("no_party", "This negotiation has no parties.")
        price = call.arguments.get("price", call.arguments.get("counter_price", 1))
        if not isinstance(price, int | float) or not 0 < price <= PRICE_MAX:
            return reject("bad_price", f"A price must be a positive number up to {PRICE_MAX:g}.")
        return self._reject_answer(speaker, offer) if call.tool_name in ANSWERING else None

    def _reject_answer(self, speaker: str, offer: dict[str, Any] | None) -> Failure | None:
        if offer is None:
            return reject("no_offer", "There is no offer yet.")
        if self._sides[offer["by"]] == self._sides[speaker]:
            return reject("own_side", f"The last offer comes from your own side, by {offer['by']}.")
        return None

    def first_turn(self) -> Handover:
        """Return the first party."""
        if not self._order:
            raise SpecError("initial_state.parties", "is required")
        return self._hand_to(self._order[0])

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Record the text and return the next party, or None when the negotiation is over."""
        if text:
            self._note(seat, "say", {"text": text})
        return self._next_after(seat, self._order)

    def turn_after_end(self, seat: str) -> Handover | None:
        """Continue without the party while both sides have members."""
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
        news = [entry for entry in log[heard.get(seat, 0) :] if entry["by"] != seat]
        heard[seat], self.state["speaker"] = len(log), seat
        self.revision += 1
        return Handover(seat, "\n".join(self._describe(entry) for entry in news))

    def _describe(self, entry: dict[str, Any]) -> str:
        action = _NEWS[entry["act"]].format(**entry["what"])
        return indent_continuation(f"{entry['by']} ({self._sides[entry['by']]}) {action}")

    def _note(self, by: str, act: str, what: dict[str, Any]) -> None:
        self.state.setdefault("log", []).append({"by": by, "act": act, "what": what})
        self.revision += 1

    def _last_offer(self) -> dict[str, Any] | None:
        offers = [entry for entry in self.state.get("log", []) if entry["act"] in OFFERS]
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
                    f"initial_state.parties[{index}]", "must have a unique name and a side"
                )
    return sides
