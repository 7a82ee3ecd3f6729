"""``fumehood doctor``: checks the engines of this machine, and attacks them with ``--probe``."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Container, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from fumehood.cli.clean import report_orphans
from fumehood.cli.output import print_json, print_tables
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.engines.engine import Engine, EngineOptions, Isolation, WorkspaceEngine
from fumehood.engines.registry import ENGINES, choose_engine
from fumehood.records.caches import keep_probe, last_probe, probe_summary, system_name
from fumehood.redteam.attacks import (
    ATTACKS,
    ONLY_IN_WORKSPACES,
    OPEN_IN_WORKSPACES,
    WORKSPACE_ATTACKS,
    Attack,
    Result,
    Verdict,
)
from fumehood.redteam.controls.runs import ControlRuns
from fumehood.redteam.page import (
    WORKSPACES_BEGIN,
    WORKSPACES_END,
    attack_table,
    replace_table,
    workspace_table,
)
from fumehood.redteam.places import Place
from fumehood.redteam.probe import Probe
from fumehood.report.safe_text import one_line
from fumehood.report.text_table import TextTable
from fumehood.version import __version__

NO_ISOLATION = (
    "no engine here isolates untrusted agents: install Docker or bubblewrap (Debian: apt-get "
    "install bubblewrap); agents that you wrote run with --engine process --i-trust-this-agent"
)


@dataclass(frozen=True, slots=True)
class _Finding:
    engine: str
    """Name with runtime, as ``--probe`` takes it."""
    ready: bool
    isolation: str
    detail: str
    unenforced: tuple[str, ...]
    """Limits that a box can exceed."""
    last_probe: JsonObject | None
    """The stored report of the last probe."""

    def to_json(self) -> dict[str, object]:
        lists = {"unenforced": list(self.unenforced), "not_stopped": list(self.not_stopped())}
        return {**asdict(self), **lists}

    def not_stopped(self) -> tuple[str, ...]:
        """Return the attacks that rely on a limit that the engine does not enforce."""
        if self.isolation.startswith(Isolation.NONE.value):
            return ()  # It stops no attack, which the isolation column says.
        return tuple(attack.name for attack in ATTACKS if attack.limit in self.unenforced)

    def notes(self) -> Iterator[str]:
        """Yield the lines of the notes column."""
        yield self.detail
        if self.unenforced:
            yield f"does not enforce: {', '.join(self.unenforced)}"
        if self.not_stopped():
            yield f"does not stop: {', '.join(self.not_stopped())}"
        if self.ready and not self.isolation.startswith(Isolation.NONE.value):
            never = f"never; run fumehood doctor --probe {self.engine}"
            yield f"probed: {probe_summary(self.last_probe) or never}"


@click.command()
@click.option("--runtime", default=None, help="Also check docker and oci with this runtime.")
@click.option(
    "--probe",
    "probed",
    multiple=True,
    metavar="ENGINE",
    help="Attack boxes of this engine, such as docker/runsc. Repeatable.",
)
@click.option(
    "--attack", multiple=True, metavar="NAME", help="With --probe: only this attack. Repeatable."
)
@click.option(
    "--no-forked-starts",
    is_flag=True,
    help="With --probe bubblewrap: start a new Python for each agent instead of forking one.",
)
@click.option(
    "--prepared",
    is_flag=True,
    help="With --probe: start the boxes of agents in advance, as `run --prepare` does.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --probe: also update the table in this Markdown file.",
)
@click.option(
    "--orphans", is_flag=True, help="Only list what killed commands left behind; see clean."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(
    runtime: str | None,
    probed: tuple[str, ...],
    attack: tuple[str, ...],
    no_forked_starts: bool,
    prepared: bool,
    page: Path | None,
    orphans: bool,
    as_json: bool,
) -> int:
    """Check which engines work here, and what to install.

    Exit status 2 if no engine isolates an untrusted agent. With --probe, runs the red-team attacks
    from boxes of an engine, each with its control: the same attack without its protection, which
    must succeed. Engines of workspaces are also attacked from a workspace and from a verifier.
    Exit status 1 if an attack was not stopped, or if its control did not succeed.
    With --orphans, exit status 1 if there is an orphan; `fumehood clean` removes it.

    \b
    Examples:
      fumehood doctor
      fumehood doctor --probe docker/runsc --attack egress
      fumehood doctor --probe bubblewrap --no-forked-starts
      fumehood doctor --probe docker --prepared
    """
    _require_effect(orphans=orphans, probed=bool(probed), runtime=runtime, attack=attack, page=page)
    if orphans:
        return int(report_orphans(dry_run=True, images=False, as_json=as_json) > 0)
    if no_forked_starts and "bubblewrap" not in probed:
        raise InputError("--no-forked-starts needs --probe bubblewrap")
    if prepared and not probed:
        raise InputError("--prepared needs --probe ENGINE")
    if probed:
        starts = _Starts(forked=not no_forked_starts, prepared=prepared)
        return _probe(probed, attack, page, starts, as_json=as_json)
    findings = [_examine(name, runtime_name) for name, runtime_name in _engines(runtime)]
    holds = any(finding.ready and not finding.isolation.startswith("none") for finding in findings)
    if as_json:
        report = {
            "version": __version__,
            "python": platform.python_version(),
            "system": system_name(),
            "free_disk_bytes": shutil.disk_usage(".").free,
            "holds_untrusted_agents": holds,
            "engines": [finding.to_json() for finding in findings],
        }
        print_json(report)
    else:
        print_tables(_engine_table(findings))
    if not holds:
        raise InputError(NO_ISOLATION)
    return 0


def _engines(runtime: str | None) -> Iterator[tuple[str, str | None]]:
    """Yield every engine, also with ``runtime`` and with each runtime that has its own kernel."""
    for name, create in ENGINES.working():
        yield name, None
        engine = create()
        if engine.has_runtimes:
            requested = [runtime] if runtime else []
            yield from (
                (name, other) for other in sorted({*engine.sandboxed_runtimes(), *requested})
            )
        engine.close()


def _require_effect(
    *, orphans: bool, probed: bool, runtime: str | None, attack: tuple[str, ...], page: Path | None
) -> None:
    """Reject options without effect.

    Raises:
        InputError: names the options.
    """
    if orphans and probed:
        raise InputError("--orphans and --probe exclude each other: run the command twice")
    if (attack or page) and not probed:
        raise InputError("--attack and --page need --probe ENGINE")
    if runtime and (orphans or probed):
        raise InputError("remove --runtime; --probe docker/RUNTIME probes a runtime")


def _examine(name: str, runtime: str | None) -> _Finding:
    engine = ENGINES.load(name)(EngineOptions(runtime=runtime))
    try:
        readiness = engine.check()
        isolation, detail = engine.isolation.value, readiness.detail
        probe = last_probe(name, detail) if readiness.ready else None
        label = f"{name}/{runtime}" if runtime else name
        return _Finding(label, readiness.ready, isolation, detail, tuple(engine.unenforced), probe)
    finally:
        engine.close()


def _engine_table(findings: list[_Finding]) -> TextTable:
    """Return the table of engines, with one row for each note."""
    rows = list[tuple[str, ...]]()
    for finding in findings:
        first, *further = finding.notes()
        rows.append((finding.engine, "yes" if finding.ready else "no", finding.isolation, first))
        rows += [("", "", "", note) for note in further]
    return TextTable("", ("engine", "ready", "isolation", "notes"), rows, names=4)


BREACHED = 1
"""Exit status if an attack was not stopped, or not shown to be stopped."""

_STYLES = {Result.STOPPED: "green", Result.NOT_APPLICABLE: "dim"}


@dataclass(frozen=True, slots=True)
class _Starts:
    """How the attacking boxes are started."""

    forked: bool
    prepared: bool


def _probe(
    engines: Sequence[str],
    names: Sequence[str],
    page: Path | None,
    starts: _Starts,
    *,
    as_json: bool,
) -> int:
    """Attack each engine (``NAME`` or ``NAME/RUNTIME``) and return the exit status.

    Raises:
        InputError: the engine or attack does not exist, or the engine is not ready.
    """
    attacks = _choose(names)
    # With --json, the results of the attacks are progress.
    console = Console(soft_wrap=True, stderr=as_json, highlight=False)
    verdicts: dict[str, list[Verdict]] = {}
    in_workspaces: dict[str, dict[str, list[Verdict]]] = {}
    with ControlRuns() as controls:
        for engine in engines:
            verdicts[engine], places = _attack(engine, attacks, names, controls, console, starts)
            if places:
                in_workspaces[engine] = places
    if page is not None:
        text = replace_table(page.read_text("utf-8"), attack_table(verdicts))
        if in_workspaces:
            table = workspace_table(in_workspaces)
            text = replace_table(text, table, WORKSPACES_BEGIN, WORKSPACES_END)
        page.write_text(text, "utf-8")
    if as_json:
        print_json(_probe_report(verdicts, in_workspaces))
    from_workspaces = [
        verdict
        for places in in_workspaces.values()
        for results in places.values()
        for verdict in results
        if os.geteuid() == 0 or verdict.attack.name not in OPEN_IN_WORKSPACES
    ]
    passing = (Result.STOPPED, Result.NOT_APPLICABLE)
    every = [*from_workspaces, *(verdict for results in verdicts.values() for verdict in results)]
    return 0 if all(verdict.result in passing for verdict in every) else BREACHED


def _choose(names: Sequence[str]) -> list[Attack]:
    every = (*ATTACKS, *ONLY_IN_WORKSPACES)
    unknown = sorted(set(names) - {attack.name for attack in every})
    if unknown:
        known = ", ".join(attack.name for attack in every)
        raise InputError(f"no attack is called {unknown[0]!r}; the attacks are: {known}")
    return [attack for attack in ATTACKS if not names or attack.name in names]


def _attack(
    name: str,
    attacks: Sequence[Attack],
    names: Sequence[str],
    controls: ControlRuns,
    console: Console,
    starts: _Starts,
) -> tuple[list[Verdict], dict[str, list[Verdict]]]:
    """Return the verdicts of attacks from the box of an agent, and by place those from others."""
    engine_name, _, runtime = name.partition("/")
    options = EngineOptions(
        runtime=runtime or None,
        forked_starts=starts.forked or engine_name != "bubblewrap",
        progress=console.print,
    )
    chosen = choose_engine(engine_name, options)
    if chosen.engine.isolation.is_none:
        raise InputError(
            f"the {engine_name} engine gives no isolation, so there is nothing to attack"
        )
    results: list[Verdict] = []
    places = {}
    with closing(chosen.engine) as engine:
        if attacks:
            console.print(_announced(attacks, chosen.reason), markup=False)
            with Probe(engine, prepared=starts.prepared) as session:
                results = _results(session, attacks, controls, console)
            if len(results) == len(ATTACKS):
                _keep(engine, results, console)
            _summarise(name, results, console)
        inside = [attack for attack in WORKSPACE_ATTACKS if not names or attack.name in names]
        if problem := inside and engine.workspace_problem:
            console.print(f"no attacks from workspaces: {problem}", markup=False)
        elif inside and isinstance(engine, WorkspaceEngine):
            for place in (Place.WORKSPACE, Place.VERIFIER):
                title = f"{name}, {place.value}"
                console.print(_announced(inside, title), markup=False)
                with Probe(engine, interference=False, place=place) as session:
                    places[place.value] = _results(session, inside, controls, console)
                _summarise(title, places[place.value], console)
    return results, places


def _results(
    session: Probe, attacks: Sequence[Attack], controls: ControlRuns, console: Console
) -> list[Verdict]:
    results = list[Verdict]()
    for attack in attacks:
        verdict = session.attack(attack)
        if verdict.result is not Result.NOT_APPLICABLE:
            verdict = verdict.with_control(controls.run(attack))
        _print(verdict, console, {verdict.detail for verdict in results})
        results.append(verdict)
    return results


def _announced(attacks: Sequence[Attack], boxes: str) -> str:
    plural = "" if len(attacks) == 1 else "s"
    return f"{len(attacks)} attack{plural} from boxes of {boxes}"


def _summarise(title: str, results: Sequence[Verdict], console: Console) -> None:
    summary = ", ".join(f"{count} {result}" for result, count in _counts(results).items() if count)
    console.print(f"{title}: {summary}\n", markup=False)


def _counts(results: Sequence[Verdict]) -> dict[str, int]:
    return {result.value: sum(verdict.result is result for verdict in results) for result in Result}


def _keep(engine: Engine, results: Sequence[Verdict], console: Console) -> None:
    """Store the result of a complete probe for the reports of later runs."""
    counts: JsonObject = dict(_counts(results).items())
    report: JsonObject = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "fumehood": __version__,
        "counts": counts,
        "attacks": [_verdict_json(verdict) for verdict in results],
    }
    try:
        keep_probe(engine.name, engine.check().detail, report)
    except OSError as error:
        console.print(
            f"the result could not be stored for reports: {error}", style="red", markup=False
        )


def _print(verdict: Verdict, console: Console, printed: Container[str]) -> None:
    attack, style = verdict.attack, _STYLES.get(verdict.result, "bold red")
    console.print(f"  {verdict.result.value:<14}", style=style, end="")
    control = f"control {verdict.control.outcome.value}" if verdict.control else ""
    console.print(f" {control:<18}", end="")
    console.print(f" {attack.name:<17} {attack.boundary.value}: {attack.by}", markup=False)
    if verdict.detail and verdict.detail not in printed:
        console.print(f"{'':<16} {one_line(verdict.detail)}", markup=False)
    if verdict.interference is not None:
        console.print(f"{'':<16} {verdict.interference.summary()}", style="dim", markup=False)


def _probe_report(
    verdicts: dict[str, list[Verdict]], in_workspaces: dict[str, dict[str, list[Verdict]]]
) -> dict[str, object]:
    return {
        "system": system_name(),
        "engines": [
            {
                "engine": engine,
                "attacks": [_verdict_json(verdict) for verdict in results],
                "workspaces": {
                    place: [_verdict_json(verdict) for verdict in inside]
                    for place, inside in in_workspaces.get(engine, {}).items()
                },
            }
            for engine, results in verdicts.items()
        ],
    }


def _verdict_json(verdict: Verdict) -> JsonObject:
    attack = verdict.attack
    return {
        "attack": attack.name,
        "file": attack.file,
        "boundary": attack.boundary.value,
        "by": attack.by,
        "result": verdict.result.value,
        "detail": verdict.detail,
        "attempts": verdict.attempts,
        "wall_ms": verdict.wall_ms,
        "interference": verdict.interference.to_json() if verdict.interference else None,
        "control": verdict.control.to_json() if verdict.control else None,
    }
