"""All comparisons with originals."""

from __future__ import annotations

from typing import Any

from fumehood.benchmarks.bfcl.format_tasks import CATEGORY
from fumehood.benchmarks.bfcl.source_values import LANGUAGES
from fumehood.benchmarks.bfcl.tasks import MEMORY, MULTI_TURN, SINGLE_TURN, VECTOR_CATEGORY
from fumehood.benchmarks.bfcl.web_tasks import CATEGORIES as WEB_SEARCH
from fumehood.core.score import Score
from tests.differential.comparisons import Comparison, OfSuite, Reason, trajectory_of
from tests.differential.marble import JudgeReplies, RootCauses
from tests.differential.originals.questions import digits
from tests.differential.sources import (
    Attacked,
    CitedAnswers,
    EnvironmentCalls,
    OtherAnswers,
    Recorded,
    SourceTexts,
    StatedConfidences,
    ToolResults,
    WerewolfGames,
)


def _asks_a_question(case: Any) -> bool:
    return any(item["op"] != "bfcl_chats" for item in case.gold.criteria)


def _dojo_verdict(score: Score) -> str:
    names = ("utility", "safety")
    return digits(*(score.checks[name] for name in names if name in score.checks))


def _bfcl(category: str, count: int = 100) -> OfSuite:
    suite, details = f"bfcl:{category}", {"category": category}
    if category in LANGUAGES:
        return SourceTexts(suite, 120, details)
    if category in WEB_SEARCH:
        return OtherAnswers(suite, 120, details)
    if category == VECTOR_CATEGORY:
        return ToolResults(suite, 120, details)
    return OfSuite(suite, count, details, keep=_asks_a_question)


def _dojo(version: str, count: int, rest: str = "", attack: str = "") -> OfSuite:
    name = ":".join(part for part in ("agentdojo", version, rest) if part)
    return OfSuite(name, count, {"version": version, "attack": attack}, _dojo_verdict)


def _tau2(
    suite: str,
    domain: str,
    count: int,
    file: str = "tasks.json",
    solo: str = "no",
    checkout: bool = False,
) -> OfSuite:
    root = "{originals}/tau2-bench/data/tau2/domains" if checkout else "{data}/tau2"
    folder = f"{root}/{domain}"
    details = {"domain": domain, "file": f"{folder}/{file}", "solo": solo}
    return OfSuite(f"tau2:{suite}:{folder}", count, details, elsewhere=checkout)


