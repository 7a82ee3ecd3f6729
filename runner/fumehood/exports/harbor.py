"""Results of trials as Harbor writes them: one folder per episode.

Source: ``harbor/models/trial/result.py`` and ``paths.py`` of Harbor 0.25. A trajectory is in ATIF.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from fumehood.core.outcome import Infra, OutOfBudget, outcome_name
from fumehood.exports.atif import trajectory
from fumehood.exports.exported import NO_MODEL, ExportedEpisode, ExportedRun, ModelReply, iso_time
from fumehood.report.safe_text import safe
from fumehood.scorers.verdict import (
    REWARD,
    VERIFIER,
    WORKSPACE,
    Verdict,
    marks_of,
    verdict_from_json,
)
from fumehood.version import __version__


def trials(run: ExportedRun) -> Iterator[tuple[str, bytes]]:
    """Yield the files of each trial: the result, the rewards and the trajectory."""
    for episode in run.episodes():
        folder = str(episode.row.name.identifier).replace("/", "__")
        verdict = verdict_from_json(episode.row.score.metrics.get(VERIFIER))
        yield f"{folder}/result.json", _json(_result(run, episode, folder, verdict))
        if episode.events:
            yield f"{folder}/agent/trajectory.json", _json(trajectory(run, episode))
        if rewards := _rewards(episode, verdict):
            yield f"{folder}/verifier/reward.json", _json(rewards)
        if verdict is not None:
            yield f"{folder}/verifier/test-stdout.txt", _printed(verdict)
            for name, step in verdict.steps:
                place = f"{folder}/steps/{name.replace('/', '__')}/verifier"
                yield f"{place}/reward.json", _json(dict(step.rewards))
                yield f"{place}/test-stdout.txt", _printed(step)


def _result(
    run: ExportedRun, episode: ExportedEpisode, name: str, verdict: Verdict | None
) -> dict[str, Any]:
    row, settings = episode.row, episode.case.gold.criterion(WORKSPACE) if episode.case else None
    path = str((settings or {}).get("folder") or row.name.task)
    digest = (settings or {}).get("digest") or run.facts.get("suite_digest")
    rewards = _rewards(episode, verdict)
    steps = verdict.steps if verdict is not None else ()
    model = episode.model.rpartition("/")
    times = [each.wall_ms for each in episode.events]
    timing = {"started_at": iso_time(times[0]), "finished_at": iso_time(times[-1])} if times else {}
    return {
        "id": str(uuid5(NAMESPACE_URL, f"fumehood:{run.facts.get('run')}/{row.name}")),
        "task_name": row.name.task,
        "trial_name": name,
        "trial_uri": f"fumehood:{run.facts.get('run')}/{row.name}",
        "task_id": {"path": path},
        "source": run.suite,
        "task_checksum": str(digest),
        "config": {
            "task": {"path": path, "source": run.suite},
            "trial_name": name,
            "agent": {
                "name": row.name.agent,
                "model_name": None if episode.model == NO_MODEL else episode.model,
            },
        },
        "agent_info": {
            "name": row.name.agent,
            "version": __version__,
            "model_info": None
            if episode.model == NO_MODEL
            else {"name": model[2], "provider": model[0] or None},
        },
        "agent_result": _usage(run, episode),
        "verifier_result": {"rewards": rewards} if rewards else None,
        # Harbor states no mode for a trial with steps.
        "verifier_environment_mode": _mode(verdict) if settings and not steps else None,
        "step_results": [_step(name, step) for name, step in steps] or None,
        "exception_info": _exception(episode, timing),
        **timing,
        "agent_execution": timing or None,
    }


def _rewards(episode: ExportedEpisode, verdict: Verdict | None) -> dict[str, float]:
    """Return the rewards of the verifier, or 1 and 0 for success and failure."""
    if verdict is not None and verdict.rewards:
        return dict(verdict.rewards)
    success = episode.row.score.success
    return {} if success is None else {REWARD: float(success)}


def _step(name: str, verdict: Verdict) -> dict[str, Any]:
    """Return the result of a step. Without rewards it counts as 0 here and in Harbor, which would
    leave a step without a result out of the mean."""
    return {
        "step_name": name,
        "agent_result": {"metadata": {"problem": verdict.problem}} if verdict.problem else None,
        "verifier_result": {"rewards": dict(verdict.rewards)},
    }


def _mode(verdict: Verdict | None) -> str:
    return "shared" if verdict is not None and verdict.is_shared else "separate"


def _usage(run: ExportedRun, episode: ExportedEpisode) -> dict[str, Any]:
    replies = [step for step in episode.steps() if isinstance(step, ModelReply)]
    marks = marks_of(episode.row.score.metrics)
    facts = {"outcome": outcome_name(episode.row.outcome), **marks, "fumehood": run.facts}
    usage = {
        "n_input_tokens": sum(reply.tokens("input") for reply in replies),
        "n_cache_tokens": sum(reply.tokens("cached") for reply in replies),
        "n_output_tokens": sum(reply.tokens("output") for reply in replies),
        "cost_usd": sum(reply.cost_usd for reply in replies),
    }
    return {**(usage if replies else {}), "metadata": facts}


def _exception(episode: ExportedEpisode, timing: dict[str, str]) -> dict[str, str] | None:
    """Return what ended a trial early; None if the agent ended it."""
    outcome = episode.row.outcome
    if not isinstance(outcome, Infra | OutOfBudget):
        return None
    return {
        "exception_type": outcome_name(outcome),
        "exception_message": str(getattr(outcome, "detail", "")) or outcome_name(outcome),
        "exception_traceback": "",
        "occurred_at": timing.get("finished_at", iso_time(0)),
    }


def _printed(verdict: Verdict) -> bytes:
    """Return the output of the tests, escaped because programs of the agent can write it."""
    return safe(verdict.output).encode("utf-8", "replace")


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()
