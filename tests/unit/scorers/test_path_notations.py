"""Both notations of a path mean the same in every criterion."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from fumehood.benchmarks.native.criteria import Criterion
from fumehood.core.evidence import Evidence
from fumehood.core.outcome import Finished
from fumehood.scorers.found import found
from fumehood.scorers.native_criteria import EpisodeFacts, allowed_paths, check
from tests.unit.scorers.answered_calls import task

CRITERION: TypeAdapter[Any] = TypeAdapter(Criterion)
KEYS = st.sampled_from(("a", "b", "0", "1"))
VALUES = st.recursive(
    st.integers(0, 2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)
STATES = st.dictionaries(KEYS, VALUES, max_size=3)
FORMS: list[dict[str, Any]] = [
    {"op": "equals", "value": 1},
    {"op": "exists"},
    {"op": "in", "value": 1},
    {"op": "map_value_equals", "key": "a", "value": 1},
    {"op": "at_least", "value": 1},
    {"op": "at_most", "value": 1},
    {"op": "unchanged"},
]


def _verdict(criterion: dict[str, Any], before: Any, after: Any) -> tuple[object, ...]:
    stored = CRITERION.validate_python(criterion).model_dump(exclude_unset=True)
    evidence = Evidence(
        calls=(),
        refusals=(),
        ends={"agent": Finished()},
        final_state=after,
        fire_counts=(),
        turn_answers={},
    )
    facts = EpisodeFacts.of(task(before), evidence)
    return check([stored], facts), found(stored, facts), allowed_paths([stored])


@pytest.mark.slow
@given(form=st.sampled_from(FORMS), path=st.lists(KEYS, min_size=1, max_size=3), states=st.data())
def test_a_list_of_keys_means_the_same_as_keys_with_dots(
    form: dict[str, Any], path: list[str], states: st.DataObject
) -> None:
    before, after = states.draw(STATES), states.draw(STATES)
    as_list = _verdict({**form, "path": path}, before, after)
    assert as_list == _verdict({**form, "path": ".".join(path)}, before, after)
    negated = {"op": "not", "condition": {**form, "path": path}}
    if form["op"] != "unchanged":
        dotted = {"op": "not", "condition": {**form, "path": ".".join(path)}}
        assert _verdict(negated, before, after) == _verdict(dotted, before, after)


@given(paths=st.lists(st.lists(KEYS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_allowed_changes_mean_the_same_in_both_notations(paths: list[list[str]]) -> None:
    before, after = {"a": {"b": 1, "0": [1]}, "b": [1, 2]}, {"a": {"b": 2}, "b": [1, 3]}
    dotted = [".".join(path) for path in paths]
    assert _verdict({"op": "only_changed", "paths": paths}, before, after) == _verdict(
        {"op": "only_changed", "paths": dotted}, before, after
    )


def test_a_position_in_a_list_is_a_key() -> None:
    allowed = {"op": "only_changed", "paths": ["b.1"]}
    verdict, _, _ = _verdict(allowed, {"b": [1, 2]}, {"b": [1, 3]})
    assert verdict == {"check_0:only_changed": True}
