"""Evaluates an attempt: by exact observations in a protocol case, from outside in a robustness
case."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from fumehood.agent_check.cases import ProtocolCase
from fumehood.core.episode_spec import ONLY_SEAT
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.outcome import Finished, TimedOut, outcome_name
from fumehood.engines.engine import ExitReason, Limits
from fumehood.orchestrator.episode_runner import Attempt

_SHOWN_CHARS = 500


def evidence_of(attempt: Attempt) -> Evidence:
    """Return the evidence in the trace of an attempt.

    Raises:
        ValueError: the trace is incomplete.
    """
    return read_evidence(json.loads(record.event_json) for record in attempt.records)


def problems(attempt: Attempt, evidence: Evidence) -> Iterator[str]:
    """Yield behaviour that no agent should show in any case."""
    end = evidence.ends.get(ONLY_SEAT)
    error_line = _error_line(
        attempt.output.stderr.decode(errors="replace") if attempt.output else ""
    )
    if attempt.exit is None or isinstance(end, TimedOut):
        yield "it was still running when its time was over"
    elif attempt.exit.reason is ExitReason.OUT_OF_MEMORY:
        yield "it ran out of memory"
    elif attempt.exit.code != 0 and not lingered(attempt):
        yield f"it ended with exit status {attempt.exit.code}{error_line}"
    elif end is None:
        yield f"it ended without submitting or giving up{error_line}"
    yield from _excess_output(attempt)
    if evidence.refusals:
        kinds = ", ".join(sorted(set(evidence.refusals)))
        yield f"{len(evidence.refusals)} of its messages were refused ({kinds})"


def lingered(attempt: Attempt) -> bool:
    """Return whether the agent had to be stopped after the end of its episode, which only costs
    time."""
    return attempt.exit is not None and attempt.exit.reason is ExitReason.KILLED


def _error_line(stderr: str) -> str:
    """Return the line that most likely gives the reason of an exit, after a colon."""
    lines = stderr.strip().splitlines()
    # Such as "KeyError: 'a'" or "sh: 1: jq: not found"; some programs print more lines after it.
    errors = [line for line in lines if re.match(r"[A-Za-z][\w.]*: ", line)]
    return f": {[*lines[-1:], *errors[-1:]][-1][:_SHOWN_CHARS]}" if lines else ""


def _excess_output(attempt: Attempt) -> Iterator[str]:
    if attempt.output is not None:
        printed = {"output": attempt.output.stdout_bytes, "error": attempt.output.stderr_bytes}
        kept = Limits().output_bytes
        yield from (
            f"it printed {count} bytes on standard {name}, of which {kept} are kept"
            for name, count in printed.items()
            if count > kept
        )


def differences(case: ProtocolCase, attempt: Attempt) -> Iterator[str]:
    """Yield the differences between an attempt and the expectations of a protocol case."""
    assert attempt.output is not None
    evidence = evidence_of(attempt)
    if attempt.exit is None or attempt.exit.code != 0:
        stderr = attempt.output.stderr.decode(errors="replace")
        yield f"it ended with {attempt.exit}: {stderr[-_SHOWN_CHARS:]}"
    yield from _in_observations(case, attempt.output.stdout.decode(errors="replace"))
    yield from _in_trace(case, evidence)


def _in_observations(case: ProtocolCase, stdout: str) -> Iterator[str]:
    observed = _list(stdout)
    if observed is None or stdout.count("\n") != 1:
        yield f"it did not print one line with a JSON list: {stdout[:_SHOWN_CHARS]!r}"
        return
    if len(observed) != len(case.observations):
        yield f"it made {len(observed)} observations of {len(case.observations)}"
    for number, (seen, expected) in enumerate(zip(observed, case.observations, strict=False), 1):
        if _canonical(seen) != _canonical(expected):
            shown = _canonical(seen)[:_SHOWN_CHARS]
            yield f"observation {number} is {shown}, not {_canonical(expected)[:_SHOWN_CHARS]}"


def _in_trace(case: ProtocolCase, evidence: Evidence) -> Iterator[str]:
    if len(evidence.calls) != case.calls:
        yield f"{len(evidence.calls)} calls were executed, not {case.calls}"
    refused = [
        seen["refusal"] for seen in case.observations if seen.get("refusal") not in (None, "ended")
    ]
    if list(evidence.refusals) != refused:
        yield f"the refusals were {evidence.refusals}, not {refused}"
    end = evidence.ends.get(ONLY_SEAT)
    outcome = outcome_name(end).partition("(")[0] if end else "nothing"
    if outcome != case.outcome:
        yield f"the episode ended as {outcome}, not {case.outcome}"
    if isinstance(end, Finished) and not case.ends_itself:
        answers = evidence.submitted_texts(ONLY_SEAT)
        if [seen for answer in answers for seen in _list(answer) or ()] != list(case.observations):
            yield f"it did not submit its observations: {answers!r:.{_SHOWN_CHARS}}"


def _list(text: str) -> list[Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, list) else None


def _canonical(value: Any) -> str:
    """Return canonical JSON for the comparison of values."""
    return json.dumps(value, sort_keys=True)
