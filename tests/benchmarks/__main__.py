"""Runs the oracle and the no-op on whole public benchmarks, through the service, and checks the
figures.

``make benchmarks`` runs this. Benchmarks whose data or package are missing are listed and skipped.
A table of all suites comes last. Each line of ``EXPECTED`` is one suite. Arguments are prefixes of
the suites to run; the default is all.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fumehood.benchmarks.marble.judge_prompts import RATINGS
from fumehood.benchmarks.registry import BENCHMARKS, load_suite
from fumehood.cli.output import print_tables
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import Progress, resume_run
from fumehood.report.text_table import TextTable
from fumehood_snapshots.almanac.benchmark import build_almanac
from tests.differential.comparisons import originals_folder
from tests.differential.table import COMPARISONS
from tests.differential.verdicts import has_verdicts, read_summary
from tests.parts import knowledge, webshop
from tests.parts.benchmark_data import data_folder
from tests.parts.benchmark_slices import signed_run
from tests.parts.bfcl_gold import with_all_arguments
from tests.parts.commands import fumehood_json
from tests.parts.folders import short_folder


@dataclass(frozen=True, slots=True)
class Expected:
    """A suite and its expected numbers of solved tasks."""

    suite: str
    """Suite argument; ``{data}`` is replaced by the folder of public data, and ``{originals}`` by
    that of the originals' checkouts; ``{own}`` has records of this project, and ``{endpoint}`` is a
    SPARQL endpoint with them."""
    oracle: int
    noop: int
    one_call_less: int | None = None
    """Number solved by oracles without their last call; None skips this variant."""
    all_arguments: int | None = None
    """Number solved by BFCL's single-turn gold with every argument that it names."""
    judged: str = ""
    """Reply of a rule judge to every question; empty for no judge."""


