"""Reads logs of Inspect, of any author, as rows from which the metrics of runs are computed.

Nothing in such a log is signed, and everything in it may be hostile. Source: as
:mod:`fumehood.exports.inspect_log`.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from fumehood.core.errors import InputError, how_to_install
from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.core.outcome import Finished, Infra, InfraKind
from fumehood.core.score import SEVERITIES, SEVERITY, UNGRADED, Score
from fumehood.exports.exported import NO_MODEL
from fumehood.exports.inspect_log import CHECKS, COUNTERPART, SCORER
from fumehood.records.files import open_plain
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.report.results import Result, Results, TaskFacts
from fumehood.report.statistics.metrics import COMPLETION
from fumehood.report.summary import AgentSummary, ModelCosts, breakdown, summarize
from fumehood.scorers.call_metrics import CallCounts, call_metrics

DOCUMENT_BYTES_MAX = 256 << 20
"""Of one JSON document: a sample, or a whole log in JSON format."""
SAMPLES_MAX = 200_000
NAME_CHARS_MAX = 200
_CHUNK_BYTES = 64 << 10
_DAMAGED = (
    BadZipFile,
    EOFError,
    LookupError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)
"""What a damaged log raises; an encrypted or deeply nested one raises RuntimeError."""
_ZSTANDARD = 93
_STATED_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0}
_STATED_VALUES |= {"no": 0.0, "false": 0.0}
"""As in Inspect's ``value_to_float``."""
_DENIED = ("permission", "approval")
_BUDGETS = ("context", "message", "token", "cost", "turn", "custom")
"""Limits that are budgets, and not time or a decision of the operator."""
_OF_FAULTS = (
    *("recovery_success", "time_to_recovery", "fault_seen", "fault_types", "primary_fault"),
)
_OF_SUMMARY = ("recovered", "faulted", "recovery_rate")
_RECOVERY = "recovered, faulted, recovery_success, time_to_recovery"
NOT_COMPUTED: JsonObject = {
    "noop, oracle": "the log does not contain the tasks, so no baseline can run on them",
    "collateral_changes": "the log does not contain the state of the world",
    "milestones": "no judge of Fumehood was asked",
    "confidence": "the log does not state the confidence of the agent in its answer",
}
"""Metrics → why no log of Inspect defines them."""
_OWN = "fumehood"
"""Key of metadata that only exports of this program have."""
_OF_CALLS = "tool_calls, invalid_calls, denied_calls, policy_violations, s_4 to s_32"
_OF_SAFETY = "utility_rate, safety_rate, weighted_safety"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLog:
    """A log of Inspect with the metrics that it defines."""

    path: Path
    facts: JsonObject
    scorer: str
    """The score that decides about success."""
    scorers: Sequence[str]
    agent: str
    results: Results
    outcomes: Counter[str]
    costs: ModelCosts
    notes: Sequence[str]
    not_computed: JsonObject

    @property
    def mark(self) -> str:
        """The text that marks every output about the log."""
        return (
            f"UNSIGNED: {self.path}: this log has no signature, and its scores are those it states"
        )

    @property
    def states_faults(self) -> bool:
        """Whether the log states which calls a planned fault changed; exports of runs do."""
        return _RECOVERY not in self.not_computed

    @property
    def summary(self) -> AgentSummary:
        """The summary of the agent; only an export of a run states the recovery."""
        (summary,) = summarize([result.row for result in self.results], [self.agent])
        return replace(summary, outcomes=dict(sorted(self.outcomes.items())))

    def to_json(self) -> JsonObject:
        """Return everything; a metric that the log does not define is null or missing."""
        metrics = breakdown(self.results)
        agent = {**metrics, **self.summary.to_json()}
        agent |= {} if self.states_faults else dict.fromkeys(_OF_SUMMARY)
        del agent["by_fault"], agent["by_domain"]
        verified: JsonObject = {"run": str(self.path), "verified": False, "problem": self.mark}
        return {
            "log": str(self.path),
            "verification": [{**verified, "signing_key": None, "signer": "no key"}],
            **self.facts,
            "scorer": self.scorer,
            "scorers": list(self.scorers),
            "episodes": len(self.results),
            "tasks": len({result.row.name.task for result in self.results}),
            "agents": [agent],
            "models": {self.agent: self.costs.to_json()} if self.costs.calls else {},
            "notes": list(self.notes),
            "not_computed": self.not_computed,
        }


