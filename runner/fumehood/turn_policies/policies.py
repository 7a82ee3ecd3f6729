"""The built-in turn policies, and how they read their settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fumehood.core.conversation import Handover, indent_continuation
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject

TURNS_MAX = 200
"""Default limit of the turns of all seats together."""


def check_names(settings: JsonObject, known: Iterable[str]) -> None:
    """Check that a policy knows every setting.

    Raises:
        SpecError: a setting is unknown.
    """
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise SpecError(
            f"conversation.settings.{unknown[0]}",
            f"is not a setting of this policy; settings: {', '.join(sorted(known))}",
        )


def seat_setting(settings: JsonObject, name: str, seats: tuple[str, ...]) -> str:
    """Return the seat that a setting names.

    Raises:
        SpecError: it does not name a seat.
    """
    return seat_value(settings.get(name), f"conversation.settings.{name}", seats)


def seat_value(value: Json, field: str, seats: tuple[str, ...]) -> str:
    """Return the seat that a value names.

    Raises:
        SpecError: it does not name a seat.
    """
    if isinstance(value, str) and value in seats:
        return value
    raise SpecError(field, f"must name a seat: {', '.join(seats)}")


def text_setting(settings: JsonObject, name: str) -> str:
    """Return a text setting, empty by default.

    Raises:
        SpecError: it has another type.
    """
    value = settings.get(name, "")
    if isinstance(value, str):
        return value
    raise SpecError(f"conversation.settings.{name}", "must be text")


def count_setting(settings: JsonObject, name: str, default: int) -> int:
    """Return a count setting, at least 1.

    Raises:
        SpecError: it is not a whole number of at least 1.
    """
    value = settings.get(name, default)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise SpecError(f"conversation.settings.{name}", "must be a whole number, at least 1")


def flag_setting(settings: JsonObject, name: str) -> bool:
    """Return a setting that is true or false, false by default.

    Raises:
        SpecError: it has another type.
    """
    value = settings.get(name, False)
    if isinstance(value, bool):
        return value
    raise SpecError(f"conversation.settings.{name}", "must be true or false")


class Dialogue:
    """Two seats take turns until one submits a stop text.

    Settings: ``first`` (the seat that begins), ``opening`` (its message), ``stop`` (by seat, texts
    that end the dialogue), ``turns_max`` (turns of both seats together).
    """

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Read the settings.

        Raises:
            SpecError: there are not two seats, or a setting is invalid.
        """
        check_names(settings, ("first", "opening", "stop", "turns_max"))
        if len(seats) != 2:
            raise SpecError("conversation.rule", f"dialogue needs two seats, not {len(seats)}")
        self._first = seat_setting(settings, "first", seats)
        self._opening = text_setting(settings, "opening")
        self._other = {seats[0]: seats[1], seats[1]: seats[0]}
        self._stop = _stop_words(settings, seats)
        self._turns_left = count_setting(settings, "turns_max", TURNS_MAX)

    def first_turn(self) -> Handover:
        """Begin with the first seat."""
        return Handover(self._first, self._opening)

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Pass the text to the other seat, unless it ends the dialogue."""
        self._turns_left -= 1
        if self._turns_left <= 0 or any(word in text for word in self._stop.get(seat, ())):
            return None
        return Handover(self._other[seat], text)

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the dialogue."""
        return None


