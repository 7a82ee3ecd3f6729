"""What an attempt shows of an agent: against a vector, word for word; under a condition, from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from fumehood.agent_check.protocol_case import Vector
from fumehood.core.episode_spec import ONLY_SEAT
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.outcome import Finished, TimedOut, outcome_name
from fumehood.engines.engine import ExitReason, Limits
from fumehood.orchestrator.episode_runner import Attempt

_SHOWN_CHARS = 500


def evidence_of(attempt: Attempt) -> Evidence:
    """Return what the trace of an attempt proves.

    Raises:
        ValueError: it is not whole.
    """
    return read_evidence(json.loads(record.event_json) for record in attempt.records)


def misconduct(attempt: Attempt, evidence: Evidence) -> Iterator[str]:
    """Yield what no agent should do, whatever it meets."""
    end = evidence.ends.get(ONLY_SEAT)
    last_words = _last_words(
        attempt.output.stderr.decode(errors="replace") if attempt.output else ""
    )
    if attempt.exit is None or isinstance(end, TimedOut):
        yield "it was still at work when its time was over"
    elif attempt.exit.reason is ExitReason.OUT_OF_MEMORY:
        yield "it ran out of memory"
    elif attempt.exit.code != 0 and not lingered(attempt):
        yield f"it ended with exit status {attempt.exit.code}{last_words}"
    elif end is None:
        yield f"it ended without submitting or giving up{last_words}"
    yield from _too_much_printed(attempt)
    if evidence.refusals:
        kinds = ", ".join(sorted(set(evidence.refusals)))
        yield f"{len(evidence.refusals)} of its messages were refused ({kinds})"


def lingered(attempt: Attempt) -> bool:
    """Tell whether the agent had to be stopped after its work had ended, which only takes time."""
    return attempt.exit is not None and attempt.exit.reason is ExitReason.KILLED


def _last_words(said: str) -> str:
    """Return the line that most likely says why a program ended, after a colon."""
    lines = said.strip().splitlines()
    # Such as "KeyError: 'a'" or "sh: 1: jq: not found"; other programs say more after it.
    named = [line for line in lines if re.match(r"[A-Za-z][\w.]*: ", line)]
    return f": {[*lines[-1:], *named[-1:]][-1][:_SHOWN_CHARS]}" if lines else ""


def _too_much_printed(attempt: Attempt) -> Iterator[str]:
    if attempt.output is not None:
        printed = {"output": attempt.output.stdout_bytes, "error": attempt.output.stderr_bytes}
        kept = Limits().output_bytes
        yield from (
            f"it printed {count} bytes on standard {name}, of which {kept} are kept"
            for name, count in printed.items()
            if count > kept
        )


def differences(vector: Vector, attempt: Attempt) -> Iterator[str]:
    """Yield what an attempt at a vector shows that it must not, or does not show that it must."""
    assert attempt.output is not None
    evidence = evidence_of(attempt)
    if attempt.exit is None or attempt.exit.code != 0:
        said = attempt.output.stderr.decode(errors="replace")
        yield f"it ended with {attempt.exit}: {said[-_SHOWN_CHARS:]}"
    yield from _of_observations(vector, attempt.output.stdout.decode(errors="replace"))
    yield from _of_the_trace(vector, evidence)


def _of_observations(vector: Vector, said: str) -> Iterator[str]:
    observed = _list(said)
    if observed is None or said.count("\n") != 1:
        yield f"it did not print one line with a JSON list: {said[:_SHOWN_CHARS]!r}"
        return
    if len(observed) != len(vector.observations):
        yield f"it made {len(observed)} observations of {len(vector.observations)}"
    for number, (seen, expected) in enumerate(zip(observed, vector.observations, strict=False), 1):
        if _written(seen) != _written(expected):
            shown = _written(seen)[:_SHOWN_CHARS]
            yield f"observation {number} is {shown}, not {_written(expected)[:_SHOWN_CHARS]}"


def _of_the_trace(vector: Vector, evidence: Evidence) -> Iterator[str]:
    if len(evidence.exchanges) != vector.calls:
        yield f"{len(evidence.exchanges)} calls were carried out, not {vector.calls}"
    refused = [
        seen["refusal"]
        for seen in vector.observations
        if seen.get("refusal") not in (None, "ended")
    ]
    if list(evidence.refusals) != refused:
        yield f"refused were {evidence.refusals}, not {refused}"
    end = evidence.ends.get(ONLY_SEAT)
    outcome = outcome_name(end).partition("(")[0] if end else "nothing"
    if outcome != vector.outcome:
        yield f"the work ended as {outcome}, not {vector.outcome}"
    if isinstance(end, Finished) and not vector.ends_itself:
        answers = (*evidence.turn_answers.get(ONLY_SEAT, ()), end.answer)
        if [seen for answer in answers for seen in _list(answer) or ()] != list(
            vector.observations
        ):
            yield f"it did not submit what it observed: {answers!r:.{_SHOWN_CHARS}}"


def _list(text: str) -> list[Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, list) else None


def _written(value: Any) -> str:
    """Return JSON in which equal values, and no others, are equal texts."""
    return json.dumps(value, sort_keys=True)
