"""Turn policy ``echo``: one seat answers itself."""

from fumehood.core.conversation import Handover
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject


class Echo:
    """Returns the answers of the first seat to it, until it answers with nothing.

    Settings: ``opening``, the first message; ``turns_max``, the maximum number of turns (default
    10).
    """

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Read the settings.

        Raises:
            SpecError: a setting is invalid.
        """
        for name in settings.keys() - {"opening", "turns_max"}:
            raise SpecError(f"conversation.settings.{name}", "is not a setting of echo")
        turns = settings.get("turns_max", 10)
        if not isinstance(turns, int) or turns < 1:
            raise SpecError("conversation.settings.turns_max", "must be a positive integer")
        opening = settings.get("opening", "Begin.")
        if not isinstance(opening, str):
            raise SpecError("conversation.settings.opening", "must be text")
        self._opening = opening
        self._seat = seats[0]
        self._turns_left = turns - 1

    def first_turn(self) -> Handover:
        """Give the first message."""
        return Handover(self._seat, self._opening)

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Return the answer as the next message."""
        if not text or self._turns_left == 0:
            return None
        self._turns_left -= 1
        return Handover(seat, text)

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the conversation."""
        return None
