"""OpenTelemetry: spans and evaluation results of the GenAI semantic conventions, as OTLP/JSON.

Source: ``model/gen-ai`` of open-telemetry/semantic-conventions-genai (status: development), and the
JSON mapping of OTLP 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from fumehood.core.outcome import Infra, outcome_name
from fumehood.exports.exported import (
    NO_MODEL,
    Call,
    ExportedEpisode,
    ExportedRun,
    ModelReply,
    TimedEvent,
)
from fumehood.scorers.verdict import marks_of
from fumehood.version import __version__

SPANS, EVALUATIONS = "traces.jsonl", "logs.jsonl"
_INTERNAL, _CLIENT = 1, 3
"""Kinds of a span."""
_ERROR = {"status": {"code": 2}}
_SCOPE = {"name": "fumehood", "version": __version__}


def telemetry(run: ExportedRun) -> Iterator[tuple[str, bytes]]:
    """Yield a file with the spans and one with the evaluation results, one request per line."""
    yield SPANS, b"".join(map(_line, span_requests(run)))
    yield EVALUATIONS, b"".join(map(_line, evaluation_requests(run)))


def span_requests(run: ExportedRun) -> Iterator[dict[str, Any]]:
    """Yield one ``ExportTraceServiceRequest`` per episode with a trace."""
    for episode in run.episodes():
        if episode.events:
            scope = {"scope": _SCOPE, "spans": list(_spans(episode))}
            yield {"resourceSpans": [{"resource": _resource(run), "scopeSpans": [scope]}]}


def evaluation_requests(run: ExportedRun) -> Iterator[dict[str, Any]]:
    """Yield one ``ExportLogsServiceRequest`` per graded episode, with one record per check."""
    for episode in run.episodes():
        if episode.row.score.success is not None:
            scope = {"scope": _SCOPE, "logRecords": list(_evaluations(episode))}
            yield {"resourceLogs": [{"resource": _resource(run), "scopeLogs": [scope]}]}


def _line(request: dict[str, Any]) -> bytes:
    return json.dumps(request, separators=(",", ":")).encode() + b"\n"


def _resource(run: ExportedRun) -> dict[str, Any]:
    named = {f"fumehood.{name}": str(run.manifest.get(name)) for name in ("run", "suite", "engine")}
    facts = {"service.name": "fumehood", "service.version": __version__, **named}
    verified = not run.run.provenance.problem
    return {"attributes": _attributes({**facts, "fumehood.verified": verified})}


def _spans(episode: ExportedEpisode) -> Iterator[dict[str, Any]]:
    first, last = episode.events[0], episode.events[-1]
    row = episode.row
    failed = {"error.type": row.outcome.kind.value} if isinstance(row.outcome, Infra) else {}
    yield {
        **_ids(episode, 0),
        "name": f"invoke_agent {row.name.agent}",
        "kind": _INTERNAL,
        "startTimeUnixNano": str(first.wall_ms * 1_000_000),
        "endTimeUnixNano": str(max(last.wall_ms, first.wall_ms) * 1_000_000),
        "attributes": _attributes(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": row.name.agent,
                "gen_ai.conversation.id": str(row.name),
                **({} if episode.model == NO_MODEL else {"gen_ai.request.model": episode.model}),
                "fumehood.task": row.name.task,
                "fumehood.trial": row.name.trial,
                "fumehood.outcome": outcome_name(row.outcome),
                "fumehood.trace_digest": row.trace_digest,
                **{f"fumehood.{name}": own for name, own in marks_of(row.score.metrics).items()},
                **failed,
            }
        ),
        **(_ERROR if failed else {}),
    }
    for step in episode.steps():
        match step:
            case Call():
                yield _tool_span(episode, step)
            case ModelReply():
                yield _model_span(episode, step)


def _tool_span(episode: ExportedEpisode, call: Call) -> dict[str, Any]:
    event = call.event
    failed = {"error.type": call.failure["code"]} if call.failure else {}
    return {
        **_child(episode, call.at),
        "name": f"execute_tool {event['tool']}",
        "kind": _INTERNAL,
        "attributes": _attributes(
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": event["tool"],
                "gen_ai.tool.call.id": call.identifier,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.arguments": json.dumps(event["arguments"]),
                "gen_ai.tool.call.result": call.result_text,
                "fumehood.seat": call.seat,
                "fumehood.faults": [fault["family"] for fault in event["faults"]],
                **failed,
            }
        ),
        **(_ERROR if failed else {}),
    }


def _model_span(episode: ExportedEpisode, reply: ModelReply) -> dict[str, Any]:
    event = reply.at.event
    failed = {} if event["status"] < 400 else {"error.type": str(event["status"])}
    return {
        **_child(episode, reply.at),
        "name": f"chat {reply.model}",
        "kind": _CLIENT,
        "attributes": _attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": reply.model,
                "gen_ai.response.finish_reasons": [event["finish_reason"] or "unknown"],
                "gen_ai.usage.input_tokens": reply.tokens("input"),
                "gen_ai.usage.output_tokens": reply.tokens("output"),
                "gen_ai.usage.cache_read.input_tokens": reply.tokens("cached"),
                "fumehood.seat": reply.seat,
                **failed,
            }
        ),
        **(_ERROR if failed else {}),
    }


def _evaluations(episode: ExportedEpisode) -> Iterator[dict[str, Any]]:
    success = episode.row.score.success
    results = {"success": bool(success), **episode.row.score.checks}
    identifiers = _ids(episode, 0)
    for name, holds in results.items():
        yield {
            # 0 is an unknown time in OTLP.
            "timeUnixNano": str(episode.events[-1].wall_ms * 1_000_000) if episode.events else "0",
            "eventName": "gen_ai.evaluation.result",
            "traceId": identifiers["traceId"],
            "spanId": identifiers["spanId"],
            "attributes": _attributes(
                {
                    "gen_ai.evaluation.name": name,
                    "gen_ai.evaluation.score.value": float(holds),
                    "gen_ai.evaluation.score.label": "pass" if holds else "fail",
                }
            ),
        }


def _child(episode: ExportedEpisode, at: TimedEvent) -> dict[str, Any]:
    end_ns = at.wall_ms * 1_000_000
    return {
        **_ids(episode, at.position),
        "parentSpanId": _ids(episode, 0)["spanId"],
        "startTimeUnixNano": str(end_ns - at.duration_us * 1000),
        "endTimeUnixNano": str(end_ns),
    }


def _ids(episode: ExportedEpisode, position: int) -> dict[str, str]:
    """Return identifiers that are the same in every export of the episode."""
    row = episode.row
    digest = sha256(f"{row.name.identifier}/{row.trace_digest}".encode()).hexdigest()
    span = sha256(f"{digest}/{position}".encode()).hexdigest()[:16]
    return {"traceId": digest[:32], "spanId": span}


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _any_value(value)} for name, value in values.items()]


def _any_value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            # The JSON mapping of Protocol Buffers writes 64-bit integers as strings.
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    return {"stringValue": str(value)}
