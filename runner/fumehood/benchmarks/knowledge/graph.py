"""Sets of entities as SPARQL queries, and the client of a SPARQL endpoint.

Source of the queries: ``lisp_to_sparql`` in ``src/server/tasks/knowledgegraph/utils`` of AgentBench
578c5e9. They are written in standard SPARQL 1.1, not in the dialect of Virtuoso.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from fumehood.core.errors import InfraError, SpecError

NAMESPACE = "http://rdf.freebase.com/ns/"
ONTOLOGY = Path("src", "server", "tasks", "knowledgegraph", "ontology")
"""Folder of a checkout with the names of relations and attributes."""
CHECK = "SELECT ?x WHERE { ?x ?y ?z . } LIMIT 1"
"""A query that no agent influences; it shows whether the endpoint works."""
TIMEOUT_S = 60.0
RESPONSE_BYTES_MAX = 32 << 20
Program = list[Any]
"""``["join", relation, entity or program]``, ``["and", program, program]``, ``["count", program]``,
``["argmax", program, attribute]`` or ``["argmin", program, attribute]``."""


class QueryFailed(Exception):
    """The endpoint rejects a query, or its answer is too large or late."""


@lru_cache
def ontology(folder: str) -> tuple[frozenset[str], frozenset[str], dict[str, str]]:
    """Return the relations, the attributes, and the type of the values of each relation.

    Raises:
        SpecError: a file of the checkout is missing or has another format.
    """
    path = Path(folder) / ONTOLOGY
    try:
        vocabulary = json.loads((path / "vocab.json").read_text(encoding="utf-8"))
        relations, attributes = frozenset(vocabulary["relations"]), vocabulary["attributes"]
        lines = (path / "fb_roles").read_text(encoding="utf-8").splitlines()
        ranges = {line.split()[1]: line.split()[2] for line in lines}
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise SpecError(
            "folder",
            f"{path}: needs vocab.json and fb_roles of AgentBench, readable by all users: {reason}",
        ) from None
    return relations, frozenset(attributes), ranges


class _Parts:
    """The parts of a query."""

    def __init__(self, program: Program) -> None:
        self.patterns: list[str] = []
        self._entities: dict[str, None] = {}
        self.order: list[str] = []
        self._variables = 0
        self._add(program, "?x")

    def filters(self) -> str:
        """Return the filters: no entity of the question, and no text in another language."""
        language = "FILTER ( !isLiteral(?x) || lang(?x) = '' || langMatches(lang(?x), 'en') )"
        return " ".join([language, *(f"FILTER ( ?x != ns:{each} )" for each in self._entities)])

    def _add(self, program: Program, variable: str) -> None:
        match program:
            case ["join", relation, str(entity)]:
                self._entities[entity] = None
                self.patterns.append(f"ns:{entity} ns:{relation} {variable} .")
            case ["join", relation, inner]:
                self._variables += 1
                subject = f"?y{self._variables}"
                self._add(inner, subject)
                self.patterns.append(f"{subject} ns:{relation} {variable} .")
            case ["and", left, right]:
                self._add(left, variable)
                self._add(right, variable)
            case ["argmax" | "argmin" as name, inner, attribute]:
                self._add(inner, variable)
                self.patterns.append(f"{variable} ns:{attribute} ?key .")
                self.order.append("DESC(?key)" if name == "argmax" else "?key")
            case _:
                raise QueryFailed("A number has no members.")


def select(program: Program) -> str:
    """Return the query, without its prefix, for the members or the number of a set.

    Raises:
        QueryFailed: the original's query is invalid: that of a number of a number, of two largest
            or smallest values, and of the number of those.
    """
    counts = program[0] == "count"
    parts = _Parts(program[1] if counts else program)
    body = " ".join(parts.patterns)
    if len(parts.order) + counts > 1:
        raise QueryFailed("The endpoint cannot combine these steps.")
    if counts:
        return f"SELECT (COUNT(DISTINCT ?x) AS ?count) WHERE {{ {body} {parts.filters()} }}"
    if not parts.order:
        return f"SELECT DISTINCT ?x WHERE {{ {body} {parts.filters()} }}"
    # The original filters here only where it selects the value.
    best = f"SELECT ?key WHERE {{ {body} {parts.filters()} }} ORDER BY {parts.order[0]} LIMIT 1"
    return f"SELECT DISTINCT ?x WHERE {{ {body} {{ {best} }} }}"


def select_relations(subject: Program | str) -> str:
    """Return the query for the relations of an entity or of the members of a set.

    Raises:
        QueryFailed: the set is a number, or its query is invalid.
    """
    if isinstance(subject, str):
        return f"SELECT DISTINCT ?rel WHERE {{ ns:{subject} ?rel ?obj . }}"
    if subject[0] == "count":
        raise QueryFailed("A number has no relations.")
    return f"SELECT DISTINCT ?rel WHERE {{ ?x ?rel ?obj . {{ {select(subject)} }} }}"


_FOREIGN = re.compile(r'[<\\"]|(?<![\w.:])service(?![\w.])', re.IGNORECASE)
"""Parts of a query that could address another server: addresses, escapes, and SERVICE. Source:
SPARQL 1.1 Federated Query; SPARQL 1.1 Query Language, section 19.2."""


def checked(query: str) -> str:
    """Return a query that an agent may have written.

    Raises:
        QueryFailed: it could make the endpoint ask another server.
    """
    if _FOREIGN.search(query):
        raise QueryFailed("The query addresses another server.")
    return query


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect: only the user's endpoint receives requests."""


class Endpoint:
    """Sends SELECT queries to a SPARQL endpoint (SPARQL 1.1 Protocol, section 2.1)."""

    def __init__(self, url: str) -> None:
        """Take an address.

        Raises:
            SpecError: it is not an HTTP address, or contains credentials, which a trace would show.
        """
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_usable = False
        if not is_usable or "@" in parts.netloc:
            raise SpecError("endpoint", f"{url!r} must be an http address without a user name")
        self.url = url
        self._open: Callable[..., Any] = build_opener(ProxyHandler({}), _NoRedirect()).open

    def values(self, query: str) -> list[str]:
        """Return the sorted values of the query's one variable, as the original writes them.

        Raises:
            QueryFailed: the endpoint answers other queries only, or too much or too late.
            InfraError: there is no SPARQL endpoint at this address.
        """
        try:
            return self._values(query)
        except InfraError:
            # An agent can make a query so large that the endpoint closes the connection.
            self._values(CHECK)
            raise QueryFailed("The endpoint does not answer this query.") from None

    def _values(self, query: str) -> list[str]:
        text = f"PREFIX ns: <{NAMESPACE}> {query}"
        request = Request(
            self.url,
            urlencode({"query": text}).encode("ascii"),
            {"Accept": "application/sparql-results+json"},
        )
        try:
            with self._open(request, timeout=TIMEOUT_S) as response:
                content = response.read(RESPONSE_BYTES_MAX + 1)
        except HTTPError as error:
            raise QueryFailed(f"The endpoint answers with status {error.code}.") from None
        except TimeoutError:
            raise QueryFailed("The endpoint does not answer in time.") from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            raise InfraError(f"{self.url}: no SPARQL endpoint answers: {reason}") from None
        if len(content) > RESPONSE_BYTES_MAX:
            raise QueryFailed("The result is too large.")
        try:
            rows = json.loads(content)["results"]["bindings"]
            found = [cell["value"] for row in rows for cell in row.values()]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InfraError(f"{self.url}: does not return SPARQL results") from None
        return sorted(str(value).replace(NAMESPACE, "").replace("-08:00", "") for value in found)
