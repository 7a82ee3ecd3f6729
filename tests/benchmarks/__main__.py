"""Public benchmarks whole: oracles and an agent that does nothing, through the service, with figures.

``make benchmarks`` runs this; what has no data or package on this machine is named and left out. A benchmark
is one line of ``PROOFS``. Arguments are beginnings of the suites to prove; without any, all are.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import Progress, resume_run
from fumehood.records.run_folder import RunFolder
from tests.parts.benchmark_data import data_folder
from tests.parts.bfcl_gold import written_out
from tests.parts.commands import fumehood_json


@dataclass(frozen=True, slots=True)
class Proof:
    """A suite, and how many of its tasks must come out right."""

    suite: str
    """Suite argument; ``{data}`` stands for the folder of public data."""
    oracle: int
    noop: int
    one_call_less: int | None = None
    """Of oracles that leave their last call out; None where nobody wants to know."""
    written_out: int | None = None
    """Of BFCL's single-turn gold with every argument that it names, of which some should not be there."""


PROOFS = (
    Proof("dbbench:{data}/agentbench-dbbench/dev.jsonl", oracle=60, noop=0),
    Proof("dbbench:mariadb:{data}/agentbench-dbbench/dev.jsonl", oracle=60, noop=0),
    Proof("bfcl:multi_turn_base", oracle=200, noop=0, one_call_less=0),
    Proof("bfcl:multi_turn_miss_func", oracle=200, noop=0, one_call_less=0),
    Proof("bfcl:multi_turn_miss_param", oracle=200, noop=0, one_call_less=0),
    Proof("bfcl:multi_turn_long_context", oracle=200, noop=0, one_call_less=0),
    Proof("bfcl:simple_python", oracle=400, noop=0, written_out=400),
    Proof("bfcl:multiple", oracle=200, noop=0, written_out=200),
    Proof("bfcl:parallel", oracle=200, noop=0, written_out=200),
    Proof("bfcl:parallel_multiple", oracle=200, noop=0, written_out=198),
    Proof("bfcl:live_simple", oracle=256, noop=0, written_out=256),
    Proof("bfcl:live_multiple", oracle=1051, noop=0, written_out=1050),
    Proof("bfcl:live_parallel", oracle=16, noop=0, written_out=16),
    Proof("bfcl:live_parallel_multiple", oracle=24, noop=0, written_out=24),
    Proof("bfcl:irrelevance", oracle=240, noop=240),
    Proof("bfcl:live_irrelevance", oracle=884, noop=884),
    Proof("bfcl:live_relevance", oracle=16, noop=0),
    Proof("bfcl:memory_kv", oracle=155, noop=0),
    Proof("bfcl:memory_rec_sum", oracle=155, noop=0),
    Proof("agentdojo", oracle=97, noop=5),
    Proof("agentdojo:v1.1.2", oracle=97, noop=4),
    Proof("agentdojo:v1.1.2:injections", oracle=27, noop=0),
    Proof("agentdojo:v1.2.2:injections", oracle=27, noop=0),
    Proof("marble:bargaining:{data}/marble/bargaining_first10.jsonl", oracle=10, noop=0),
    Proof("marble:werewolf", oracle=10, noop=0),
    Proof("taubench:airline:{data}/tau-bench", oracle=50, noop=19),
    Proof("taubench:retail:{data}/tau-bench", oracle=115, noop=7),
    Proof("tau2:telecom", oracle=114, noop=0),
    Proof("tau2:telecom:{data}/tau2/telecom", oracle=20, noop=0),
    Proof("tau2:telecom_user", oracle=114, noop=0),
    Proof("tau2:airline", oracle=50, noop=19),
    Proof("tau2:airline:{data}/tau2/airline", oracle=50, noop=23),
    Proof("tau2:retail", oracle=114, noop=7),
    # A judge is needed for 40 of them, 5 of which have a database that doing nothing leaves right.
    Proof("tau2:retail:{data}/tau2/retail", oracle=74, noop=6),
    Proof("tau2:banking", oracle=97, noop=0),
    Proof("tau2:banking:{data}/tau2/banking_knowledge", oracle=97, noop=0),
    Proof("tau2:mock", oracle=8, noop=1),
    Proof("tau2:mock:{data}/tau2/mock", oracle=8, noop=1),
)


def main() -> int:
    """Prove every benchmark and return how many did not come out as they must."""
    wrong = 0
    wanted = sys.argv[1:]
    for proof in PROOFS:
        if wanted and not proof.suite.startswith(tuple(wanted)):
            continue
        suite = proof.suite.format(data=data_folder())
        try:
            tasks = len(load_suite(suite).cases)
        except InputError as error:
            print(f"left out  {proof.suite}: {error}")
            continue
        solved = _play(suite)
        as_wanted = solved == {"oracle": proof.oracle, "noop": proof.noop}
        variants = _play_variants(proof, suite)
        as_wanted = as_wanted and all(count == wanted for count, wanted in variants.values())
        wrong += not as_wanted
        verdict = "holds" if as_wanted else f"WRONG, must be {proof.oracle} and {proof.noop}"
        told = f"oracle {solved['oracle']}/{tasks}, no-op {solved['noop']}/{tasks}"
        told += "".join(f", {name} {count}/{tasks}" for name, (count, _) in variants.items())
        print(f"{verdict:<9} {suite}: {told}", flush=True)
    return wrong


def _play(suite: str) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        words = ("run", suite, "-a", "oracle", "-a", "noop", "--engine", "process", "--json")
        told = fumehood_json(*words, "--out", str(Path(folder, "run")))
    return {agent["agent"]: agent["successes"] for agent in told["agents"]}


def _play_variants(proof: Proof, suite: str) -> dict[str, tuple[int, int]]:
    """Return how many tasks the oracles' variants solve, each beside how many they must."""
    variants = {
        "oracle less its last call": (proof.one_call_less, _one_call_less),
        "gold written out": (proof.written_out, written_out),
    }
    return {
        name: (_play_varied(suite, varied), wanted)
        for name, (wanted, varied) in variants.items()
        if wanted is not None
    }


def _play_varied(suite: str, varied: Callable[[Suite], Suite]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        config = run_config({"suite": suite, "agents": ["oracle"], "engine": "process"})
        manifest: JsonObject = {
            "run": "0",
            "suite": suite,
            "config": config.model_dump(mode="json"),
        }
        run = RunFolder.create(Path(folder, "run"), manifest, varied(load_suite(suite)))
        resume_run(run, Progress(lambda *_: None, lambda _: None, lambda _: None))
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
