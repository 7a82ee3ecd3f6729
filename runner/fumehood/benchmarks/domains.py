"""Maps the domains of *A Unified Framework* (arXiv 2605.27898) to suites.

The paper counts 24 domains in 7 benchmarks. Its text does not list them; these are the ones that
its published configurations name, with BFCL's categories in the five groups of BFCL's leaderboard.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec

from fumehood.core.json_values import JsonObject


class Status(StrEnum):
    """Whether tasks of a domain can be run."""

    RUNS = "runs"
    NEEDS_PACKAGE = "needs package"
    NEEDS_DATA = "needs your data"
    ABSENT = "does not run"


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain of a benchmark."""

    benchmark: str
    """Name in the paper."""
    name: str
    suite: str = ""
    """Suite argument, with the parts in capitals that the user supplies; empty if there is none."""
    package: str = ""
    """Module with the data; empty if no package contains them."""
    reason: str = ""
    """What the user must supply, or why the domain does not run."""

    @property
    def status(self) -> Status:
        """Whether the domain can be run with the installed packages."""
        if not self.suite:
            return Status.ABSENT
        if self.package:
            return Status.RUNS if find_spec(self.package) else Status.NEEDS_PACKAGE
        return Status.NEEDS_DATA if self.reason else Status.RUNS

    def to_json(self) -> JsonObject:
        """Return the row of the table."""
        return {
            "benchmark": self.benchmark,
            "domain": self.name,
            "suite": self.suite or None,
            "status": self.status.value,
            "reason": self.shown_reason,
        }

    @property
    def shown_reason(self) -> str:
        """The reason for the status; empty if the domain runs and nothing is missing."""
        if self.status is Status.NEEDS_PACKAGE:
            suite = self.suite.partition(":")[0]
            return f"install {self.package}: {suite} on the documentation page 'Benchmarks'"
        return self.reason


_AGENTBENCH, _MARBLE = "AgentBench", "MultiAgentBench"
_BFCL, _BFCL_PACKAGE = "BFCL v4", "bfcl_eval"
_CHECKOUT = "a checkout of {}"
_AGENTBENCH_CHECKOUT = _CHECKOUT.format("THUDM/AgentBench")
DOMAINS = (
    Domain(_AGENTBENCH, "dbbench", "dbbench:CHECKOUT", reason=_AGENTBENCH_CHECKOUT),
    Domain(
        _AGENTBENCH,
        "os_interaction",
        "os-interaction:CHECKOUT",
        reason=f"{_AGENTBENCH_CHECKOUT} and docker",
    ),
    Domain(
        _AGENTBENCH,
        "webshop",
        "webshop:CHECKOUT",
        reason="a checkout of princeton-nlp/WebShop with its product files; spaCy with a model",
    ),
    Domain(
        _AGENTBENCH,
        "knowledgegraph",
        "knowledge-graph:CHECKOUT:ENDPOINT",
        reason=f"{_AGENTBENCH_CHECKOUT} and a SPARQL endpoint with Freebase",
    ),
    Domain(
        _AGENTBENCH,
        "lateralthinkingpuzzle",
        "lateral-thinking:host:CHECKOUT",
        reason=f"{_AGENTBENCH_CHECKOUT} and a model at the seat host",
    ),
    Domain(_AGENTBENCH, "card_game", "card-game"),
    Domain(_AGENTBENCH, "test_website", reason="its pages are not published"),
    Domain(_MARBLE, "bargaining", "marble:bargaining:FILE", reason="the file of records"),
    Domain(_MARBLE, "werewolf", "marble:werewolf"),
    *(
        Domain(_MARBLE, name, f"marble:{name}:CHECKOUT", reason="a checkout and a judge")
        for name in ("research", "coding")
    ),
    Domain(
        _MARBLE, "database", "marble:database:FILE", reason="PostgreSQL and the file of records"
    ),
    *(
        Domain("τ-bench", name, f"taubench:{name}:CHECKOUT", reason=_CHECKOUT.format(repository))
        for repository in ("sierra-research/tau-bench",)
        for name in ("airline", "retail")
    ),
    *(
        Domain("τ²-bench", name, f"tau2:{name}", "inspect_evals")
        for name in ("airline", "retail", "telecom")
    ),
    Domain(_BFCL, "single turn", "bfcl:simple_python", _BFCL_PACKAGE),
    Domain(_BFCL, "live", "bfcl:live_simple", _BFCL_PACKAGE),
    Domain(_BFCL, "multi-turn", "bfcl:multi_turn_base", _BFCL_PACKAGE),
    Domain(_BFCL, "memory", "bfcl:memory_kv", _BFCL_PACKAGE),
    Domain(
        _BFCL, "web_search", "bfcl:web_search_base:SNAPSHOT", reason="a snapshot or a live search"
    ),
    Domain(
        "Agent-SafetyBench",
        "Agent-SafetyBench",
        "safetybench:CHECKOUT",
        reason="a checkout and a judge",
    ),
    Domain("BrowseComp", "BrowseComp", "browsecomp:FILE", reason="the published file and a judge"),
)
"""In the order of the benchmarks in the paper."""
