"""The page shows episodes correctly."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.clock import StoppedClock
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.evidence import AnsweredCall, read_evidence
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject, short_json
from fumehood.core.ledger import Budget, BudgetKind
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.state_diff import changes
from fumehood.core.task import Case, Suite, Task
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.report.model_texts import Conversation
from fumehood.report.page.bodies import episode_body, state_changes, task_body
from fumehood.report.page.contents import embedded_json, packed
from fumehood.report.page.texts import LINE_CHARS, TEXT_CHARS_MAX, shown, shown_json
from fumehood.report.results import join_results
from fumehood.report.traces import read_traces
from fumehood_agent.in_process import InProcessSession
from tests.parts.knowledge import write_checkout
from tests.parts.memory_runs import play_run
from tests.unit.snapshots.sites import serving

ENOUGH = Budget(steps=9, calls=9, retries=9)
UPDATE = ("update_account", {"id": "a1", "patch": {"tier": "gold"}})


def _case(*faults: FaultRule, harness_mode: str = "native", budget: Budget = ENOUGH) -> Case:
    task = Task(
        task_id="task",
        world="crud",
        harness_mode=harness_mode,
        initial_state={"accounts": {"a1": {"id": "a1", "tier": "basic"}}},
        fault_plan=faults,
        seed=3,
        seats=(SeatSpec(instruction="Make it gold.", budget=budget),),
        tags={"difficulty": "easy"},
    )
    return Case(
        task, Gold("native", ({"op": "equals", "path": "accounts.a1.tier", "value": "gold"},), True)
    )


def _body(folder: Path, case: Case, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    def player(seat: InProcessSession) -> None:
        for tool, arguments in calls:
            seat.call(tool, arguments)
        seat.submit("done")

    suite = Suite("one", (case,))
    run = play_run(folder / "run", suite, {"player": player})
    ((result, trace),) = read_traces(run, join_results(run.rows(), suite))
    return episode_body(case.task, result, trace, None, [], Conversation([]))


def test_a_call_is_shown_with_arguments_result_and_changes(tmp_path: Path) -> None:
    (call,) = _body(tmp_path, _case(), UPDATE)["calls"]
    assert json.loads(call["sent"]) == UPDATE[1]
    assert json.loads(call["output"])["account"]["tier"] == "gold"
    assert call["changes"] == [["accounts › a1 › tier", '"basic"', '"gold"']]
    assert call["left"] == {"steps": 8, "calls": 8, "retries": 9}
    assert "arguments_after" not in call
    assert "faults" not in call


def test_arguments_that_a_fault_altered_are_shown_with_the_original_ones(
    tmp_path: Path,
) -> None:
    rename = FaultRule(
        0, "schema_drift", {"on_nth_call": 1}, "soft", {"rename_args": {"id": "key"}}
    )
    first, second = _body(tmp_path, _case(rename, harness_mode="toolmisuse"), UPDATE, UPDATE)[
        "calls"
    ]
    assert "key" in json.loads(first["arguments_after"])
    assert "id" in json.loads(first["sent"])
    assert first["faults"] == [0]
    assert first["failure"]["code"] == "missing_required_arg"
    assert "arguments_after" not in second


def test_faults_are_fired_or_not_reached(tmp_path: Path) -> None:
    early, late = (FaultRule(at, "timeout", {"on_nth_call": at * 5 + 1}) for at in (0, 1))
    assert _body(tmp_path, _case(early, late), UPDATE)["fire_counts"] == [1, 0]


def test_a_task_is_shown_with_instruction_faults_and_criteria() -> None:
    body = task_body(_case(FaultRule(0, "timeout", {"on_tool": "update_account"})))
    assert body["seats"][0]["instruction"] == "Make it gold."
    assert body["seats"][0]["budget"] == {"steps": 9, "calls": 9, "retries": 9}
    assert body["faults"][0]["trigger"] == '{"on_tool": "update_account"}'
    assert json.loads(body["criteria"]["check_0:equals"])["value"] == "gold"


moves = st.lists(
    st.tuples(
        st.sampled_from(
            ["get_account", "update_account", "create_account", "close_account", "none_such"]
        ),
        st.fixed_dictionaries(
            {},
            optional={
                "id": st.sampled_from(["a1", "a2", "zz"]),
                "patch": st.dictionaries(st.sampled_from(["tier", "city"]), st.integers(0, 2)),
                "fields": st.fixed_dictionaries({"id": st.sampled_from(["a2", "a3"])}),
                "reason": st.just("moved"),
            },
        ),
    ),
    max_size=12,
)
plans = st.lists(
    st.sampled_from(["timeout", "rate_limit", "schema_drift", "adversarial_error"]), max_size=2
)


@pytest.mark.slow
@given(
    moves, plans, st.sampled_from(["native", "toolmisuse"]), st.integers(1, 8), st.integers(0, 4)
)
def test_repeated_states_and_budgets_equal_the_original_ones(
    made: list[tuple[str, dict[str, Any]]],
    plan: list[str],
    harness_mode: str,
    limit: int,
    retries: int,
) -> None:
    faults = tuple(
        FaultRule(at, family, {"on_nth_call": 2 * at + 1}) for at, family in enumerate(plan)
    )
    budget = Budget(steps=limit + 1, calls=limit, retries=retries)
    task = _case(*faults, harness_mode=harness_mode, budget=budget).task
    recorder = MemoryRecorder()
    spec = PlannedEpisode("a", Case(task, Gold("native", ())), 0, 3).to_spec(1000)
    episode = HARNESS_MODES.load(harness_mode)().open_episode(spec, recorder, StoppedClock())
    seat, before, really = episode.seats[0], json.loads(json.dumps(task.initial_state)), []
    left = []
    for tool, arguments in made:
        if seat.end is not None:
            break
        remaining = seat.call(tool, arguments).remaining
        left.append(
            {
                kind.value: remaining[kind]
                for kind in (BudgetKind.STEPS, BudgetKind.CALLS, BudgetKind.RETRIES)
            }
        )
        after = json.loads(json.dumps(episode.world.state))
        really.append(changes(before, after))
        before = after
    episode.close()
    calls = read_evidence(recorder.written()).calls
    assert list(state_changes(task, calls)) == really
    assert [call.remaining for call in calls] == left


def test_an_unknown_change_is_shown_as_unknown(tmp_path: Path) -> None:
    case = _case()
    suite = Suite("one", (case,))

    def player(seat: InProcessSession) -> None:
        seat.call(*UPDATE)
        seat.submit()

    run = play_run(tmp_path / "run", suite, {"player": player})
    ((_, trace),) = read_traces(run, join_results(run.rows(), suite))
    assert trace.evidence is not None
    other = _case(FaultRule(0, "timeout")).task
    elsewhere = replace(other, initial_state={"accounts": {}})
    assert list(state_changes(elsewhere, trace.evidence.calls)) == [None]
    (call,) = trace.evidence.calls
    forged = replace(call, tool_name="close_account", arguments_after={"id": "a1"})
    assert list(state_changes(case.task, (forged,))) == [None], "no tool allows these arguments"


def test_a_page_opens_no_connection_that_a_run_names(tmp_path: Path) -> None:
    arguments: JsonObject = {"variable": "m.0"}
    asking = AnsweredCall("agent", "get_relations", arguments, arguments, {}, None, (), "unknown")
    folder = write_checkout(tmp_path / "checkout")
    with serving({"/": ""}) as site:
        state: JsonObject = {"folder": str(folder), "endpoint": site.url, "entities": {}}
        task = replace(_case().task, world="knowledge_graph", initial_state=state)
        assert list(state_changes(task, (asking,))) == [None]
        assert site.requests == []


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "&lt;", "\u2028", '"\\'])
def test_no_text_closes_its_element(text: str) -> None:
    embedded = str(embedded_json({"text": text, text: [text]}))
    assert not set("<>&\u2028\u2029") & set(embedded)
    assert json.loads(embedded) == {"text": text, text: [text]}


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3))
)
def test_packed_data_unpacks_and_packing_is_deterministic(value: Any) -> None:
    texts = [short_json(value), short_json([value])]
    assert packed(texts) == packed(texts)
    assert json.loads(gzip.decompress(base64.b64decode(packed(texts)))) == [value, [value]]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    )
)
def test_long_json_is_indented_as_python_does(value: Any) -> None:
    value = {"long": "x" * LINE_CHARS, "value": value}
    text = json.dumps(value, ensure_ascii=False, indent=1)
    assert shown_json(value) == shown(text)


def test_long_texts_are_cut_with_a_note() -> None:
    assert shown("x" * TEXT_CHARS_MAX) == "x" * TEXT_CHARS_MAX
    assert shown("x" * (TEXT_CHARS_MAX + 1234)).endswith("… (1,234 more characters)")
    assert shown_json({"a": "\x1b"}) == '{"a": "\\u001b"}'
    assert shown_json({"a": "\u202e"}) == '{"a": "\\u202e"}'


def test_short_json_shows_letters_of_all_languages() -> None:
    assert shown_json({"größe": ["語", 1]}) == '{"größe": ["語", 1]}'
