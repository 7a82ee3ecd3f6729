"""The monitors that a run names: rule files, classes, models, or a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from fumehood.benchmarks.registry import load_suite
from fumehood.core.episode_spec import MonitorSpec
from fumehood.core.errors import FumehoodError, InputError, SpecError, nearest
from fumehood.core.json_values import Json, canonical_json
from fumehood.core.task import Suite
from fumehood.gateway.settings import GatewaySettings, ModelsMode
from fumehood.monitors.monitor import StepKind
from fumehood.monitors.registry import MONITORS
from fumehood.monitors.rules import read_rules
from fumehood.orchestrator.added_faults import tools_of
from fumehood.orchestrator.config import ModelBudget, MonitorConfig, RunConfig, parse_yaml

RULES, PYTHON, MODEL, PERSON = "rules", "python", "model", "person"
DEADLINE_S = {RULES: 10.0, PYTHON: 10.0, MODEL: 120.0, PERSON: 600.0}
"""Time for one decision, by kind."""
MODEL_ARGUMENTS: Mapping[str, type | tuple[type, ...]] = {
    "instructions": str,
    "refuse_from": (int, float),
    "end_from": (int, float),
    "after": bool,
    "requests": bool,
    "history": int,
}
"""Arguments of a model monitor, with their types."""
FORMS = "FILE.yaml, FILE.py:Class, module:Class, model:NAME, person, or an installed monitor"


def monitor_configs(config: RunConfig) -> tuple[MonitorConfig, ...]:
    """Return the monitors of a run as objects."""
    return tuple(
        monitor if isinstance(monitor, MonitorConfig) else MonitorConfig(monitor=str(monitor))
        for monitor in config.monitors or ()
    )


def monitor_names(config: RunConfig) -> tuple[str, ...]:
    """Return the names of the monitors, without reading their files.

    Raises:
        InputError: two have the same name.
    """
    names = [monitor.name or _name(monitor.monitor) for monitor in monitor_configs(config)]
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"monitors: two are called {name!r}: set `name` of one in --config")
    return tuple(names)


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """Return the configuration with absolute paths of monitors and workspaces, for a later
    resume."""
    paths = {
        name: path.absolute()
        for name in ("keep_workspaces", "from_workspace")
        if (path := getattr(config, name)) is not None
    }
    config = config.model_copy(update=paths)
    if not config.monitors:
        return config
    monitors = tuple(
        monitor.model_copy(update={"monitor": _absolute(monitor.monitor)})
        for monitor in monitor_configs(config)
    )
    return config.model_copy(update={"monitors": monitors})


def monitor_specs(config: RunConfig) -> tuple[MonitorSpec, ...]:
    """Read the monitors of a run.

    Raises:
        InputError: a file is missing, or its rules are not valid; names the place.
    """
    names = monitor_names(config)
    return tuple(
        _spec(monitor, name) for monitor, name in zip(monitor_configs(config), names, strict=True)
    )


def monitor_facts(specs: Sequence[MonitorSpec]) -> list[Json]:
    """Return what ``run.json`` states of the monitors."""
    return [
        {
            "name": spec.name,
            "kind": spec.kind,
            "digest": sha256(canonical_json(spec.settings).encode("ascii")).hexdigest(),
        }
        for spec in specs
    ]


def check_unchanged(specs: Sequence[MonitorSpec], manifest: Mapping[str, Json]) -> None:
    """Check that the monitors are those of the beginning of the run.

    Raises:
        InputError: one has changed.
    """
    recorded = manifest.get("monitors", [])
    for spec, facts in zip(specs, monitor_facts(specs), strict=True):
        if not isinstance(recorded, list) or facts not in recorded:
            raise InputError(
                f"the monitor {spec.name} has changed since the run began: restore its file, or "
                "start a new run"
            )


def check_tools(specs: Sequence[MonitorSpec], suite: Suite, config: RunConfig) -> None:
    """Check that each rule that names a tool, and no pattern, names a tool of the suite.

    Tools of tasks that are not selected count. Nothing is checked if a world cannot be opened here.

    Raises:
        InputError: a rule names another tool; names the nearest one.
    """
    named = {
        rule.tool: f"monitor {spec.name}: rules[{position}].tool"
        for spec in specs
        if spec.kind == RULES
        for position, rule in enumerate(read_rules(spec.settings))
        if rule.kind is StepKind.TOOL and not set("*?[") & set(rule.tool)
    }
    if not named:
        return
    try:
        tools = tools_of(suite)
        if config.tasks is not None and not named.keys() <= tools:
            tools |= tools_of(load_suite(config.suite, config.snapshot))
    except FumehoodError:
        return  # The run states what is wrong with the suite.
    for tool, where in named.items():
        if tool not in tools:
            hint = nearest(tool, sorted(tools))
            raise InputError(f"{where}: no task of {suite.name} has a tool {tool!r}; {hint}")


def _spec(monitor: MonitorConfig, name: str) -> MonitorSpec:
    kind, settings = _settings(monitor)
    deadline_s = monitor.deadline_s or DEADLINE_S[kind]
    return MonitorSpec(
        name=name, kind=kind, settings=settings, deadline_ms=round(deadline_s * 1000)
    )


def _settings(monitor: MonitorConfig) -> tuple[str, dict[str, Any]]:
    text = monitor.monitor
    if _is_rule_file(text):
        if monitor.arguments:
            raise InputError(f"monitors: {text}: a rule file takes no arguments")
        rules = parse_yaml(Path(text), "`rules`, a list, or `policy`")
        try:
            read_rules(rules)
        except SpecError as error:
            raise InputError(f"{text}: {error}") from None
        return RULES, rules
    if text.startswith(f"{MODEL}:"):
        return MODEL, _model_settings(monitor, text.removeprefix(f"{MODEL}:"))
    if monitor.budget != ModelBudget():
        raise InputError(f"monitors: {text}: only a model monitor has a budget")
    if text == PERSON:
        if monitor.arguments:
            raise InputError(f"monitors: {text}: takes no arguments")
        return PERSON, {}
    installed = MONITORS.path_of(text) if text in MONITORS else text
    place, has_class, class_name = installed.rpartition(":")
    if not (has_class and place and class_name.isidentifier()):
        raise InputError(f"monitors: {text!r} is not {FORMS}")
    settings: dict[str, Any] = {"class": class_name, "arguments": dict(monitor.arguments)}
    if not place.endswith(".py"):
        return PYTHON, {**settings, "module": place}
    try:
        source = Path(place).read_text(encoding="utf-8")
        compile(source, place, "exec")
    except OSError as error:
        raise InputError(f"{place}: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{place}: {error}") from None
    return PYTHON, {**settings, "source": source, "file": Path(place).name}


def _model_settings(monitor: MonitorConfig, model: str) -> dict[str, Any]:
    unknown = sorted(monitor.arguments.keys() - MODEL_ARGUMENTS.keys())
    if unknown:
        hint = nearest(unknown[0], sorted(MODEL_ARGUMENTS))
        raise InputError(f"monitors: {monitor.monitor}: arguments.{unknown[0]}: {hint}")
    for name, value in monitor.arguments.items():
        if isinstance(value, bool) != (MODEL_ARGUMENTS[name] is bool) or not isinstance(
            value, MODEL_ARGUMENTS[name]
        ):
            raise InputError(f"monitors: {monitor.monitor}: arguments.{name}: has another type")
    if monitor.budget.usd is not None:
        raise InputError(f"monitors: {monitor.monitor}: budget.usd: use calls or tokens")
    budget = {"model_calls": monitor.budget.calls, "model_tokens": monitor.budget.tokens}
    limits = {name: limit for name, limit in budget.items() if limit is not None}
    return {**monitor.arguments, "model": model, "budget": limits}


def check_models(
    specs: Sequence[MonitorSpec], gateway: GatewaySettings | None, *, is_inline: bool
) -> None:
    """Check that the models of monitors can be called.

    Raises:
        InputError: one cannot; names the remedy.
    """
    for spec in specs:
        if is_inline and spec.kind in (MODEL, PERSON):
            raise InputError(
                f"the monitor {spec.name}: the inline engine calls no model and waits for no "
                "person: use --engine docker or bubblewrap"
            )
        model = spec.settings.get("model") if spec.kind == MODEL else None
        if model is None:
            continue
        if gateway is None or gateway.provider_of(str(model)) is None:
            raise InputError(f"the monitor {spec.name}: add a provider of {model} under `models`")
        if gateway.mode is ModelsMode.REPLAY:
            raise InputError(f"the monitor {spec.name}: a model monitor needs `models.mode: live`")


def _is_rule_file(text: str) -> bool:
    return text.endswith((".yaml", ".yml"))


def _name(text: str) -> str:
    if _is_rule_file(text):
        return Path(text).stem
    return text if text.startswith(f"{MODEL}:") else text.rpartition(":")[2] or text


def _absolute(text: str) -> str:
    if _is_rule_file(text):
        return str(Path(text).absolute())
    place, _, class_name = text.rpartition(":")
    return f"{Path(place).absolute()}:{class_name}" if place.endswith(".py") else text
