"""Seven tools that build sets of entities of a knowledge graph behind a SPARQL endpoint.

Source of the tools: ``src/server/tasks/knowledgegraph`` of AgentBench 578c5e9.
"""

from __future__ import annotations

import re
from typing import Any

from fumehood.benchmarks.knowledge.graph import (
    Endpoint,
    Program,
    QueryFailed,
    checked,
    ontology,
    select,
    select_relations,
)
from fumehood.core.conversation import Handover
from fumehood.core.episode_spec import ONLY_SEAT, EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import Failure, ToolCall, ToolResult, ToolSpec, Value
from fumehood.third_party.outside import JsonOutside, Outside
from fumehood.third_party.process import are_routed, checker
from fumehood.worlds.schema import NO_SUCH_TOOL, reject, tool

ROUNDS = 15
"""Calls and texts without an answer together, in the original's configuration."""
NO_ANSWER = "This text is neither a call nor an answer. Submit: Final Answer: #number"
_ENTITY = re.compile(r"[mf]\.[A-Za-z0-9_]+")
_ANSWER = re.compile(r"(?:Find|Final) Answer: #(\d+)")


def _names(spec: ToolSpec) -> tuple[str, ...]:
    properties = spec.parameters["properties"]
    return tuple(properties) if isinstance(properties, dict) else ()


_TOOLS = (
    tool(
        "get_relations",
        "List the relations of an entity or of the members of a variable, such as #0.",
        variable="string",
    ),
    tool(
        "get_neighbors",
        "Make a variable with all entities that a relation of get_relations leads to.",
        variable="string",
        relation="string",
    ),
    tool(
        "intersection",
        "Make a variable with the members that two variables of the same type share.",
        variable1="string",
        variable2="string",
    ),
    tool(
        "get_attributes",
        "List the numeric attributes of the members of a variable.",
        variable="string",
    ),
    tool(
        "argmax",
        "Make a variable with the members that have the largest value of an attribute.",
        variable="string",
        attribute="string",
    ),
    tool(
        "argmin",
        "Make a variable with the members that have the smallest value of an attribute.",
        variable="string",
        attribute="string",
    ),
    tool("count", "Make a variable with the number of members of a variable.", variable="string"),
)
PARAMETERS = {spec.name: _names(spec) for spec in _TOOLS}
"""Tool → names of its arguments, in order."""
READS = ("folder",)
"""Parts of the state that name what an episode reads."""
_QUESTION_BYTES_MAX = 1 << 20


class _Invalid(Exception):
    """A call that the tools reject."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.failure: Failure = reject(code, message)


def open_outside(spec: EpisodeSpec) -> Outside:
    """Open the endpoint of an episode."""
    endpoint = Endpoint(str(spec.initial_state.get("endpoint")))

    def answer(question: Any) -> JsonObject:
        try:
            return {"values": [*endpoint.values(checked(str(question["query"])))]}
        except QueryFailed as failed:
            return {"failed": str(failed)}

    return JsonOutside(answer, question_bytes_max=_QUESTION_BYTES_MAX)


class RemoteEndpoint:
    """Has the method of :class:`Endpoint`, in the process of an episode."""

    def values(self, query: str) -> list[str]:
        """Return the sorted values of the query's one variable."""
        answer: Any = checker("endpoint").ask({"query": query})
        if "failed" in answer:
            raise QueryFailed(answer["failed"])
        values: list[str] = answer["values"]
        return values