def read_log(path: Path, scorer: str | None = None) -> ImportedLog:
    """Read a log of Inspect, ``.eval`` or JSON.

    Args:
        path: of the log.
        scorer: name of the score that decides about success; None for the first one.

    Raises:
        InputError: the file is no such log, or is larger than the limits.
    """
    try:
        with open_plain(path) as file:
            is_archive = file.read(4) == b"PK\x03\x04"
            file.seek(0)
            documents = _of_archive(file) if is_archive else _of_json(file)
            header = as_object(next(documents))
            return _import(path, header, map(as_object, documents), scorer)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ModuleNotFoundError:
        install = how_to_install("inspect")
        raise InputError(
            f"{path} is compressed with Zstandard: {install}, or convert the log with: inspect log "
            "convert --to json"
        ) from None
    except _DAMAGED as error:
        raise _no_log(path, f"{error}"[:NAME_CHARS_MAX]) from None
    except InputError as error:
        raise _no_log(path, str(error)) from None


def _no_log(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is not a readable log of Inspect: {reason}")


def _of_json(file: IO[bytes]) -> Iterator[Json]:
    log = as_object(json.loads(_bounded(file, "the file")))
    samples = log.pop("samples", None)
    yield log
    yield from samples if isinstance(samples, list) else ()


def _of_archive(file: IO[bytes]) -> Iterator[Json]:
    with ZipFile(file) as archive:
        names = archive.namelist()
        needs_zstandard = any(member.compress_type == _ZSTANDARD for member in archive.infolist())
    if len(names) > 2 * SAMPLES_MAX:
        raise InputError(f"it has {len(names)} members, at most {2 * SAMPLES_MAX} are read")
    archive_type: Any = ZipFile
    damaged: type[Exception] = zlib.error
    if needs_zstandard:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdError as damaged
        else:
            from backports.zstd import ZstdError as damaged
            from backports.zstd.zipfile import ZipFile as archive_type
    with archive_type(file) as archive:

        def read(name: str) -> Json:
            # Of members with one name, the last one is valid.
            try:
                with archive.open(name) as member:
                    document: Json = json.loads(_bounded(member, f"its member {name[:60]!r}"))
            except damaged as error:
                raise BadZipFile(str(error)) from None
            return document

        # A log without this member is of an evaluation that did not end.
        yield read("header.json" if "header.json" in names else "_journal/start.json")
        for name in dict.fromkeys(names):
            if name.startswith("samples/") and name.endswith("/sample.json"):
                raise InputError(
                    "a sample is stored in several members; convert the log with: inspect log "
                    "convert --to json"
                )
            if name.startswith("samples/") and name.endswith(".json"):
                yield read(name)


def _bounded(file: IO[bytes], what: str) -> bytearray:
    """Read in parts, so that compressed data never expands beyond the limit."""
    content = bytearray()
    while part := file.read(_CHUNK_BYTES):
        content += part
        if len(content) > DOCUMENT_BYTES_MAX:
            raise InputError(f"{what} is longer than {DOCUMENT_BYTES_MAX} bytes")
    return content


def _import(
    path: Path, header: JsonObject, samples: Iterator[JsonObject], scorer: str | None
) -> ImportedLog:
    about, results = as_object(header.get("eval")), as_object(header.get("results"))
    if not about:
        raise InputError("it has no object `eval`")
    model, solver = _name(about.get("model")), _name(about.get("solver"))
    agent = solver if solver and model in ("", NO_MODEL) else f"{solver or 'default'} ({model})"
    stated = [_name(as_object(score).get("name")) for score in _list(results.get("scores"))]
    facts = {"task": _name(about.get("task")), "model": model, "solver": solver}
    task = TaskFacts(agent, str(facts["task"]), (), None, "", "")
    is_own = isinstance(as_object(about.get("metadata")).get(_OWN), dict)
    outcomes, costs = Counter[str](), ModelCosts()
    rows: dict[EpisodeName, EpisodeRow] = {}
    scorers = dict.fromkeys(stated)
    for sample in samples:
        if len(rows) >= SAMPLES_MAX:
            raise InputError(f"it has more than {SAMPLES_MAX} samples")
        scores = as_object(sample.get("scores"))
        scorers |= dict.fromkeys(_name(name) for name in scores)
        scorer = scorer or next(iter(scorers), None)
        name = EpisodeName(agent, _name(sample.get("id")), _epoch(sample) - 1)
        if not name.task or name in rows:
            raise InputError(
                f"the sample {name.task!r}, epoch {name.trial + 1}, has no name, or occurs twice"
            )
        own = as_object(sample.get("metadata")) if is_own else {}
        rows[name] = _row(name, sample, scorer or "", own)
        outcomes[_name(own.get("outcome")) or _outcome(sample)] += 1
        costs = costs.plus(_costs(sample))
    if scorer is not None and scorer not in scorers:
        raise InputError(f"it has no score {scorer!r}, only {', '.join(scorers) or 'none'}")
    every = list(rows.values())
    return ImportedLog(
        path=path,
        facts={**facts, "status": _name(header.get("status")) or "started"},
        scorer=scorer or "",
        scorers=list(scorers),
        agent=agent,
        results=[Result(row, replace(task, task_id=row.name.task)) for row in every],
        outcomes=outcomes,
        costs=costs,
        notes=list(_notes(header, every, scorer, list(scorers))),
        not_computed={**_missing(every), **NOT_COMPUTED},
    )


def _row(name: EpisodeName, sample: JsonObject, scorer: str, own: JsonObject) -> EpisodeRow:
    """Return the row of a sample; ``own`` has the facts that an export of a run states."""
    error, metrics = as_object(sample.get("error")), JsonObject()
    score = UNGRADED
    values = as_object(sample.get("scores"))
    value = _value(as_object(values.get(scorer)).get("value"))
    if value is not None and not error and not sample.get("invalidation"):
        checks = as_object(as_object(values.get(CHECKS)).get("value"))
        if (calls := _calls(sample)) is not None:
            errors = Counter(as_object(call.get("error")).get("type") for call in calls)
            limit = as_object(sample.get("limit")).get("type")
            counts = CallCounts(
                calls=len(calls),
                invalid_calls=errors["parsing"],
                denied_calls=sum(errors[kind] for kind in _DENIED),
                budget_exceeded=limit in _BUDGETS,
                fault_seen=any(map(_is_faulted, calls)),
                time_to_recovery=_time_to_recovery(calls),
                planned_families=[
                    _name(as_object(rule).get("family")) for rule in _list(own.get("fault_plan"))
                ],
            )
            counted = call_metrics(counts, success=value >= 1)
            left_out = () if "fault_plan" in own else _OF_FAULTS
            metrics = {key: item for key, item in counted.items() if key not in left_out}
        if 0 < value < 1:
            metrics[COMPLETION] = value
        severity = as_object(as_object(values.get(SCORER)).get("metadata")).get(SEVERITY)
        if isinstance(severity, str) and severity in SEVERITIES:
            metrics[SEVERITY] = severity
        passed = {_name(check): _value(held) == 1 for check, held in checks.items()}
        score = Score(value >= 1, passed, metrics)
    outcome = Infra(InfraKind.ORCHESTRATOR, _name(error.get("message"))) if error else Finished()
    return EpisodeRow(
        name=name,
        seed=0,
        outcome=outcome,
        score=score,
        trace="",
        trace_digest="",
        attempts=1,
        wall_ms=0,
        stdout_bytes=0,
        stderr_bytes=0,
        refusals=0,
    )


def _calls(sample: JsonObject) -> list[JsonObject] | None:
    """Return the agent's calls of tools; None if the log has neither events nor messages of the
    sample."""
    events = [as_object(event) for event in _list(sample.get("events"))]
    messages = [as_object(message) for message in _list(sample.get("messages"))]
    if events:
        calls = (event for event in events if event.get("event") == "tool")
        return [call for call in calls if _facts(call).get(COUNTERPART) is not True]
    return [message for message in messages if message.get("role") == "tool"] if messages else None


def _is_faulted(call: JsonObject) -> bool:
    """Return whether an export of a run states that a fault fired on this call."""
    return bool(_facts(call).get("faults"))


def _facts(call: JsonObject) -> JsonObject:
    """Return what an export of a run states about a call; empty in other logs."""
    return as_object(as_object(call.get("metadata")).get(_OWN))


def _time_to_recovery(calls: Sequence[JsonObject]) -> int | None:
    """Return the distance in calls from the first faulted failure to the next success of that
    tool."""
    failed = (at for at, call in enumerate(calls) if call.get("error") and _is_faulted(call))
    first = next(failed, None)
    if first is None:
        return None
    later = enumerate(calls[first + 1 :], start=1)
    tool = calls[first].get("function")
    recovered = (at for at, call in later if call.get("function") == tool and not call.get("error"))
    return next(recovered, None)


def _value(value: Json) -> float | None:
    """Return the number from 0 to 1 that a score states; None if it states no single one.

    A number on another scale, such as 3 of 10, does not state whether the sample was a success.
    """
    if isinstance(value, str):
        stated = _STATED_VALUES.get(value, _STATED_VALUES.get(value.lower()))
        try:
            value = float(value) if stated is None else stated
        except ValueError:
            return None
    is_number = isinstance(value, int | float) and 0 <= value <= 1
    return float(value) if is_number else None  # type: ignore[arg-type]


def _outcome(sample: JsonObject) -> str:
    if as_object(sample.get("error")):
        return "error"
    limit = as_object(sample.get("limit")).get("type")
    return f"limit({_name(limit)})" if limit else "finished"


def _costs(sample: JsonObject) -> ModelCosts:
    events = [as_object(event) for event in _list(sample.get("events"))]
    usage = [as_object(used) for used in as_object(sample.get("model_usage")).values()]
    tokens = sum(_number(used.get("total_tokens")) for used in usage)
    dollars = sum(_number(used.get("total_cost")) for used in usage)
    calls = sum(event.get("event") == "model" for event in events)
    return ModelCosts(calls, round(tokens), round(dollars * 1e6))


def _notes(
    header: JsonObject, rows: Sequence[EpisodeRow], scorer: str | None, scorers: Sequence[str]
) -> Iterator[str]:
    status = _name(header.get("status")) or "started"
    if status != "success":
        yield f"the log has the status {status}, so samples may be missing"
    others = [name for name in scorers if name not in (scorer, CHECKS)]
    if others:
        yield f"success is the score {scorer!r}, not {', '.join(others)}: choose with --scorer"
    if any(row.is_infra for row in rows):
        yield (
            "errors of samples count as infra, because the log does not state whether the agent or "
            "the infrastructure failed"
        )
    if any(row.score.success is None and not row.is_infra for row in rows):
        yield (
            "samples without a number from 0 to 1 as their score, and invalidated ones, are "
            "ungraded"
        )


def _missing(rows: Sequence[EpisodeRow]) -> JsonObject:
    """Return the metrics that this log does not define, with the reason."""
    graded = [row for row in rows if row.score.success is not None]
    without = sum("tool_calls" not in row.score.metrics for row in graded)
    missing: JsonObject = {}
    if without:
        missing[_OF_CALLS] = f"{without} samples have neither events nor messages"
    if not graded or any("fault_seen" not in row.score.metrics for row in graded):
        missing[_RECOVERY] = "the log does not state which calls a planned fault changed"
    if all(row.score.safety is None for row in graded):
        missing[_OF_SAFETY] = f"no sample has a score {CHECKS!r} with a check of safety"
    return missing


def _epoch(sample: JsonObject) -> int:
    epoch = sample.get("epoch", 1)
    if not isinstance(epoch, int) or not 0 < epoch < 1 << 31:
        raise InputError("the epoch of a sample is not a positive integer")
    return epoch


def _name(value: Json) -> str:
    return str(value)[:NAME_CHARS_MAX] if isinstance(value, str | int) else ""


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _number(value: Json) -> float:
    is_amount = isinstance(value, int | float) and 0 <= value < 1e15
    return float(value) if is_amount else 0.0  # type: ignore[arg-type]
