"""The limits of a provider hold in every minute, and episodes take turns."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from fumehood.gateway.provider_queue import WINDOW_S, Admission, ProviderQueue
from fumehood.gateway.settings import Provider


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.at_s = 1000.0

    def __call__(self) -> float:
        return self.at_s


def queue(clock: Clock, *, calls_at_once: int = 256, **limits: int) -> ProviderQueue:
    provider = Provider(name="p", address="http://localhost", **limits)  # type: ignore[arg-type]
    return ProviderQueue(provider, calls_at_once, clock)


async def admit(waiting: ProviderQueue, episode: str, tokens: int = 1) -> Admission:
    return await waiting.admit(episode, tokens, lambda began_ms, ended_ms: None)


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(20):
        await asyncio.sleep(0)


def admitted(tasks: list[asyncio.Task[Admission]]) -> list[bool]:
    return [task.done() for task in tasks]


def test_episodes_take_turns() -> None:
    async def run() -> list[str]:
        waiting = queue(Clock(), concurrent_calls=1)
        order = list[str]()

        async def ask(episode: str) -> None:
            admission = await admit(waiting, episode)
            order.append(episode)
            await asyncio.sleep(0)
            admission.release()

        episodes = ["greedy"] * 6 + ["modest", "other"]
        await asyncio.gather(*map(ask, episodes))
        return order

    assert asyncio.run(run())[:4] == ["greedy", "greedy", "modest", "other"]


def test_the_limit_of_concurrent_calls_holds() -> None:
    async def run() -> None:
        waiting = queue(Clock(), concurrent_calls=2)
        tasks = [asyncio.ensure_future(admit(waiting, "a")) for _ in range(3)]
        await settle()
        assert admitted(tasks) == [True, True, False]
        tasks[0].result().release()
        await settle()
        assert admitted(tasks) == [True, True, True]

    asyncio.run(run())


@pytest.mark.parametrize("leaves", ["by its end", "after a minute"])
def test_an_episode_between_two_requests_keeps_its_share_of_the_places(leaves: str) -> None:
    async def run() -> None:
        clock = Clock()
        waiting = queue(clock, concurrent_calls=4)
        (await admit(waiting, "modest")).release()
        greedy = [asyncio.ensure_future(admit(waiting, "greedy")) for _ in range(5)]
        await settle()
        assert admitted(greedy) == [True, True, False, False, False]
        (await admit(waiting, "modest")).release()
        await settle()
        assert admitted(greedy) == [True, True, False, False, False]
        if leaves == "by its end":
            waiting.forget("modest")
        else:
            clock.at_s += WINDOW_S
            waiting.admit_next()
        await settle()
        assert admitted(greedy) == [True, True, True, True, False]
        greedy[0].result().release()
        await settle()
        for admission in greedy:
            admission.result().release()

    asyncio.run(run())


def test_the_limit_of_requests_holds_in_every_minute() -> None:
    async def run() -> None:
        clock = Clock()
        waiting = queue(clock, requests_per_minute=2)
        (await admit(waiting, "a")).release()
        clock.at_s += 30
        (await admit(waiting, "a")).release()
        third = asyncio.ensure_future(admit(waiting, "a"))
        await settle()
        assert not third.done()
        clock.at_s += WINDOW_S - 30
        waiting.admit_next()
        await settle()
        third.result().release()
        fourth = asyncio.ensure_future(admit(waiting, "a"))
        await settle()
        assert not fourth.done()
        fourth.cancel()

    asyncio.run(run())


def test_the_limit_of_tokens_counts_reported_tokens() -> None:
    async def run() -> None:
        waiting = queue(Clock(), tokens_per_minute=100)
        first = await admit(waiting, "a", 90)
        second = asyncio.ensure_future(admit(waiting, "a", 50))
        await settle()
        assert not second.done()
        first.used(10)
        first.release()
        await settle()
        assert second.done()
        second.result().release()

    asyncio.run(run())


def test_a_request_beyond_the_limit_of_tokens_is_sent_alone() -> None:
    async def run() -> None:
        clock = Clock()
        waiting = queue(clock, tokens_per_minute=100)
        (await admit(waiting, "a", 1000)).release()
        small = asyncio.ensure_future(admit(waiting, "b", 1))
        await settle()
        assert not small.done()
        clock.at_s += WINDOW_S
        waiting.admit_next()
        await settle()
        small.result().release()

    asyncio.run(run())


def test_a_cancelled_request_leaves_the_queue() -> None:
    async def run() -> None:
        waiting = queue(Clock(), concurrent_calls=1)
        first = await admit(waiting, "a")
        tasks = [asyncio.ensure_future(admit(waiting, name)) for name in ("b", "c")]
        await settle()
        tasks[0].cancel()
        await settle()
        first.release()
        await settle()
        tasks[1].result().release()
        (await admit(waiting, "d")).release()

    asyncio.run(run())


def test_a_wait_is_reported_until_its_end() -> None:
    async def run() -> None:
        waiting = queue(Clock(), concurrent_calls=1)
        first = await admit(waiting, "a")
        waits = list[tuple[int, int]]()
        second = asyncio.ensure_future(
            waiting.admit("b", 1, lambda began_ms, ended_ms: waits.append((began_ms, ended_ms)))
        )
        await asyncio.sleep(0.05)
        first.release()
        (await second).release()
        assert sum(ended_ms - began_ms for began_ms, ended_ms in waits) >= 40
        assert all(one[1] == two[0] for one, two in pairwise(waits))

    asyncio.run(run())


def test_an_episode_keeps_a_place_for_others_once_they_ask() -> None:
    async def run() -> None:
        waiting = queue(Clock(), concurrent_calls=4)
        greedy = [asyncio.ensure_future(admit(waiting, "greedy")) for _ in range(8)]
        await settle()
        assert sum(admitted(greedy)) == 4, "no other episode asks"
        modest = [asyncio.ensure_future(admit(waiting, "modest")) for _ in range(2)]
        await settle()
        for task in greedy[:2]:
            task.result().release()
        await settle()
        assert admitted(modest) == [True, True]
        assert sum(admitted(greedy)) == 4
        for task in (*greedy, *modest):
            task.cancel()

    asyncio.run(run())


def test_a_large_estimate_does_not_stop_another_episode_for_a_minute() -> None:
    async def run() -> None:
        clock = Clock()
        waiting = queue(clock, tokens_per_minute=1000)
        (await admit(waiting, "modest", 10)).release()
        greedy = [asyncio.ensure_future(admit(waiting, "greedy", 10**9)) for _ in range(3)]
        await settle()
        modest = [asyncio.ensure_future(admit(waiting, "modest", 10)) for _ in range(20)]
        await settle()
        assert all(admitted(modest)), "the greedy episode uses half of the limit"
        for task in (*greedy, *modest):
            task.cancel()

    asyncio.run(run())


def test_the_requests_of_one_episode_leave_some_of_a_minute_to_others() -> None:
    async def run() -> None:
        waiting = queue(Clock(), requests_per_minute=10)
        (await admit(waiting, "modest")).release()
        greedy = [asyncio.ensure_future(admit(waiting, "greedy")) for _ in range(20)]
        await settle()
        assert sum(admitted(greedy)) == 5
        modest = [asyncio.ensure_future(admit(waiting, "modest")) for _ in range(4)]
        await settle()
        assert all(admitted(modest))
        for task in (*greedy, *modest):
            task.cancel()

    asyncio.run(run())


def test_a_place_is_freed_once() -> None:
    async def run() -> None:
        waiting = queue(Clock(), concurrent_calls=1)
        first = await admit(waiting, "a")
        first.release()
        first.release()
        second = await admit(waiting, "b")
        third = asyncio.ensure_future(admit(waiting, "b"))
        await settle()
        assert not third.done()
        second.release()
        third.cancel()

    asyncio.run(run())


def test_no_report_frees_more_tokens_than_the_request_was_counted_with() -> None:
    async def run() -> None:
        waiting = queue(Clock(), tokens_per_minute=100)
        first = await admit(waiting, "a", -1000)
        first.used(-1000)
        first.release()
        (await admit(waiting, "a", 100)).release()
        second = asyncio.ensure_future(admit(waiting, "a", 1))
        await settle()
        assert not second.done()
        second.cancel()

    asyncio.run(run())
