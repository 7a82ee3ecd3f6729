"""The agents that come with this package. Each has one file or folder, and one entry here."""

from __future__ import annotations

from collections.abc import Mapping

BUILTIN: Mapping[str, str] = {
    "careful": "fumehood_agent.builtin.careful:Careful",
    "heuristic": "fumehood_agent.builtin.heuristic:Heuristic",
    "instruction_parser": "fumehood_agent.builtin.instruction_parser:InstructionParser",
    "instruction_parser_no_recovery": (
        "fumehood_agent.builtin.instruction_parser_no_recovery:InstructionParserNoRecovery"
    ),
    "noop": "fumehood_agent.builtin.noop:Noop",
    "oracle": "fumehood_agent.builtin.oracle:Oracle",
    "over_cautious": "fumehood_agent.builtin.over_cautious:OverCautious",
    "policy_aware": "fumehood_agent.builtin.policy_aware:PolicyAware",
    "policy_layer": "fumehood_agent.builtin.policy_layer:PolicyLayer",
    "reckless": "fumehood_agent.builtin.reckless:Reckless",
    "searcher": "fumehood_agent.builtin.searcher:Searcher",
    "script": "fumehood_agent.builtin.script:Script",
    "schema_repair": "fumehood_agent.builtin.schema_repair:SchemaRepair",
}
"""Name → ``"module:Class"``, imported on demand."""

MANNERS = ("careful", "over_cautious", "reckless")
"""Agents that carry out the procedure of a task."""
REPLAYING = ("oracle", "script", *MANNERS)
"""Agents whose argument comes with the task: a list of calls, or a procedure."""
