"""Inspect's evaluation logs, ``.eval``, schema version 2: one ZIP file per agent.

Source: the models in ``inspect_ai.log`` and ``inspect_ai.event`` of Inspect 0.3.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.core.outcome import Infra, OutOfBudget, TimedOut, outcome_name
from fumehood.core.tools import FailureKind
from fumehood.exports.exported import (
    Call,
    ExportedEpisode,
    ExportedRun,
    Message,
    ModelReply,
    Step,
    TimedEvent,
    iso_time,
    seat_prefix,
)
from fumehood.records.row import file_name
from fumehood.scorers.native import DENYING_FAMILY, INVALID_CALL_CODES, REWRITING_FAMILY
from fumehood.version import __version__

VERSION = 2
SCORER = "fumehood"
CHECKS = "checks"
"""Name of the score with one number per check."""
COUNTERPART = "counterpart"
"""Fact about a call: it was made by a counterpart, such as a simulated user, not by the agent."""
_LIMITS = {"model_tokens": "token", "model_microusd": "cost", "tool_microusd": "cost"}
"""Budget kind → limit of Inspect; all others are ``custom``."""
_ERRORS = {"timeout": "timeout", "authz_denied": "permission"}
"""Error code → type of a tool error; all others are ``unknown``."""
_SUMMARIZED = (
    *("id", "epoch", "input", "target", "scores"),
    *("metadata", "model_usage", "total_time", "uuid"),
)
"""Fields of a sample that its summary repeats."""
_STOP_REASONS = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "context_overflow": "model_length",
}


def inspect_logs(run: ExportedRun) -> Iterator[tuple[str, bytes]]:
    """Yield one log per agent."""
    for agent in run.agents:
        yield f"{file_name(agent)}.eval", _log(run, agent)


def _log(run: ExportedRun, agent: str) -> bytes:
    content = io.BytesIO()
    summaries: list[JsonObject] = []
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        times: list[int] = []
        usage: dict[str, Counter[str]] = {}
        models = Counter[str]()
        for episode in run.episodes(agent):
            sample = _sample(episode)
            _add(archive, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.append(_summary(sample))
            times += [each.wall_ms for each in episode.events]
            models[episode.model] += 1
            for model, tokens in as_object(sample["model_usage"]).items():
                usage.setdefault(model, Counter()).update(as_object(tokens))
        started, ended = iso_time(min(times, default=0)), iso_time(max(times, default=0))
        model = models.most_common(1)[0][0]
        header = _header(run, agent, summaries, started, model)
        _add(
            archive,
            "_journal/start.json",
            {key: header[key] for key in ("version", "eval", "plan")},
        )
        _add(archive, "summaries.json", summaries)
        header["stats"] = {
            "started_at": started,
            "completed_at": ended,
            "model_usage": {name: dict(tokens) for name, tokens in usage.items()},
        }
        _add(archive, "header.json", header)
    return content.getvalue()


def _add(archive: ZipFile, name: str, value: object) -> None:
    # The date of the entry is constant, so that equal runs give equal bytes.
    archive.writestr(ZipInfo(name), json.dumps(value), ZIP_DEFLATED)


def _header(
    run: ExportedRun, agent: str, summaries: list[JsonObject], created: str, model: str
) -> dict[str, Any]:
    successes = [
        as_object(as_object(summary["scores"])[SCORER])["value"] == "C"
        for summary in summaries
        if summary.get("scores")
    ]
    config = as_object(run.manifest.get("config"))
    accuracy = sum(successes) / len(successes) if successes else 0.0
    ids: list[Json] = list(dict.fromkeys(str(summary["id"]) for summary in summaries))
    return {
        "version": VERSION,
        "status": "success" if run.run.provenance.is_finished else "cancelled",
        "eval": {
            "eval_id": f"{run.manifest.get('run')}-{file_name(agent)}",
            "run_id": str(run.manifest.get("run")),
            "created": created,
            "task": run.suite,
            "task_id": str(run.manifest.get("suite_digest"))[:22],
            "task_version": 0,
            "solver": agent,
            "dataset": {"name": run.suite, "samples": len(ids), "sample_ids": ids},
            "sandbox": {"type": str(run.manifest.get("engine"))},
            "model": model,
            "config": {"epochs": config.get("trials", 1)},
            "packages": {"fumehood": __version__},
            "metadata": {"fumehood": run.facts},
            "scorers": [{"name": SCORER}],
        },
        "plan": {"name": "plan", "steps": [{"solver": agent, "params": {}}]},
        "results": {
            "total_samples": len(summaries),
            "completed_samples": sum("error" not in summary for summary in summaries),
            "scores": [
                {
                    "name": SCORER,
                    "scorer": SCORER,
                    "scored_samples": len(successes),
                    "unscored_samples": len(summaries) - len(successes),
                    "params": {},
                    "metrics": {"accuracy": {"name": "accuracy", "value": accuracy, "params": {}}},
                }
            ],
        },
    }


def _summary(sample: dict[str, Any]) -> JsonObject:
    summary: JsonObject = {**{name: sample[name] for name in _SUMMARIZED}, "completed": True}
    if "error" in sample:
        summary["error"] = sample["error"]["message"]
    if "limit" in sample:
        summary["limit"] = sample["limit"]["type"]
    return summary


def _sample(episode: ExportedEpisode) -> dict[str, Any]:
    row, events = episode.row, episode.events
    begun_ms = events[0].wall_ms if events else 0
    ended_ms = events[-1].wall_ms if events else 0
    steps = list(episode.steps())
    usage: dict[str, Counter[str]] = {}
    for step in steps:
        if isinstance(step, ModelReply):
            usage.setdefault(step.model, Counter()).update(_usage(step))
    sample: dict[str, Any] = {
        # Readers find a sample by the name of its file, which has this ID.
        "id": file_name(row.name.task),
        "epoch": row.name.trial + 1,
        "input": episode.instruction,
        "target": "",
        "messages": list(_messages(episode, steps)),
        "output": {"model": episode.model, "choices": [], "completion": episode.answer},
        "scores": _scores(episode),
        "metadata": {
            "task": row.name.task,
            "outcome": outcome_name(row.outcome),
            "seed": str(row.seed),
            "trace_digest": row.trace_digest,
            "fault_plan": events[0].event["fault_plan"] if events else [],
            **({} if episode.is_readable else {"trace": "not exported: an event of unknown form"}),
        },
        "store": {},
        "events": list(_events(episode, steps, begun_ms)),
        "model_usage": {model: dict(tokens) for model, tokens in usage.items()},
        "total_time": row.wall_ms / 1000,
        "working_time": (ended_ms - begun_ms) / 1000,
        "uuid": row.trace_digest[:22] or row.name.identifier,
        "attachments": {},
    }
    if events:
        sample |= {"started_at": iso_time(begun_ms), "completed_at": iso_time(ended_ms)}
    match row.outcome:
        case OutOfBudget(kind):
            budget = episode.task.seats[0].budget.to_json() if episode.task else {}
            limit = {"type": _LIMITS.get(kind.value, "custom"), "limit": budget.get(kind.value, 0)}
            sample["limit"] = {**limit, "reason": kind.value}
        case TimedOut(wall_ms):
            sample["limit"] = {"type": "time", "limit": wall_ms / 1000}
        case Infra():
            message = f"{outcome_name(row.outcome)}: {row.outcome.detail}"
            sample["error"] = {"message": message, "traceback": "", "traceback_ansi": ""}
    return sample


def _scores(episode: ExportedEpisode) -> JsonObject:
    """Return the scores; none for an episode that is not graded."""
    row = episode.row
    if row.score.success is None:
        return {}
    failed = ", ".join(episode.failed_checks)
    return {
        SCORER: {
            "value": "C" if row.score.success else "I",
            "answer": episode.answer,
            "explanation": f"These checks do not hold: {failed}" if failed else "All checks hold.",
            "metadata": dict(row.score.metrics),
            "history": [],
        },
        CHECKS: {
            "value": {name: int(holds) for name, holds in row.score.checks.items()},
            "history": [],
        },
    }


def _messages(episode: ExportedEpisode, steps: list[Step]) -> Iterator[dict[str, Any]]:
    for number, step in enumerate(steps):
        prefix = seat_prefix(episode, step.seat)
        match step:
            case Message(_, role, text):
                message = {"id": f"m{number}", "role": role, "content": prefix + text}
                yield {**message, **({"model": episode.model} if role == "assistant" else {})}
            case ModelReply(_, text):
                yield {
                    "id": f"m{number}",
                    "role": "assistant",
                    "content": prefix + text,
                    "model": step.model,
                }
            case Call():
                function, identifier = step.event["tool"], step.identifier
                called = {"id": identifier, "function": function, "type": "function"}
                yield {
                    "id": f"m{number}",
                    "role": "assistant",
                    "content": prefix,
                    "model": episode.model,
                    "tool_calls": [{**called, "arguments": step.event["arguments"]}],
                }
                yield {
                    "id": f"m{number}r",
                    "role": "tool",
                    "content": "" if step.failure else step.result_text,
                    "tool_call_id": identifier,
                    "function": function,
                    **({"error": _tool_error(step)} if step.failure else {}),
                }


def _error_type(call: Call) -> str:
    """Return Inspect's type; calls that the scorers count as invalid or denied have their own."""
    failure = call.failure or {}
    kind, code, fired = failure.get("kind"), str(failure.get("code")), call.event["faults"]
    answering = [fault["family"] for fault in fired if fault["family"] != REWRITING_FAMILY]
    if kind == FailureKind.OUT_OF_BUDGET.value:
        code = str(as_object(failure.get("details")).get("original_error_code"))
        if not fired and code in INVALID_CALL_CODES:
            return "parsing"
    if kind == FailureKind.INVALID_CALL.value:
        return "parsing"
    return "permission" if answering[-1:] == [DENYING_FAMILY] else _ERRORS.get(code, "unknown")


