"""An experiment file becomes one run per combination of levels, and its plan is frozen."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fumehood.cli.run import resume
from fumehood.core.errors import InputError
from fumehood.orchestrator.agents import identity_of, name_agents
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.experiment import (
    ExperimentConfig,
    Plan,
    frozen_plan,
    own_plan,
    plan_of,
    read_experiment,
    run_plan,
    runs_in,
)
from fumehood.records.run_reader import RunReader
from fumehood.records.signing_key import KEY_VARIABLE

PLAIN: dict[str, Any] = {
    "format": "fumehood.experiment/1",
    "suites": ["sample"],
    "agents": ["noop"],
    "run": {"engine": "inline"},
}
FULL: dict[str, Any] = {
    **PLAIN,
    "run": {"engine": "process"},
    "suites": ["sample", {"label": "crud", "suite": "sample", "tasks": {"names": ["crud_*"]}}],
    "agents": ["react", "code", "noop"],
    "models": ["m1", {"model": "m1", "label": "hot", "parameters": {"temperature": 1}}],
    "faults": ["none", {"label": "storm", "file": "storm.yaml"}],
    "budgets": ["own", {"calls": 4}],
    "trials": 2,
}


def plan(**changes: Any) -> Plan:
    return plan_of(ExperimentConfig.model_validate({**PLAIN, **changes}))


def written(folder: Path, settings: dict[str, Any]) -> Path:
    path = folder / "e.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def test_every_combination_is_one_run_and_agents_without_a_model_run_once() -> None:
    without_parameters = {**FULL, "models": ["m1", "m2"]}
    cells = plan(**without_parameters).cells
    # 2 suites, 2 models and one group without a model, 2 fault levels, 2 budgets.
    assert len(cells) == 2 * 3 * 2 * 2
    assert len({cell.name for cell in cells}) == len(cells)
    agents = {cell.levels["model"]: cell.config.agents for cell in cells}
    assert agents == {"m1": ("react", "code"), "m2": ("react", "code"), "": ("noop",)}
    levels = ("crud", "m2", "offline", "storm", "calls=4", "none", "own")
    (cell,) = (cell for cell in cells if tuple(cell.levels.values()) == levels)
    assert (cell.config.model, cell.config.trials, cell.config.engine) == ("m2", 2, "process")
    assert Path(str(cell.config.faults)).is_absolute()
    assert cell.config.budget is not None
    assert cell.config.budget.changes() == {"calls": 4}


def test_a_model_level_sets_its_parameters() -> None:
    levels = ["m1", {"model": "m1", "parameters": {"temperature": 1, "turns": 3}}]
    cells = plan(agents=["react"], models=levels, run={"models": {"budget": {"tokens": 9}}}).cells
    assert [cell.levels["model"] for cell in cells] == ["m1", "m1 temperature=1.0,turns=3"]
    settings = [cell.config.models for cell in cells]
    changed = [own.parameters_of("m1").changed() for own in settings if own is not None]
    assert changed == [{}, {"temperature": 1.0, "turns": 3}]
    (agent,) = name_agents(["react"], "m1")
    assert identity_of(agent, settings[1]) == {
        "scaffold": "react",
        "model": "m1",
        "model_parameters": {"temperature": 1.0, "turns": 3},
    }


@pytest.mark.slow
@given(
    suites=st.integers(1, 3),
    faults=st.integers(1, 3),
    budgets=st.lists(st.integers(0, 99), unique=True, max_size=3),
)
def test_the_number_of_runs_is_the_product_of_the_levels(
    suites: int, faults: int, budgets: list[int]
) -> None:
    cells = plan(
        suites=[{"suite": "sample", "label": f"s{number}"} for number in range(suites)],
        faults=["none", *(f"{number}.yaml" for number in range(faults - 1))],
        budgets=["own", *({"calls": calls} for calls in budgets)],
    ).cells
    assert len(cells) == prod((suites, faults, len(budgets) + 1))


def test_each_intensity_of_a_fault_file_is_a_level() -> None:
    storm = {"file": "storm.yaml", "intensities": [0.25, 1]}
    cells = plan(faults=["none", storm]).cells
    assert [(cell.levels["faults"], cell.config.fault_intensity) for cell in cells] == [
        ("none", None),
        ("storm 0.25", 0.25),
        ("storm 1", 1.0),
    ]
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        plan(faults=[{"file": "storm.yaml", "intensities": [2]}])


def test_each_number_of_prompt_variants_has_its_run() -> None:
    cells = plan(prompts=[0, 2], trials=2).cells
    counts = {cell.levels["prompts"]: cell.config.prompt_variants for cell in cells}
    assert counts == {"own": 0, "variants=2": 2}
    assert len({cell.name for cell in cells}) == 2


def test_each_team_has_its_runs() -> None:
    teams = ["none", {"workers": 3}, {"workers": 5, "label": "large"}]
    cells = plan(teams=teams, budgets=["own", {"calls": 4}]).cells
    workers = {cell.levels["team"]: cell.config.team and cell.config.team.workers for cell in cells}
    assert len(cells) == 2 * len(teams)
    assert workers == {"none": None, "workers=3": 3, "large": 5}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teams": ["two"]}, "teams: must be 'none' or a size such as {workers: 3}, not 'two'"),
        ({"run": {"team": {"workers": 3}}}, "run: 'team' is not a setting here"),
        ({"suits": ["sample"]}, "suits: is not a known key; did you mean 'suites'?"),
        ({"budgets": [{"call": 3}]}, "budgets[0].call: is not a known key; did you mean 'calls'?"),
        ({"models": [{"model": "m", "parameters": {"temperatures": 1}}]}, "mean 'temperature'?"),
        ({"budgets": ["full"]}, "budgets: must be 'own' or bounds such as {calls: 4}, not 'full'"),
        ({"suites": [{"tusks": "sample"}]}, "suites[0].tusks: is not a known key"),
        ({"data_modes": [{"data_mode": "liv"}]}, "data_modes[0].data_mode: must be"),
        ({"run": {"faults": "none"}}, "run: 'faults' is not a setting here"),
        ({"agents": []}, "agents: "),
        ({"trials": True}, "trials: "),
        ({"format": "fumehood.experiment/2"}, "format: must be 'fumehood.experiment/1'"),
    ],
)
def test_an_invalid_file_gives_one_line_with_the_location(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        read_experiment(written(tmp_path, {**PLAIN, **changes}))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agents": ["react"]}, "the scaffold react needs a model: state it under `models`"),
        (
            {"agents": ["react"], "models": ["m1"]},
            "the inline engine does not run agents that call",
        ),
        ({"models": ["m1"]}, "no agent is a scaffold, so `models` has no effect: remove it"),
        ({"suites": ["sample", "sample"]}, "two cells are called sample"),
        ({"run": {"engin": "inline"}}, "engin: is not a known key; did you mean 'engine'?"),
    ],
)
def test_a_plan_that_cannot_be_run_is_rejected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        plan(**changes)
    assert message in str(raised.value)


def test_the_plan_is_frozen_before_the_first_run_and_another_plan_is_refused(
    tmp_path: Path,
) -> None:
    folder, first = tmp_path / "e", plan(budgets=["own", {"calls": 1}])
    started: list[Path] = []

    def run_cell(config: RunConfig, path: Path, title: str) -> RunReader:
        assert frozen_plan(folder) == first
        assert config.plan == first.digest
        started.append(path)
        raise InputError(title)

    with pytest.raises(InputError, match="run 1 of 2: sample--own"):
        list(run_plan(first, folder, run_cell))
    assert started == runs_in(folder)[:1]
    changed = plan(budgets=["own", {"calls": 1}], run={"engine": "process", "concurrency": 9})
    with pytest.raises(InputError, match="run 1 of 2"):
        list(run_plan(changed, folder, run_cell))
    with pytest.raises(InputError, match="another plan"):
        list(run_plan(plan(budgets=["own", {"calls": 2}]), folder, run_cell))


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty: choose another --out"):
        list(run_plan(plan(), tmp_path, lambda *_: pytest.fail("nothing may run")))


def test_only_a_plan_that_the_user_signed_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(*_: object) -> RunReader:
        raise InputError("stops")

    with pytest.raises(InputError, match="stops"):
        list(run_plan(plan(), tmp_path, stops))
    assert own_plan(tmp_path) == frozen_plan(tmp_path) == plan()
    signed = (tmp_path / "experiment.json").read_text()
    value = json.loads(signed)
    value["cells"][0]["config"] |= {"engine": "process", "i_trust_this_agent": True}
    unsigned = {name: part for name, part in value.items() if name != "signature"}
    for changed in (value, unsigned, {**value, "signature": "0" * 128}):
        (tmp_path / "experiment.json").write_text(json.dumps(changed))
        done = CliRunner().invoke(resume, [str(tmp_path)])
        assert "is not signed with your key" in str(done.exception)
    (tmp_path / "experiment.json").write_text(signed)
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "of_another_user.pem"))
    with pytest.raises(InputError, match="is not signed with your key"):
        own_plan(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "fumehood.experiment/1"}'])
def test_a_damaged_plan_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "experiment.json").write_text(content)
    with pytest.raises(InputError, match="is not a readable plan of an experiment"):
        frozen_plan(tmp_path)


def test_the_digest_of_a_plan_does_not_depend_on_settings_of_the_execution() -> None:
    faster = plan(run={"engine": "process", "concurrency": 9})
    assert faster.digest == plan().digest
    assert plan(run={"engine": "inline", "wall_time_s": 9}).digest != plan().digest


def test_a_frozen_plan_is_the_plan() -> None:
    own = plan(**{**FULL, "models": ["m1", "m2"]})
    assert Plan.from_json(json.loads(json.dumps(own.to_json()))) == own


def test_a_run_that_is_not_that_of_its_cell_is_refused(tmp_path: Path) -> None:
    folder, planned = tmp_path / "e", plan(budgets=["own", {"calls": 1}])
    first, second = planned.cells
    for cell in planned.cells:
        (folder / "runs" / cell.name).mkdir(parents=True)
        stated = cell.config.model_copy(update={"plan": planned.digest})
        config = {"config": stated.model_dump(mode="json")}
        (folder / "runs" / cell.name / "run.json").write_text(json.dumps(config))
    (folder / "experiment.json").write_text(json.dumps(planned.to_json()))
    assert runs_in(folder) == [folder / "runs" / cell.name for cell in planned.cells]
    own = (folder / "runs" / first.name / "run.json").read_text()
    other = (folder / "runs" / second.name / "run.json").read_text()
    (folder / "runs" / second.name / "run.json").write_text(own)
    with pytest.raises(InputError, match=r"not the run that the plan names.*budget, levels"):
        runs_in(folder)
    (folder / "runs" / second.name / "run.json").write_text(other)
    other_settings: dict[str, Any] = {"plan": "0" * 64, "wall_time_s": 9.0, "faults": "storm.yaml"}
    for setting, value in other_settings.items():
        config = {"config": {**json.loads(own)["config"], setting: value}}
        (folder / "runs" / first.name / "run.json").write_text(json.dumps(config))
        with pytest.raises(InputError, match=f"it differs in: {setting}$"):
            runs_in(folder)
    shorter = Plan((first,))
    (folder / "experiment.json").write_text(json.dumps(shorter.to_json()))
    with pytest.raises(InputError, match=f"{second.name}: is not in the plan"):
        runs_in(folder)


@pytest.mark.parametrize("names", [["../escaped", "b"], ["..", "b"], ["a", "a"], []])
def test_a_plan_names_different_folders_below_its_runs(tmp_path: Path, names: list[str]) -> None:
    value = plan(budgets=["own", {"calls": 1}]).to_json()
    cells: Any = value["cells"]
    value["cells"] = [{**cell, "name": name} for cell, name in zip(cells, names, strict=False)]
    (tmp_path / "experiment.json").write_text(json.dumps(value))
    with pytest.raises(InputError, match="is not a readable plan of an experiment"):
        frozen_plan(tmp_path)