RATED = json.dumps(dict.fromkeys([name for names in RATINGS.values() for name in names], 4))
TIMEOUT_S = 3600
"""Of one suite. The largest has 5,200 tasks."""
EXPECTED = (
    Expected("dbbench:sqlite:{data}/agentbench-dbbench/dev.jsonl", oracle=60, noop=0),
    Expected("dbbench:mariadb:{data}/agentbench-dbbench/dev.jsonl", oracle=60, noop=0),
    Expected("card-game:std", oracle=20, noop=0),
    Expected("knowledge-graph:{own}/agentbench:{endpoint}", oracle=28, noop=0),
    Expected("webshop:words:{own}/webshop", oracle=24, noop=0),
    Expected("card-game:dev", oracle=12, noop=0),
    Expected("lateral-thinking:{originals}/AgentBench:standard", oracle=50, noop=0),
    Expected("lateral-thinking:{originals}/AgentBench:dev", oracle=20, noop=0),
    Expected("lateral-thinking:host:{originals}/AgentBench:standard", oracle=50, noop=0),
    # On a quiet machine 142: two questions depend on the free memory.
    Expected("os-interaction:{originals}/AgentBench:std", oracle=141, noop=0),
    Expected("os-interaction:{originals}/AgentBench:dev", oracle=25, noop=0),
    Expected("bfcl:multi_turn_base", oracle=200, noop=0, one_call_less=0),
    Expected("bfcl:multi_turn_miss_func", oracle=200, noop=0, one_call_less=0),
    Expected("bfcl:multi_turn_miss_param", oracle=200, noop=0, one_call_less=0),
    Expected("bfcl:multi_turn_long_context", oracle=200, noop=0, one_call_less=0),
    Expected("bfcl:simple_python", oracle=400, noop=0, all_arguments=400),
    Expected("bfcl:simple_java", oracle=97, noop=0),
    Expected("bfcl:simple_javascript", oracle=50, noop=0),
    Expected("bfcl:multiple", oracle=200, noop=0, all_arguments=200),
    Expected("bfcl:parallel", oracle=200, noop=0, all_arguments=200),
    Expected("bfcl:parallel_multiple", oracle=200, noop=0, all_arguments=198),
    Expected("bfcl:live_simple", oracle=256, noop=0, all_arguments=256),
    Expected("bfcl:live_multiple", oracle=1051, noop=0, all_arguments=1050),
    Expected("bfcl:live_parallel", oracle=16, noop=0, all_arguments=16),
    Expected("bfcl:live_parallel_multiple", oracle=24, noop=0, all_arguments=24),
    Expected("bfcl:irrelevance", oracle=240, noop=240),
    Expected("bfcl:live_irrelevance", oracle=884, noop=884),
    Expected("bfcl:live_relevance", oracle=16, noop=0),
    Expected("bfcl:format_sensitivity", oracle=5194, noop=0),
    Expected("bfcl:memory_kv", oracle=155, noop=0),
    Expected("bfcl:memory_rec_sum", oracle=155, noop=0),
    Expected("bfcl:memory_vector", oracle=155, noop=0),
    Expected("bfcl:web_search_base", oracle=100, noop=0),
    Expected("bfcl:web_search_no_snippet", oracle=100, noop=0),
    Expected("agentdojo", oracle=97, noop=5),
    Expected("agentdojo:v1.1.2", oracle=97, noop=4),
    Expected("agentdojo:v1.1.2:injections", oracle=27, noop=0),
    Expected("agentdojo:v1.2.2:injections", oracle=27, noop=0),
    Expected("marble:bargaining:{data}/marble/bargaining_first10.jsonl", oracle=10, noop=0),
    Expected("marble:database:{data}/marble/database_first10.jsonl", oracle=10, noop=0),
    Expected("marble:werewolf", oracle=10, noop=0),
    Expected("marble:research:{originals}/MARBLE", oracle=100, noop=0, judged=RATED),
    Expected("marble:research:{originals}/MARBLE:mode=star", oracle=100, noop=0, judged=RATED),
    Expected("marble:coding:{originals}/MARBLE", oracle=100, noop=0, judged=RATED),
    Expected("marble:coding:{originals}/MARBLE:mode=chain", oracle=100, noop=0, judged=RATED),
    Expected("taubench:airline:{data}/tau-bench", oracle=50, noop=19),
    Expected("taubench:retail:{data}/tau-bench", oracle=115, noop=7),
    Expected("toolsandbox:base:{data}/ToolSandbox", oracle=91, noop=16),
    Expected("tau2:telecom", oracle=114, noop=0),
    Expected("tau2:telecom:{data}/tau2/telecom", oracle=20, noop=0),
    Expected("tau2:telecom_user", oracle=114, noop=0),
    Expected("tau2:airline", oracle=50, noop=19),
    Expected("tau2:airline:{data}/tau2/airline", oracle=50, noop=23),
    Expected("tau2:retail", oracle=114, noop=7),
    # A judge is needed for 40 of them, 5 of which have a database that doing nothing leaves right.
    Expected("tau2:retail:{data}/tau2/retail", oracle=74, noop=6),
    Expected("tau2:banking", oracle=97, noop=0),
    # A judge is needed for one of them.
    Expected("tau2:banking:{data}/tau2/banking_knowledge", oracle=96, noop=0),
    Expected("tau2:mock", oracle=8, noop=1),
    Expected("tau2:mock:{data}/tau2/mock", oracle=8, noop=1),
    Expected("threatbench:memory_poison", oracle=10, noop=0),
    Expected("threatbench:autonomy_hijack", oracle=6, noop=0, one_call_less=0),
    Expected("threatbench:data_exfil", oracle=8, noop=0, one_call_less=0),
)


def main() -> int:
    """Run every benchmark and return the number of suites with wrong figures."""
    with short_folder() as own, knowledge.endpoint() as url:
        knowledge.write_checkout(Path(own, "agentbench"))
        webshop.write_checkout(Path(own, "webshop"))
        folders = {"data": data_folder(), "originals": originals_folder(), "own": own}
        return _run({**folders, "endpoint": url})


