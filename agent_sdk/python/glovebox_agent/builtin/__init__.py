"""The agents that come with this package. One file or folder each, one line here each."""

from __future__ import annotations

from collections.abc import Mapping

BUILTIN: Mapping[str, str] = {
    "heuristic": "glovebox_agent.builtin.heuristic:Heuristic",
    "instruction_parser": "glovebox_agent.builtin.instruction_parser:InstructionParser",
    "instruction_parser_no_recovery": (
        "glovebox_agent.builtin.instruction_parser_no_recovery:InstructionParserNoRecovery"
    ),
    "noop": "glovebox_agent.builtin.noop:Noop",
    "oracle": "glovebox_agent.builtin.oracle:Oracle",
    "policy_aware": "glovebox_agent.builtin.policy_aware:PolicyAware",
    "searcher": "glovebox_agent.builtin.searcher:Searcher",
    "script": "glovebox_agent.builtin.script:Script",
    "schema_repair": "glovebox_agent.builtin.schema_repair:SchemaRepair",
}
"""Name → ``"module:Class"``, imported when it is asked for."""
