"""What the world received of the calls of an episode, in which order and how often.

Usually the world receives each call once, before the agent gets its result. If a fault holds a call
back or delivers it twice, the trace states every execution in ``delivered``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fumehood.core.json_values import JsonObject, as_object


@dataclass(frozen=True, slots=True)
class Delivery:
    """One execution of a call by the world."""

    number: int
    """Number under which the agent sent the call. A fault may have held it back until a later
    call."""
    arguments: JsonObject
    """After all faults."""
    succeeded: bool
    observed: JsonObject = field(default_factory=dict)
    """By path, the values of the state that the task's policy reads, before the execution."""
    invalid_approval: str = ""
    """Name of the gate that refused the call because its token is no approval of it."""

    @classmethod
    def of(cls, item: JsonObject) -> Delivery:
        """Read an item of ``delivered`` in the trace."""
        number = item.get("number")
        return cls(
            number if isinstance(number, int) else 0,
            as_object(item.get("arguments")),
            item.get("succeeded") is True,
            as_object(item.get("observed")),
            str(item.get("invalid_approval", "")),
        )

    def to_json(self) -> JsonObject:
        """Return the item of ``delivered`` in the trace."""
        item: JsonObject = {
            "number": self.number,
            "arguments": self.arguments,
            "succeeded": self.succeeded,
        }
        if self.observed:
            item["observed"] = self.observed
        if self.invalid_approval:
            item["invalid_approval"] = self.invalid_approval
        return item


Deliveries = tuple[Delivery, ...]


def deliveries_of(event: JsonObject) -> Deliveries | None:
    """Return what the world executed during a call; None if it was at most this call, once.

    Args:
        event: of the kind ``call``.
    """
    items = event.get("delivered")
    if not isinstance(items, list):
        return None
    return tuple(Delivery.of(as_object(item)) for item in items)


def is_answer_held(deliveries: Deliveries, number: int) -> bool:
    """Return whether the agent never receives a result of the world for a call that it sent.

    Args:
        deliveries: during the call, in order.
        number: of the call.
    """
    return all(each.number != number for each in deliveries)


def are_usual(deliveries: Deliveries, number: int, *, seems_executed: bool) -> bool:
    """Return whether the other fields of a call state what the world executed during it.

    Args:
        deliveries: during the call, in order.
        number: of the call.
        seems_executed: whether the result of the call states that the world executed it.
    """
    if not deliveries:
        return not seems_executed
    return len(deliveries) == 1 and not is_answer_held(deliveries, number)
