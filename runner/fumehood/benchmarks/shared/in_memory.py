"""Plays a list of moves on a task in this process, without boxes, services and sockets.

Baselines, validation and generators use it. It uses the same world, layers, ledger
and events as any episode.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Condition

from fumehood.core.clock import StoppedClock
from fumehood.core.episode import Episode, Seat
from fumehood.core.errors import SpecError, nearest
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.json_values import Json
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import GaveUp
from fumehood.core.policy import APPROVAL_TOOLS
from fumehood.core.shared_time import SharedTime, WorkEnded
from fumehood.core.task import Task
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.worlds.registry import toolset_of

Move = Mapping[str, Json]
"""One of ``{"tool_name": …, "args": {…}}``, ``{"submit": answer}`` and ``{"give_up": reason}``."""


def open_task(task: Task, recorder: MemoryRecorder) -> Episode:
    """Build the task's world and its layers.

    Raises:
        SpecError: world, harness mode, state or fault plan cannot be used.
    """
    mode = HARNESS_MODES.load(task.harness_mode)()
    return mode.open_episode(task.spec("in_memory"), recorder, StoppedClock())


def play_in_memory(
    task: Task, moves: Iterable[Move], *, known_tools_only: bool = False
) -> Evidence:
    """Make the moves until all work has ended, and return the evidence.

    Args:
        task: the task to play.
        moves: each may name its seat under ``seat``; the default is the first seat. A seat that has
            the turn and no moves left submits an empty answer.
        known_tools_only: whether a call of a tool that the world does not have is invalid, rather
            than a failed call.

    Raises:
        SpecError: the task cannot be opened or played, or a move is invalid.
    """
    recorder = MemoryRecorder()
    episode = open_task(task, recorder)
    seats = {seat.name: seat for seat in episode.seats}
    first = episode.seats[0].name
    moves_left: dict[str, deque[tuple[int, Move]]] = {name: deque() for name in seats}
    for number, move in enumerate(moves):
        if known_tools_only:
            _check_tool(move, number, episode)
        moves_left[_seat_of(move, number, first, moves_left)].append((number, move))

    def act(seat: Seat) -> None:
        left = moves_left[seat.name]
        number, move = left.popleft() if left else (-1, {"submit": ""})
        _make(move, number, seat)

    if isinstance(episode.conversation, SharedTime):
        _play_together(episode, act)
    else:
        for seat in _next_seats(episode):
            act(seat)
    episode.close()
    return read_evidence(event.to_json() for event in recorder.events)


def _seat_of(move: Move, number: int, first: str, seats: Container[str]) -> str:
    seat = move.get("seat", first)
    if isinstance(seat, str) and seat in seats:
        return seat
    raise SpecError(f"oracle[{number}].seat", f"is not a seat of this task: {seat!r}")


def _check_tool(move: Move, number: int, episode: Episode) -> None:
    name = move.get("tool_name")
    toolsets = [toolset_of(episode.world, seat.name) for seat in episode.seats]
    known = [tool.name for toolset in toolsets for tool in toolset.list_tools()]
    known += APPROVAL_TOOLS if episode.spec.policy.get("gates") else ()
    if isinstance(name, str) and name not in known:
        reason = f"the world has no tool {name!r}; {nearest(name, known)}"
        raise SpecError(f"oracle[{number}].tool_name", reason)


def _next_seats(episode: Episode) -> Iterator[Seat]:
    """Yield the seat of the next move until all work has ended."""
    while not episode.ended:
        yield next(seat for seat in episode.seats if seat.end is None and seat.has_turn)


def _play_together(episode: Episode, act: Callable[[Seat], None]) -> None:
    """Let each seat act in a thread, because a call returns only after its virtual time."""
    changed = Condition()
    conversation = episode.conversation
    assert conversation is not None
    conversation.on_change, conversation.wait_for = changed.notify_all, changed.wait_for

    def work(seat: Seat) -> None:
        with changed, suppress(WorkEnded):
            while changed.wait_for(lambda: seat.can_act or conversation.is_over):
                if conversation.is_over:
                    return
                try:
                    act(seat)
                except Exception:
                    # The other seats would wait for this one.
                    conversation.stop()
                    raise

    with ThreadPoolExecutor(len(episode.seats)) as threads:
        for done in [threads.submit(work, seat) for seat in episode.seats]:
            done.result()
    conversation.on_change = lambda: None


def _make(move: Move, number: int, seat: Seat) -> None:
    match move:
        case {"tool_name": str(name), "args": dict(arguments)}:
            seat.call(name, arguments)
        case {"submit": str(answer)}:
            seat.answer(answer)
        case {"give_up": str(reason)}:
            seat.finish(GaveUp(reason))
        case _:
            raise SpecError(f"oracle[{number}]", f"is not a move: {dict(move)!r}")