def _tool_error(call: Call) -> JsonObject:
    failure = call.failure or {}
    return {
        "type": _error_type(call),
        "message": f"{failure.get('code')}: {failure.get('message')}",
    }


def _usage(reply: ModelReply) -> dict[str, int]:
    counted = {"input_tokens": reply.tokens("input"), "output_tokens": reply.tokens("output")}
    return {**counted, "total_tokens": sum(counted.values())}


def _events(episode: ExportedEpisode, steps: list[Step], begun_ms: int) -> Iterator[dict[str, Any]]:
    if not episode.events:
        return
    span = episode.row.trace_digest[:22]

    def base(at: TimedEvent, kind: str, name: str) -> dict[str, Any]:
        return {
            "uuid": f"{span}/{at.position}{name}",
            "span_id": span,
            "timestamp": iso_time(at.wall_ms),
            "working_start": max(0.0, (at.wall_ms - begun_ms - at.duration_us / 1000) / 1000),
            "event": kind,
        }

    first, last = episode.events[0], episode.events[-1]
    own_seats = {seat.name for seat in episode.tested_seats}
    yield {
        **base(first, "span_begin", ""),
        "id": span,
        "type": "agent",
        "name": episode.row.name.agent,
    }
    for step in steps:
        match step:
            case Call():
                yield {
                    **base(step.at, "tool", ""),
                    **_tool_event(step, is_counterpart=step.seat not in own_seats),
                }
            case ModelReply():
                yield {**base(step.at, "model", "model"), **_model_event(step)}
    for each in episode.events:
        if each.event["kind"] in ("world_event", "monitor", "model_refused", "refused"):
            yield {**base(each, "info", ""), "source": "fumehood", "data": each.event}
    yield {**base(last, "span_end", ""), "id": span}


