"""An attempt that cannot be scored within the limits fails with the reason, and scoring goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from fumehood.core.clock import StoppedClock
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import canonical_json
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import AgentCrashed, Finished, Infra, InfraKind
from fumehood.core.task import Case
from fumehood.core.trace import Chain, Record
from fumehood.engines.engine import Exit, ExitReason
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.orchestrator.bounded_scoring import ScoringProcesses, ToScore
from fumehood.orchestrator.scoring import LARGE_TRACE, PlayedAttempt, score_attempt
from fumehood.orchestrator.seat_exit import SeatExit
from fumehood.records.trace_lines import record_line
from fumehood.scorers.judges.question import Opinion, Question, no_judge
from fumehood.supervised.limits import Limits
from tests.parts.specs import episode_spec
from tests.parts.tasks import crud_task

SCORER = '''
import os
from fumehood.core.errors import SpecError
from fumehood.core.outcome import Finished
from fumehood.core.score import Score


class Fragile:
    """Does what the answer states, as if the answer exploited a bug."""

    def score(self, task, gold, evidence):
        end = evidence.ends["agent"]
        harm = end.answer if isinstance(end, Finished) else ""
        if harm == "spin":
            while True:
                pass
        if harm == "hoard":
            bytearray(1 << 31)
        if harm == "crash":
            os.abort()
        if harm == "recurse":
            return self.score(task, gold, evidence)
        if harm == "raise" or gold.criteria:
            raise OverflowError("int too large to convert to float")
        if harm == "invalid":
            raise SpecError("criteria[0]", "cannot be evaluated")
        if harm == "forget":
            task.initial_state.clear()
        if harm == "unwritable":
            return Score(True, {}, {"number": 10**5000})
        return Score(bool(task.initial_state), {"fine": True}, {"process": os.getpid()})
'''
LEFT = Exit(0, ExitReason.EXITED)
GOLD = Gold("fragile", ())


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScoringProcesses]:
    """Processes with small limits, in which a package with a fragile scorer is installed."""
    folder = tmp_path_factory.mktemp("installed")
    # The process may have another user.
    for place in (folder, folder.parent):
        place.chmod(0o755)
    (folder / "fragile.py").write_text(SCORER, encoding="utf-8")
    about = folder / "fragile-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[fumehood.scorers]\nfragile = fragile:Fragile\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        limited = ScoringProcesses(1.0, Limits(memory_bytes=1 << 30, cpu_s=3600))
        limited.score(PlayedAttempt(Case(crud_task(), GOLD), sealed("fine"), LEFT))
        yield limited
    limited.close()


def sealed(answer: str | None) -> list[Record]:
    recorder = MemoryRecorder()
    episode = HARNESS_MODES.load("native")().open_episode(episode_spec(), recorder, StoppedClock())
    if answer is not None:
        episode.seats[0].finish(Finished(answer))
    episode.close()
    chain = Chain()
    texts = [canonical_json(event.to_json()) for event in recorder.events]
    records = [Record(text, chain.link(text), 0, 0) for text in texts]
    seal = chain.end_record()
    return [*records, Record(seal, chain.link(seal), 0, 0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("spin", "cpu_time"),
        ("hoard", "memory"),
        ("crash", "error"),
        ("recurse", "error"),
        ("raise", "error"),
        ("invalid", "error"),
        ("unwritable", "error"),
    ],
)
def test_an_answer_that_cannot_be_scored_fails_with_the_reason_and_the_next_one_is_scored(
    answer: str, why: str, processes: ScoringProcesses
) -> None:
    case, records = Case(crud_task(), GOLD), sealed(answer)
    scored = processes.score(PlayedAttempt(case, records, LEFT))
    assert scored.outcome == Finished(answer)
    assert scored.score.success is False
    assert scored.score.checks == {"scorable": False}
    assert (scored.score.metrics["not_scored"], scored.score.metrics["tool_calls"]) == (why, 0)
    assert scored.trace_digest == records[-1].hash
    assert processes.score(PlayedAttempt(case, sealed("fine"), LEFT)).score.success is True


@pytest.mark.slow
def test_a_trace_that_alone_exceeds_the_memory_of_scoring_is_not_read_outside_of_it() -> None:
    nested = '{"":' * 50 + "{}" + "}" * 50
    values = ",".join([nested] * 22_000)
    opened, ended, closed, _ = (record.event_json for record in sealed("fine"))
    closed = closed.replace('"final_state":{', f'"final_state":{{"":[{values}],')
    chain = Chain()
    records = [Record(text, chain.link(text), 0, 0) for text in (opened, ended, closed)]
    records.append(Record(chain.end_record(), chain.link(chain.end_record()), 0, 0))
    small = ScoringProcesses(60.0, Limits(memory_bytes=160 << 20, cpu_s=3600))
    case = Case(crud_task(), Gold("native", ()))
    scored = small.score(PlayedAttempt(case, records, LEFT))
    small.close()
    assert scored.outcome == AgentCrashed(LARGE_TRACE)
    assert (scored.score.success, scored.score.metrics["not_scored"]) == (False, "memory")
    assert scored.trace_digest == records[-1].hash


def test_a_task_that_cannot_be_scored_at_all_is_not_a_failure_of_the_agent(
    processes: ScoringProcesses,
) -> None:
    case = Case(crud_task(), replace(GOLD, criteria=({"op": "x"},)))
    scored = processes.score(PlayedAttempt(case, sealed("fine"), LEFT))
    assert scored.score.success is None
    assert "an episode without calls cannot be scored either" in str(scored.score.metrics)


def test_one_process_scores_many_attempts(processes: ScoringProcesses) -> None:
    case = Case(crud_task(), GOLD)
    scores = [processes.score(PlayedAttempt(case, sealed("fine"), LEFT)).score for _ in range(5)]
    assert len({score.metrics["process"] for score in scores}) == 1


NATIVE: Sequence[Gold] = (
    Gold("native", ({"op": "exists", "path": "accounts.ax1"},), True),
    Gold("native", ({"op": "judged", "name": "kind", "asks": "Is it kind?"},), True),
    Gold("toolmisuse", ({"op": "equals", "path": 1},)),
    Gold("cited_answer", ({"op": "answer_mentions", "values": ["done"]},)),
)


@pytest.mark.parametrize("gold", NATIVE)
@pytest.mark.parametrize("answer", ["done", "é\ud800\n[a]"])
def test_the_result_is_that_of_scoring_in_this_process(
    gold: Gold, answer: str, processes: ScoringProcesses
) -> None:
    def ask(question: Question) -> Opinion:
        assert question.answers == ("yes", "no")
        return Opinion("yes", ("yes", None), {"tokens": len(question.texts)})

    case = Case(crud_task(), gold)
    for records in (sealed(answer), sealed(answer)[:-1]):
        expected = score_attempt(PlayedAttempt(case, records, LEFT), None, ask)
        assert processes.score(PlayedAttempt(case, records, LEFT), None, ask) == expected


def test_attempts_that_are_scored_together_get_the_scores_of_each(
    processes: ScoringProcesses,
) -> None:
    case, failure = Case(crud_task(), GOLD), Infra(InfraKind.ENGINE, "no daemon")
    fine = ToScore(PlayedAttempt(case, sealed("fine"), LEFT), no_judge)
    for harm, why in (("raise", "error"), ("crash", "error"), ("unwritable", "error")):
        harmful = ToScore(PlayedAttempt(case, sealed(harm), LEFT), no_judge)
        lost = ToScore(PlayedAttempt(case, (), None), no_judge, failure)
        scored = processes.score_all([fine, harmful, lost, fine])
        assert [each.score.success for each in scored] == [True, False, None, True]
        assert scored[1].score.metrics["not_scored"] == why
        assert scored[2].outcome == failure


def test_attempts_that_are_scored_together_share_no_task_that_a_scorer_could_change(
    processes: ScoringProcesses,
) -> None:
    case = Case(crud_task(), GOLD)
    attempts = [
        ToScore(PlayedAttempt(case, sealed(answer), LEFT), no_judge)
        for answer in ("forget", "fine")
    ]
    scored = processes.score_all(attempts)
    assert [each.score.success for each in scored] == [False, True]


def test_a_stored_trace_gives_the_score_of_its_records(processes: ScoringProcesses) -> None:
    case, records = Case(crud_task(), NATIVE[0]), sealed("é[a]}")
    stored = "".join(map(record_line, records)).encode("ascii")
    (scored,) = processes.score_all([ToScore(PlayedAttempt(case, stored, LEFT), no_judge)])
    assert scored == score_attempt(PlayedAttempt(case, records, LEFT))
    with pytest.raises(InputError, match="not readable"):
        processes.score_all([ToScore(PlayedAttempt(case, stored[:-20], LEFT), no_judge)])


def test_the_outcome_names_the_seat_whose_box_ended_early(processes: ScoringProcesses) -> None:
    ended = SeatExit(3, ExitReason.EXITED, "user")
    scored = processes.score(PlayedAttempt(Case(crud_task(), NATIVE[0]), sealed(None), ended), None)
    assert scored.outcome == AgentCrashed("seat user: exit status 3")


def test_an_infra_failure_is_not_scored(processes: ScoringProcesses) -> None:
    failure = Infra(InfraKind.ENGINE, "no daemon")
    scored = processes.score(PlayedAttempt(Case(crud_task(), GOLD), (), None), failure)
    assert (scored.outcome, scored.score.success) == (failure, None)


def test_an_unknown_scorer_is_an_error_of_the_user(processes: ScoringProcesses) -> None:
    with pytest.raises(InputError, match="no_such_scorer"):
        processes.score(
            PlayedAttempt(Case(crud_task(), Gold("no_such_scorer", ())), sealed(""), LEFT)
        )


def test_a_scoring_process_imports_nothing_that_only_reading_tasks_needs() -> None:
    """Its imports take longer than scoring a hundred episodes."""
    code = (
        "import sys; from fumehood.orchestrator import scoring_process as own; own.prepare({}); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in done.stdout.split()}
    assert "fumehood" in imported
    assert not imported & {"grpc", "numpy", "pydantic", "structlog", "yaml"}
