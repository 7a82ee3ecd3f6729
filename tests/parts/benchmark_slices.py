"""Builds one suite from a few tasks of every benchmark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.generator import GENERATORS
from fumehood.benchmarks.threatbench.tasks import MODELS
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Case, Suite
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import Progress, resume_run
from fumehood.orchestrator.setup import RunSetup
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood_snapshots.almanac.benchmark import build_almanac
from tests.parts import injecagent, lateral, toolsandbox, webshop
from tests.parts.benchmark_data import SAMPLES
from tests.parts.mariadb import has_mariadb
from tests.parts.reading import unverified
from tests.parts.taubench import write_checkout

_SAMPLE = (
    Path(__file__).parents[2] / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
)
_BFCL = ("bfcl_eval", "mpmath", "overrides", "rank_bm25")

SLICES: Mapping[str, tuple[str, ...]] = {
    "agentdojo": ("agentdojo", "agentdojo:v1.1.2:injections", "agentdojo:banking:attack=direct"),
    "almanac": ("almanac:{made}/almanac",),
    "bfcl": (
        "bfcl:multi_turn_base",
        "bfcl:multi_turn_miss_func",
        "bfcl:parallel",
        "bfcl:live_irrelevance",
        "bfcl:memory_kv",
        "bfcl:memory_rec_sum",
    ),
    "card-game": ("card-game:dev", "card-game:dev:seat"),
    "dbbench": (
        f"dbbench:sqlite:{SAMPLES / 'dbbench.jsonl'}",
        "dbbench:mariadb:{made}/on_mariadb.jsonl",
    ),
    "injecagent": ("injecagent:{made}/injecagent:dh", "injecagent:{made}/injecagent:ds"),
    "lateral-thinking": (
        "lateral-thinking:{made}/agentbench",
        "lateral-thinking:host:{made}/agentbench",
    ),
    "marble": ("marble:werewolf:{made}/roles.yaml",),
    "native": (f"native:{_SAMPLE}",),
    "safety": ("safety:small",),
    "tau2": ("tau2:telecom", "tau2:airline", "tau2:mock"),
    "taubench": ("taubench:retail:{made}/taubench",),
    "threatbench": tuple(f"threatbench:{kind}" for kind in MODELS),
    "toolmisuse": ("toolmisuse:{made}/toolmisuse:dev",),
    "toolsandbox": ("toolsandbox:base:{made}/toolsandbox",),
    "webshop": ("webshop:words:{made}/webshop",),
}
"""Benchmark → arguments of its kinds of tasks; ``{made}`` is the output folder of ``make``."""
WITHOUT: Mapping[str, str] = {
    "browsecomp": "has no oracle",
    "browsecomp-plus": "has no oracle",
    "harbor": "needs an engine with workspaces; tests/containers/test_workspaces.py plays it",
    "knowledge-graph": "needs a running SPARQL endpoint",
    "os-interaction": "needs an engine with workspaces; tests/containers/test_os_interaction.py",
    "python-docs": "uses the code of almanac, with a package that is often missing",
    "safetybench": "has no oracle",
    "sample": "is a file of native records",
}
"""Benchmarks that are left out → reason."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "agentdojo": ("agentdojo", "deepdiff"),
    "bfcl": _BFCL,
    "tau2": ("inspect_evals",),
    "threatbench": ("inspect_evals",),
}


def slices(
    made: Path, tasks: int, names: Sequence[str] = tuple(SLICES), *, with_calls: bool = False
) -> Iterator[tuple[str, Case]]:
    """Yield tasks with an oracle of every kind, with their suite argument.

    Args:
        made: a folder in which ``make`` was called.
        tasks: number of tasks of each kind.
        names: benchmarks to take.
        with_calls: leave out tasks that are solved without any call.

    Raises:
        AssertionError: ``CI`` is set and a package is missing. Without ``CI`` the benchmark is left
            out.
    """
    for name in names:
        missing = [package for package in NEEDS.get(name, ()) if find_spec(package) is None]
        assert not (missing and os.environ.get("CI")), (
            f"{missing} not installed: scripts/setup-benchmarks"
        )
        for argument in () if missing else SLICES[name]:
            if argument.startswith("dbbench:mariadb:") and not has_mariadb():
                continue
            cases = load_suite(argument.format(made=made)).cases
            played = [case for case in cases if _can_be_played(case, with_calls)]
            for case in played[:: max(1, len(played) // tasks)][:tasks]:
                yield argument, case


def _can_be_played(case: Case, with_calls: bool) -> bool:
    moves = case.gold.oracle or ()
    calls = any("tool_name" in move for move in moves)
    return bool(moves) and case.gold.solvable is not False and (calls or not with_calls)


def make(made: Path) -> None:
    """Build the suites that the arguments refer to."""
    build_almanac(made / "almanac")
    write_checkout(made / "taubench")
    injecagent.write_checkout(made / "injecagent")
    lateral.write_checkout(made / "agentbench")
    toolsandbox.write_checkout(made / "toolsandbox")
    webshop.write_checkout(made / "webshop")
    (made / "roles.yaml").write_text("roles: [wolf, villager, villager]\n", encoding="utf-8")
    shutil.copy(SAMPLES / "dbbench.jsonl", made / "on_mariadb.jsonl")
    sizes = {"train": 0, "dev": 8, "test_public": 0}
    GENERATORS.load("toolmisuse")("small", 1, made / "toolmisuse", splits=sizes)


def mixed(made: Path, cases: tuple[Case, ...]) -> Suite:
    """Return the cases as one suite."""
    return Suite("mixed", cases, snapshot=made / "almanac")


def play(out: Path, suite: Suite, agents: tuple[str, ...], **settings: object) -> list[EpisodeRow]:
    """Run agents on a suite through real services, inline by default, and return the rows."""
    config = run_config({"suite": suite.name, "agents": agents, "engine": "inline", **settings})
    if suite.snapshot is not None:
        config = config.model_copy(update={"snapshot": suite.snapshot})
    manifest: JsonObject = {
        "run": "0",
        "suite": suite.name,
        "config": config.model_dump(mode="json"),
    }
    signed_run(out, manifest, suite)
    return resume_run(out, SILENT).rows()


def signed_run(out: Path, manifest: JsonObject, suite: Suite) -> None:
    """Create a run folder without rows, signed with the plan of its configuration."""
    draft = RunFolder.create(out.with_name(f"{out.name}-draft"), manifest, suite)
    RunFolder.create(out, manifest, suite, RunSetup.of_run(unverified(draft.path)).signing())


SILENT = Progress(lambda *_: None, lambda _: None, lambda _: None)
