"""Episodes, suites and rows of every kind, for properties."""

from __future__ import annotations

from hypothesis import strategies as st

from fumehood.core.conversation import ConversationSpec, Turn
from fumehood.core.episode_spec import DataMode, DataSource, EpisodeSpec, SeatSpec
from fumehood.core.fault_plan import FaultPlan, FaultRule
from fumehood.core.gold import Gold
from fumehood.core.ledger import Budget, BudgetKind, units_by_name
from fumehood.core.outcome import (
    AgentCrashed,
    Finished,
    GaveUp,
    Infra,
    InfraKind,
    Outcome,
    OutOfBudget,
    TimedOut,
)
from fumehood.core.score import Score
from fumehood.core.task import Case, Suite, Task
from fumehood.records.row import EpisodeName, EpisodeRow
from tests.property.packages.values import COUNTS, FLAT_OBJECTS, OBJECTS, TEXT, VALUES, WIRE_TEXT

BUDGETS = st.dictionaries(st.sampled_from(BudgetKind), COUNTS).map(
    lambda limits: Budget(**units_by_name(limits))
)
SEEDS = st.integers() | st.integers(min_value=-(10**80), max_value=10**80)


def plans(text: st.SearchStrategy[str]) -> st.SearchStrategy[FaultPlan]:
    """Return plans whose rules have the index of their position."""
    rule = st.builds(FaultRule, st.just(0), text, FLAT_OBJECTS, text, OBJECTS)
    return st.lists(rule, max_size=2).map(_numbered)


def _numbered(rules: list[FaultRule]) -> FaultPlan:
    return tuple(
        FaultRule(index, rule.family, rule.trigger, rule.severity, rule.payload)
        for index, rule in enumerate(rules)
    )


def seats(text: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[SeatSpec, ...]]:
    """Return one or two seats with further turns and tools."""
    names = st.lists(text, max_size=2).map(tuple)
    turns = st.lists(st.builds(Turn, text, names), max_size=2).map(tuple)
    seat = st.builds(
        SeatSpec,
        name=text,
        instruction=text,
        budget=BUDGETS,
        further_turns=turns,
        tools=st.none() | names,
    )
    return st.lists(seat, min_size=1, max_size=2).map(tuple)


SPECS = st.builds(
    EpisodeSpec,
    episode_id=WIRE_TEXT,
    world=WIRE_TEXT,
    harness_mode=WIRE_TEXT,
    initial_state=OBJECTS,
    fault_plan=plans(TEXT),
    seed=SEEDS,
    seats=seats(WIRE_TEXT),
    data_source=st.none() | st.builds(DataSource, st.sampled_from(DataMode), OBJECTS),
    conversation=st.none() | st.builds(ConversationSpec, WIRE_TEXT, OBJECTS),
    policy=OBJECTS,
)

_TASKS = st.builds(
    Task,
    task_id=TEXT,
    world=TEXT,
    harness_mode=TEXT,
    initial_state=OBJECTS,
    fault_plan=plans(TEXT),
    seed=SEEDS,
    seats=seats(TEXT),
    tags=FLAT_OBJECTS,
    policy=OBJECTS,
)
_GOLD = st.builds(
    Gold,
    scorer=TEXT,
    criteria=st.lists(FLAT_OBJECTS, max_size=2).map(tuple),
    solvable=st.none() | st.booleans(),
    oracle=st.none() | st.lists(FLAT_OBJECTS, max_size=2).map(tuple),
)
SUITES = st.builds(Suite, TEXT, st.lists(st.builds(Case, _TASKS, _GOLD), max_size=2).map(tuple))

OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Finished, TEXT),
    st.builds(GaveUp, TEXT),
    st.builds(OutOfBudget, st.sampled_from(BudgetKind)),
    st.builds(TimedOut, COUNTS),
    st.builds(AgentCrashed, TEXT),
    st.builds(Infra, st.sampled_from(InfraKind), TEXT),
)

NAMES = st.builds(EpisodeName, TEXT, TEXT, COUNTS)

ROWS = st.builds(
    EpisodeRow,
    name=NAMES,
    seed=SEEDS,
    outcome=OUTCOMES,
    score=st.builds(
        Score,
        st.none() | st.booleans(),
        st.dictionaries(TEXT, st.booleans(), max_size=3),
        st.dictionaries(TEXT, VALUES, max_size=3),
    ),
    trace=TEXT,
    trace_digest=TEXT,
    attempts=COUNTS,
    wall_ms=COUNTS,
    stdout_bytes=COUNTS,
    stderr_bytes=COUNTS,
    refusals=COUNTS,
)