BFCL = Comparison(
    name="bfcl",
    original="bfcl-eval 2026.3.23 (PyPI)",
    script="bfcl.py",
    environment="bfcl",
    sources=(
        *map(_bfcl, (*MULTI_TURN, *SINGLE_TURN, CATEGORY)),
        *(_bfcl(name, 40) for name in MEMORY),
        *map(_bfcl, WEB_SEARCH),
    ),
)
AGENTDOJO = Comparison(
    name="agentdojo",
    original="agentdojo 0.1.35 (PyPI)",
    script="agentdojo_pipeline.py",
    environment="agentdojo",
    sources=(
        _dojo("v1.2.2", 310),
        _dojo("v1.1.2", 240),
        _dojo("v1", 150),
        _dojo("v1.1.2", 110, "injections"),
        _dojo("v1.2.2", 130, "attack=important_instructions", "important_instructions"),
        _dojo("v1.1.2", 70, "attack=direct", "direct"),
    ),
)
TOOLMISUSE = Comparison(
    name="toolmisuse",
    original="the recorded verdicts of ToolMisuseBench's simulator, version 0.2",
    script="",
    environment="",
    sources=(
        Recorded("toolmisusebench/scripted.jsonl", 1535),
        Recorded("toolmisusebench/agents.jsonl", 200),
    ),
)
TAUBENCH = Comparison(
    name="taubench",
    original="sierra-research/tau-bench 59a200c",
    script="taubench.py",
    environment="taubench",
    needs=("tau-bench",),
    sources=(
        OfSuite("taubench:airline:{originals}/tau-bench", 500, elsewhere=True),
        OfSuite("taubench:retail:{originals}/tau-bench", 550, elsewhere=True),
    ),
)
TAU2 = Comparison(
    name="tau2",
    original="sierra-research/tau2-bench a2c0247",
    script="tau2.py",
    environment="tau2",
    needs=("tau2-bench",),
    sources=(
        _tau2("retail", "retail", 60),
        _tau2("telecom", "telecom", 450, file="tasks_small.json", solo="yes"),
        _tau2("telecom_user", "telecom", 170, file="tasks_small.json", checkout=True),
        _tau2("mock", "mock", 400),
        _tau2("airline", "airline", 100),
        _tau2("banking", "banking_knowledge", 150, file="tasks", checkout=True),
    ),
)
DBBENCH = Comparison(
    name="dbbench",
    original="THUDM/AgentBench 578c5e9, on MariaDB with the modes of MySQL 8",
    script="dbbench.py",
    environment="dbbench",
    needs=("AgentBench",),
    sources=(
        OfSuite(
            "dbbench:mariadb:{data}/agentbench-dbbench/dev.jsonl",
            1000,
            {"file": "{data}/agentbench-dbbench/dev.jsonl"},
        ),
    ),
)
SAFETYBENCH = Comparison(
    name="safetybench",
    original="the environments of Agent-SafetyBench",
    script="safetybench.py",
    environment="safetybench",
    needs=("Agent-SafetyBench",),
    sources=(EnvironmentCalls("safetybench", 1000, "Agent-SafetyBench"),),
)
MARBLE = Comparison(
    name="marble",
    original="werewolf_env.py, evaluator.py and batch_eval.py of ulab-uiuc/MARBLE 9d6efe6",
    script="marble.py",
    environment="marble",
    needs=("MARBLE",),
    sources=(
        WerewolfGames("marble:werewolf, ends of games", 2000),
        JudgeReplies("marble, replies of the judge", 2000),
        RootCauses("marble:database, root causes", 1000),
    ),
)
BROWSECOMP = Comparison(
    name="browsecomp",
    original="the metrics of texttron/BrowseComp-Plus 97c637c",
    script="browsecomp.py",
    environment="browsecomp",
    needs=("BrowseComp-Plus",),
    sources=(
        CitedAnswers("browsecomp-plus, citations and a judge's reply", 2000),
        StatedConfidences("browsecomp-plus, calibration error", 500),
    ),
    reasons=(
        Reason(
            "a quoted grade",
            "An answer that contains a grade may be quoted before the judge's own grade. "
            "`scripts_evaluation/evaluate_run.py`, lines 115 to 126, takes the first grade of the "
            "reply, so that an agent can grade itself; here the last one counts.",
            "Fumehood",
            lambda item, here, there: "a graded answer" in trajectory_of(item).kinds,
        ),
    ),
)
THREATBENCH = Comparison(
    name="threatbench",
    original="the scorer of AgentThreatBench in inspect-evals 0.26.0 (PyPI)",
    script="threatbench.py",
    environment="threatbench",
    sources=(Attacked("threatbench", 1200, verdict=_dojo_verdict),),
)


def _similarity(score: Score) -> str:
    return f"{digits(score.success)}:{score.metrics['similarity']:.6f}"


TOOLSANDBOX = Comparison(
    name="toolsandbox",
    original="apple/ToolSandbox 165848b",
    script="toolsandbox.py",
    environment="toolsandbox",
    needs=("ToolSandbox",),
    sources=(
        OfSuite("toolsandbox:{originals}/ToolSandbox", 1000, verdict=_similarity, elsewhere=True),
    ),
)
COMPARISONS = (
    BFCL,
    AGENTDOJO,
    TOOLMISUSE,
    TAUBENCH,
    TAU2,
    DBBENCH,
    SAFETYBENCH,
    MARBLE,
    BROWSECOMP,
    THREATBENCH,
    TOOLSANDBOX,
)
