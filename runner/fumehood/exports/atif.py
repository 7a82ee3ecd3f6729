"""Trajectories in ATIF 1.8, the format of Harbor: one file per episode.

Source: ``harbor/models/trajectories`` of Harbor 0.25 and its RFC 0001. The models forbid unknown
fields except in ``extra``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from fumehood.core.outcome import outcome_name
from fumehood.exports.exported import (
    NO_MODEL,
    Call,
    ExportedEpisode,
    ExportedRun,
    Message,
    ModelReply,
    Step,
    iso_time,
)
from fumehood.scorers.verdict import marks_of
from fumehood.version import __version__

SCHEMA = "ATIF-v1.8"


def trajectories(run: ExportedRun) -> Iterator[tuple[str, bytes]]:
    """Yield one file per episode that has a trace."""
    for episode in run.episodes():
        if episode.events:
            document = json.dumps(trajectory(run, episode), indent=1)
            yield f"{episode.row.name.identifier}.json", document.encode()


def trajectory(run: ExportedRun, episode: ExportedEpisode) -> dict[str, Any]:
    """Return the trajectory of the first seat; those of other seats are embedded."""
    steps = list(episode.steps())
    tested = [seat.name for seat in episode.tested_seats]
    seats = list(dict.fromkeys([*tested, *(step.seat for step in steps)]))
    main, *others = (_of_seat(episode, seat, steps) for seat in seats)
    embedded = {"subagent_trajectories": others} if others else {}
    facts = {"fumehood": run.facts, "outcome": outcome_name(episode.row.outcome)}
    score: dict[str, Any] = {
        "success": episode.row.score.success,
        "checks": dict(episode.row.score.checks),
    }
    score |= marks_of(episode.row.score.metrics)
    return {**main, **embedded, "extra": {**facts, **score, "seed": str(episode.row.seed)}}


def _of_seat(episode: ExportedEpisode, seat: str, steps: Iterable[Step]) -> dict[str, Any]:
    own = [step for step in steps if step.seat == seat]
    replies = [step for step in own if isinstance(step, ModelReply)]
    model = {"model_name": replies[0].model} if replies else {}
    if not replies and episode.model != NO_MODEL:
        model = {"model_name": episode.model}
    converted = _steps(own)
    return {
        "schema_version": SCHEMA,
        "session_id": str(episode.row.name),
        "trajectory_id": f"{episode.row.trace_digest}/{seat}",
        "agent": {
            "name": episode.row.name.agent,
            "version": __version__,
            **model,
            "extra": {"seat": seat},
        },
        "steps": converted or [_empty_step(episode)],
        "final_metrics": {
            "total_prompt_tokens": sum(reply.tokens("input") for reply in replies),
            "total_completion_tokens": sum(reply.tokens("output") for reply in replies),
            "total_cached_tokens": sum(reply.tokens("cached") for reply in replies),
            "total_cost_usd": sum(reply.cost_usd for reply in replies),
            "total_steps": len(converted) or 1,
        },
    }


def _steps(own: Iterable[Step]) -> list[dict[str, Any]]:
    """Convert the steps of a seat. A model reply and the calls after it are one step."""
    steps: list[dict[str, Any]] = []
    for step in own:
        match step:
            case Message(_, role, text):
                source = "agent" if role == "assistant" else role
                without_model = {"llm_call_count": 0} if source == "agent" else {}
                steps.append({"source": source, "message": text, **without_model})
            case ModelReply(_, text):
                steps.append(
                    {
                        "source": "agent",
                        "message": text,
                        "model_name": step.model,
                        "llm_call_count": 1,
                        "metrics": {
                            "prompt_tokens": step.tokens("input"),
                            "completion_tokens": step.tokens("output"),
                            "cached_tokens": step.tokens("cached"),
                            "cost_usd": step.cost_usd,
                        },
                    }
                )
            case Call():
                last = steps[-1] if steps else {}
                if last.get("llm_call_count") != 1 and "tool_calls" not in last:
                    steps.append({"source": "agent", "message": "", "llm_call_count": 0})
                _add_call(steps[-1], step)
        steps[-1].setdefault("timestamp", iso_time(step.at.wall_ms))
    return [{"step_id": number, **step} for number, step in enumerate(steps, 1)]


def _add_call(step: dict[str, Any], call: Call) -> None:
    step.setdefault("tool_calls", []).append(
        {
            "tool_call_id": call.identifier,
            "function_name": call.event["tool"],
            "arguments": call.event["arguments"],
        }
    )
    step.setdefault("observation", {"results": []})["results"].append(
        {"source_call_id": call.identifier, "content": call.result_text, "extra": call.facts}
    )


def _empty_step(episode: ExportedEpisode) -> dict[str, Any]:
    at = iso_time(episode.events[0].wall_ms)
    return {"step_id": 1, "source": "user", "timestamp": at, "message": episode.instruction}