def _tool_event(call: Call, *, is_counterpart: bool) -> dict[str, Any]:
    event = call.event
    facts = {**call.facts, COUNTERPART: True} if is_counterpart else call.facts
    return {
        "type": "function",
        "id": call.identifier,
        "function": event["tool"],
        "arguments": event["arguments"],
        "result": "" if call.failure else call.result_text,
        "events": [],
        "completed": iso_time(call.at.wall_ms),
        "working_time": call.at.duration_us / 1e6,
        **({"error": _tool_error(call)} if call.failure else {}),
        "metadata": {"fumehood": facts, "seat": call.seat},
    }


def _model_event(reply: ModelReply) -> dict[str, Any]:
    reason = _STOP_REASONS.get(str(reply.at.event["finish_reason"]), "unknown")
    message = {"role": "assistant", "content": reply.text, "model": reply.model}
    return {
        "model": reply.model,
        "input": [],
        "tools": [],
        "tool_choice": "auto",
        "config": {},
        "output": {
            "model": reply.model,
            "choices": [{"message": message, "stop_reason": reason}],
            "completion": reply.text,
            "usage": _usage(reply),
        },
        "completed": iso_time(reply.at.wall_ms),
        "working_time": reply.at.duration_us / 1e6,
        "metadata": {"seat": reply.seat, "status": reply.at.event["status"]},
    }
