"""Replays, reorders and races calls, to exceed the budget or to act after the end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from attempts import GIVEN, attempt
from calls import call, open_channel, submit

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

BUDGET = int(GIVEN.get("calls", "64"))
LIST = '{"path": "/"}'


def same_name_twice() -> str:
    with open_channel() as channel:
        first = call(channel, "write_file", '{"path": "/once", "content": "1"}', "same")
        again = call(channel, "write_file", '{"path": "/once", "content": "1"}', "same")
        other = call(channel, "write_file", '{"path": "/twice", "content": "2"}', "same")
    refused = first == again == "value" and other in ("call_id_reused", "ended")
    return "" if refused else f"{first}, {again}, {other}"


def race() -> str:
    """Make six times as many parallel calls as the budget admits."""
    with ThreadPoolExecutor(16) as threads, open_channel() as channel:
        statuses = list(threads.map(lambda _: call(channel, "list_dir", LIST), range(6 * BUDGET)))
    admitted = statuses.count("value")
    return f"{admitted} calls of {BUDGET}" if admitted > BUDGET else ""


def after_the_end() -> str:
    with open_channel() as channel:
        submit(channel, "done")
        status = call(channel, "list_dir", LIST)
        counted = submit(channel, "done again")
    return f"{status}, {counted}" if status == "value" or counted else ""


def answers_before_questions() -> str:
    with open_channel() as channel:
        ending = pb.InteractRequest(submit=pb.SubmitRequest())
        requests = [pb.InteractRequest(), ending, pb.InteractRequest()]
        received = list(ToolServiceStub(channel).Interact(iter(requests), timeout=5))
    return "" if len(received) <= len(requests) else f"{len(received)} answers"


attempt("a name used twice", same_name_twice)
attempt("six times the budget at once", race)
attempt("calls after the end", after_the_end)
attempt("requests without a request", answers_before_questions)