def _stop_words(settings: JsonObject, seats: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    field = "conversation.settings.stop"
    given = settings.get("stop", {})
    if not isinstance(given, dict):
        raise SpecError(field, "must be an object that maps seats to lists of texts")
    texts_by_seat: dict[str, tuple[str, ...]] = {}
    for seat, texts in given.items():
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise SpecError(f"{field}.{seat}", "must be a list of non-empty texts")
        texts_by_seat[seat_value(seat, field, seats)] = tuple(str(text) for text in texts)
    return texts_by_seat


class Round:
    """Seats take turns in a fixed order. Each receives the texts since its last turn.

    Settings: ``order`` (seats, by default in the order of the task), ``rounds`` (number of rounds,
    1 by default), ``opening`` (the first message to every seat), ``stop`` (a text that ends the
    conversation), ``simultaneous`` (whether seats receive only the texts of earlier rounds).
    """

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Read the settings.

        Raises:
            SpecError: a setting is invalid.
        """
        check_names(settings, ("order", "rounds", "opening", "stop", "simultaneous"))
        order = settings.get("order", list(seats))
        if not isinstance(order, list) or len(order) != len({*map(str, order)}) or not order:
            raise SpecError("conversation.settings.order", "must be a list of different seats")
        self._order = [seat_value(name, "conversation.settings.order", seats) for name in order]
        self._turns_left = count_setting(settings, "rounds", 1) * len(self._order)
        self._stop = text_setting(settings, "stop")
        self._is_simultaneous = flag_setting(settings, "simultaneous")
        self._texts_of_round: list[tuple[str, str]] = []
        """Author and text, in a simultaneous round that has not ended."""
        opening = text_setting(settings, "opening")
        self._pending: dict[str, list[str]] = {
            name: [opening] if opening else [] for name in self._order
        }

    def first_turn(self) -> Handover:
        """Begin with the first seat."""
        return self._turn_of(self._order[0])

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Store the text for all other seats and continue with the next one."""
        self._texts_of_round.append((seat, indent_continuation(f"{seat}: {text}")))
        if not self._is_simultaneous or seat == self._order[-1]:
            self._deliver()
        ends = bool(self._stop) and self._stop in text
        return None if ends else self._next_after(seat)

    def turn_after_end(self, seat: str) -> Handover | None:
        """Continue without the seat."""
        if seat == self._order[-1]:
            self._deliver()
        following = self._next_after(seat)
        self._order.remove(seat)
        return following if self._order else None

    def _deliver(self) -> None:
        for author, text in self._texts_of_round:
            for other in self._order:
                if other != author:
                    self._pending[other].append(text)
        self._texts_of_round.clear()

    def _next_after(self, seat: str) -> Handover | None:
        self._turns_left -= 1
        if self._turns_left <= 0:
            return None
        return self._turn_of(self._order[(self._order.index(seat) + 1) % len(self._order)])

    def _turn_of(self, seat: str) -> Handover:
        texts, self._pending[seat] = self._pending[seat], []
        return Handover(seat, "\n\n".join(texts))


_ADDRESSED = re.compile(r"\s*@([a-z0-9_]+)\s*:?\s*(.*)", re.DOTALL)


class Tree:
    """Each seat assigns work to the seats below it, one at a time, and receives their answers.

    A seat assigns work with ``@name: text``. Any other text is its answer to the seat above it. An
    answer of the root ends the conversation. Settings: ``parents`` (by seat, the seat above
    it; the root is the only seat without one), ``opening`` (first message to the root),
    ``turns_max`` (turns of all seats together).
    """

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Read the settings.

        Raises:
            SpecError: the seats do not form a tree, or a setting is invalid.
        """
        check_names(settings, ("parents", "opening", "turns_max"))
        self._parents = _parents(settings, seats)
        self._root = next(name for name in seats if name not in self._parents)
        self._opening = text_setting(settings, "opening")
        self._turns_left = count_setting(settings, "turns_max", TURNS_MAX)

    def first_turn(self) -> Handover:
        """Begin with the root."""
        return Handover(self._root, self._opening)

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Pass an order to the seat below, and an answer to the seat above."""
        self._turns_left -= 1
        if self._turns_left <= 0:
            return None
        below = [name for name, parent in self._parents.items() if parent == seat]
        addressed = _ADDRESSED.fullmatch(text) if below or seat == self._root else None
        if addressed is not None:
            name, order = addressed.groups()
            if name in below:
                return Handover(name, order)
            return Handover(seat, f"No seat is called {name}; seats: {', '.join(below)}.")
        if seat == self._root:
            return None
        return Handover(self._parents[seat], indent_continuation(f"{seat}: {text}"))

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the conversation if the root left; otherwise inform the seat above."""
        if seat == self._root:
            return None
        above = self._parents.pop(seat)
        # The seats below the one that left continue below its parent.
        for name, parent in self._parents.items():
            if parent == seat:
                self._parents[name] = above
        return Handover(above, f"{seat} has left.")


def _parents(settings: JsonObject, seats: tuple[str, ...]) -> dict[str, str]:
    field = "conversation.settings.parents"
    given = settings.get("parents")
    if not isinstance(given, dict):
        raise SpecError(field, "must be an object that maps each seat to the seat above it")
    parents = {
        seat_value(name, field, seats): seat_value(parent, f"{field}.{name}", seats)
        for name, parent in given.items()
    }
    if len(parents) != len(seats) - 1:
        raise SpecError(field, "must name a parent for every seat but one, the root")
    for name in parents:
        above, visited = name, {name}
        while above in parents:
            above = parents[above]
            if above in visited:
                raise SpecError(f"{field}.{name}", "the seats above it form a cycle")
            visited.add(above)
    return parents


class Supervisor(Tree):
    """One seat assigns work to all others: a tree of one level.

    Settings: ``head`` (the leading seat), ``opening`` (its first message), ``turns_max`` (turns of
    all seats together).
    """

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Read the settings.

        Raises:
            SpecError: there is only one seat, or a setting is invalid.
        """
        check_names(settings, ("head", "opening", "turns_max"))
        if len(seats) < 2:
            raise SpecError("conversation.rule", "supervisor needs at least two seats")
        head = seat_setting(settings, "head", seats)
        others = {name: setting for name, setting in settings.items() if name != "head"}
        parents: JsonObject = {name: head for name in seats if name != head}
        super().__init__({**others, "parents": parents}, seats)


ALL = "all"
"""Address of all neighbours."""
_MESSAGE = re.compile(r"^@([a-z0-9_]+)[ \t]*:[ \t]*", re.MULTILINE)


class Graph:
    """Seats write to their neighbours in a graph. A seat has a turn when it has received a message.

    A line that begins with ``@name:`` starts a private message to a neighbour. A line that begins
    with ``@all:``, and text before the first address, goes to all neighbours. Seats take turns in
    the order of their first unread message. The conversation ends when no message is unread.
    Settings: ``edges`` (pairs of seats that may write to each other), ``first`` (the seat that
    begins), ``opening`` (its message), ``stop`` (a text that ends the conversation), ``turns_max``
    (turns of all seats together).
    """

    def __init__(self, settings: JsonObject, seats: tuple[str, ...]) -> None:
        """Read the settings.

        Raises:
            SpecError: a setting is invalid.
        """
        check_names(settings, ("edges", "first", "opening", "stop", "turns_max"))
        self._neighbours = _neighbours(settings, seats)
        self._first = seat_setting({"first": seats[0], **settings}, "first", seats)
        self._opening = text_setting(settings, "opening")
        self._stop = text_setting(settings, "stop")
        self._turns_left = count_setting(settings, "turns_max", TURNS_MAX)
        self._unread: dict[str, list[str]] = {}
        """Texts by seat; the seat that has waited longest is first."""

    def first_turn(self) -> Handover:
        """Begin with the first seat."""
        return Handover(self._first, self._opening)

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Deliver the messages and continue with the seat that has waited longest."""
        for name, message in _messages(text):
            if name == ALL:
                for neighbour in self._neighbours[seat]:
                    self._deliver(neighbour, f"{seat} to all: {message}")
            elif name in self._neighbours[seat]:
                self._deliver(name, f"{seat}: {message}")
            else:
                names = ", ".join(self._neighbours[seat]) or "none"
                self._deliver(seat, f"No neighbour is called {name}; neighbours: {names}.")
        ends = bool(self._stop) and self._stop in text
        return None if ends else self._next()

    def turn_after_end(self, seat: str) -> Handover | None:
        """Inform the neighbours and continue."""
        self._unread.pop(seat, None)
        for neighbour in self._neighbours.pop(seat):
            self._neighbours[neighbour].remove(seat)
            self._deliver(neighbour, f"{seat} has left.")
        return self._next()

    def _deliver(self, seat: str, text: str) -> None:
        self._unread.setdefault(seat, []).append(indent_continuation(text))

    def _next(self) -> Handover | None:
        self._turns_left -= 1
        if self._turns_left <= 0 or not self._unread:
            return None
        seat = next(iter(self._unread))
        return Handover(seat, "\n\n".join(self._unread.pop(seat)))


def _neighbours(settings: JsonObject, seats: tuple[str, ...]) -> dict[str, list[str]]:
    field = "conversation.settings.edges"
    edges = settings.get("edges")
    if not isinstance(edges, list) or not edges:
        raise SpecError(field, "must be a list of pairs of seats")
    neighbours: dict[str, list[str]] = {name: [] for name in seats}
    for index, edge in enumerate(edges):
        match edge:
            case [first, second] if first != second:
                pair = [seat_value(name, f"{field}[{index}]", seats) for name in (first, second)]
            case _:
                raise SpecError(f"{field}[{index}]", "must be a pair of different seats")
        for name, neighbour in (pair, pair[::-1]):
            if neighbour not in neighbours[name]:
                neighbours[name].append(neighbour)
    return neighbours


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """Return address and text of each message that is not empty."""
    before, *addressed = _MESSAGE.split(text)
    for name, message in [(ALL, before), *zip(addressed[::2], addressed[1::2], strict=True)]:
        if message.strip():
            yield name, message.strip()