def _run(places: Mapping[str, object]) -> int:
    wrong = 0
    rows: list[tuple[str, ...]] = []
    prefixes = sys.argv[1:]
    for expected in EXPECTED:
        if prefixes and not expected.suite.startswith(tuple(prefixes)):
            continue
        suite = expected.suite.format(**places)
        try:
            loaded = load_suite(suite)
        except InputError as error:
            print(f"skipped   {expected.suite}: {error}")
            rows.append(_row(expected, "", "-", "skipped", "skipped"))
            continue
        tasks = len(loaded.cases)
        solved = _play(suite, expected.judged)
        is_expected = solved == {"oracle": expected.oracle, "noop": expected.noop}
        variants = _play_variants(expected, suite)
        is_expected = is_expected and all(count == wanted for count, wanted in variants.values())
        wrong += not is_expected
        verdict = (
            "holds" if is_expected else f"WRONG, must be {expected.oracle} and {expected.noop}"
        )
        line = f"oracle {solved['oracle']}/{tasks}, no-op {solved['noop']}/{tasks}"
        line += "".join(f", {name} {count}/{tasks}" for name, (count, _) in variants.items())
        print(f"{verdict:<9} {suite}: {line}", flush=True)
        licence = loaded.about.licence if loaded.about else ""
        counts = (str(tasks), str(solved["oracle"]), str(solved["noop"]))
        rows.append(_row(expected, licence, *counts))
    header = ("benchmark", "domain", "tasks", "oracle", "no-op", "differential")
    print_tables(TextTable("Benchmarks", (*header, "licence", "data"), rows, 2, trailing_text=2))
    return wrong


def _row(expected: Expected, licence: str, *counts: str) -> tuple[str, ...]:
    benchmark, _, domain = re.sub(r"\{\w+\}/", "", expected.suite).partition(":")
    source = BENCHMARKS.load(benchmark)().source
    return (benchmark, domain, *counts, agreement(benchmark), licence, source)


def agreement(benchmark: str) -> str:
    """Return how many trajectories get the verdict of the original; ``-`` without a comparison."""
    compared = next((each for each in COMPARISONS if each.name == benchmark), None)
    if compared is None or not has_verdicts(compared):
        return "-"
    summary = read_summary(compared)
    return f"{summary['agreed']}/{summary['compared']}"


def _play(suite: str, judged: str) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        engine = "docker" if suite.startswith("os-interaction") else "inline"
        words = ["run", suite, "-a", "oracle", "-a", "noop", "--engine", engine, "--json"]
        if suite.startswith("bfcl:web_search"):
            build_almanac(Path(folder, "almanac"))
            words += ["--snapshot", str(Path(folder, "almanac"))]
        if judged:
            config = Path(folder, "judge.yaml")
            rules = [{"answer": judged}]
            config.write_text(json.dumps({"judge": "rules", "judging": {"rules": rules}}))
            words += ["--config", str(config)]
        summary = fumehood_json(*words, "--out", str(Path(folder, "run")), timeout_s=TIMEOUT_S)
    return {agent["agent"]: agent["successes"] for agent in summary["agents"]}


def _play_variants(expected: Expected, suite: str) -> dict[str, tuple[int, int]]:
    """Return, for each variant of the oracle, the actual and the expected number of solved
    tasks."""
    variants = {
        "oracle without its last call": (expected.one_call_less, _one_call_less),
        "gold with all arguments": (expected.all_arguments, with_all_arguments),
    }
    return {
        name: (_play_varied(suite, varied), wanted)
        for name, (wanted, varied) in variants.items()
        if wanted is not None
    }


def _play_varied(suite: str, varied: Callable[[Suite], Suite]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        config = run_config({"suite": suite, "agents": ["oracle"], "engine": "inline"})
        manifest: JsonObject = {
            "run": "0",
            "suite": suite,
            "config": config.model_dump(mode="json"),
        }
        path = Path(folder, "run")
        signed_run(path, manifest, varied(load_suite(suite)))
        run = resume_run(path, Progress(lambda *_: None, lambda _: None, lambda _: None))
        return sum(row.score.success is True for row in run.rows())


def _one_call_less(suite: Suite) -> Suite:
    cases = []
    for case in suite.cases:
        moves = [*(case.gold.oracle or ())]
        del moves[max(at for at, move in enumerate(moves) if "tool_name" in move)]
        cases.append(replace(case, gold=replace(case.gold, oracle=tuple(moves))))
    return replace(suite, cases=tuple(cases))


if __name__ == "__main__":
    sys.exit(main())