class KnowledgeGraph:
    """A graph; it is its own turn policy, because the answer is computed when it is submitted.

    State: ``folder`` of a checkout, ``endpoint``, and ``entities`` (name → ID). Later also
    ``variables``, ``rounds`` and ``answer``.
    """

    toolset_id = "knowledge_graph_v1"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: the checkout or the address of the endpoint cannot be used.
        """
        match state:
            case {"folder": str(folder), "endpoint": str(url), "entities": dict(entities)}:
                self._relations, self._attributes, self._ranges = ontology(folder)
                self._endpoint = RemoteEndpoint() if are_routed() else Endpoint(url)
                self._entities = entities
            case _:
                raise SpecError("initial_state", "must have folder, endpoint and entities")
        self.state: dict[str, Any] = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the seven tools."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Answer one call."""
        if call.tool_name not in PARAMETERS:
            return NO_SUCH_TOOL
        self.state["rounds"] = self.state.get("rounds", 0) + 1
        self.revision += 1
        try:
            values = [call.arguments[name] for name in PARAMETERS[call.tool_name]]
            return Value(self._answer(call.tool_name, *map(self._resolve, values)))
        except KeyError as error:
            return reject("missing_argument", f"The argument {error} is required.")
        except _Invalid as invalid:
            return invalid.failure
        except QueryFailed as failed:
            return reject("query_failed", str(failed))

    def _resolve(self, value: Json) -> Any:
        """Return a variable (a dict), the ID of an entity, or another text."""
        if not isinstance(value, str):
            raise _Invalid("invalid_argument", "Arguments are texts.")
        if value.startswith("#"):
            variables = self.state.get("variables", [])
            if not re.fullmatch(r"#\d{1,4}", value) or int(value[1:]) >= len(variables):
                raise _Invalid("invalid_variable", f"There is no variable {value[:20]}.")
            return variables[int(value[1:])]
        return self._entities.get(value, value)

    def _answer(self, name: str, first: Any, second: Any = None) -> JsonObject:
        if name in ("get_relations", "get_neighbors"):
            subject = first["program"] if isinstance(first, dict) else first
            if isinstance(subject, str) and not _ENTITY.fullmatch(subject):
                raise _Invalid("invalid_variable", f"{name} needs a variable or an entity.")
            relations = self._names(subject, self._relations)
            if name == "get_relations":
                return {"relations": [*relations]}
            if second not in relations or second not in self._ranges:
                raise _Invalid("invalid_relation", "The variable has no such relation.")
            return self._new(self._ranges[second], ["join", second, subject])
        if not isinstance(first, dict) or (name == "intersection" and not isinstance(second, dict)):
            raise _Invalid("invalid_variable", f"{name} needs a variable, such as #0.")
        kind, program = first["type"], first["program"]
        if name == "count":
            return self._new("type.int", ["count", program])
        if name == "intersection":
            if kind != second["type"]:
                raise _Invalid("different_types", "The variables must have the same type.")
            return self._new(kind, ["and", program, second["program"]])
        attributes = self._names(program, self._attributes)
        if name == "get_attributes":
            return {"attributes": [*attributes]}
        if second not in attributes:
            raise _Invalid("invalid_attribute", "The variable has no such attribute.")
        return self._new(kind, [name, program, second])

    def _names(self, subject: Program | str, allowed: frozenset[str]) -> list[str]:
        names = self._endpoint.values(select_relations(subject))
        return [name for name in names if name in allowed]

    def _new(self, kind: str, program: Program) -> JsonObject:
        variables = self.state.setdefault("variables", [])
        variables.append({"type": kind, "program": program})
        return {"variable": f"#{len(variables) - 1}", "type": kind}

    def first_turn(self) -> Handover:
        """Return the agent's only turn, which its answer ends."""
        return Handover(ONLY_SEAT, "")

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Compute the answer; a text without one is returned to the agent in the first rounds."""
        self.revision += 1
        text = text.partition("Observation:")[0].replace("\\_", "_")
        answer = _ANSWER.search(text)
        if answer is None:
            self.state["rounds"] = self.state.get("rounds", 0) + 1
            is_over = not text or self.state["rounds"] >= ROUNDS
            return None if is_over else Handover(seat, NO_ANSWER)
        try:
            program = self._resolve(f"#{int(answer[1])}")["program"]
            self.state["answer"] = sorted(set(self._endpoint.values(select(program))))
        except (_Invalid, QueryFailed, ValueError):
            self.state["answer"] = None
        return None

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the episode."""
        return None
