"""A small film graph behind a SPARQL endpoint, and a checkout of AgentBench with questions about
it. All are this project's, in the published format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

from fumehood.benchmarks.knowledge.graph import NAMESPACE, ONTOLOGY

ROLES = {
    "film.actor.film": "film.film",
    "film.director.film": "film.film",
    "film.film.actor": "film.actor",
    "film.film.director": "film.director",
    "film.film.year": "type.int",
}
ATTRIBUTES = ("film.film.year",)
FILMS = {
    f"m.film{number}": (
        f"m.director{number % 3}",
        [f"m.actor{number % 4}", "m.actor4"][: 1 + number % 2],
    )
    for number in range(9)
}
YEARS = {film: 1990 + (7 * number) % 9 for number, film in enumerate(FILMS)}
Triple = tuple[str, str, Any]


def triples() -> list[Triple]:
    """Return the graph."""
    graph: list[Triple] = []
    for film, (director, actors) in FILMS.items():
        graph += [(film, "film.film.director", director), (director, "film.director.film", film)]
        graph += [(film, "film.film.year", YEARS[film]), (film, "film.unlisted", "m.x")]
        for actor in actors:
            graph += [(film, "film.film.actor", actor), (actor, "film.actor.film", film)]
    return graph


def _record(number: int, actions: list[str], answers: Sequence[Any], *entities: str) -> Any:
    return {
        "question": f"Question {number}?",
        "qid": f"own{number}",
        "source": "own",
        "entities": {entity[2:]: entity for entity in entities},
        "s_expression": "",
        "actions": actions,
        "answer": [{"answer_argument": str(answer)} for answer in answers],
    }


def records() -> list[dict[str, Any]]:
    """Return 28 questions with their gold calls."""
    made: list[Any] = []
    actors, directors = [f"m.actor{at}" for at in range(5)], [f"m.director{at}" for at in range(3)]
    for actor in actors:
        films = [film for film, (_, cast) in FILMS.items() if actor in cast]
        steps = [f"get_relations({actor})", f"get_neighbors({actor},film.actor.film)"]
        made.append(_record(len(made), steps, films, actor))
        made.append(_record(len(made), [*steps, "count(#0)"], [len(films)], actor))
        for pick, name in ((max, "argmax"), (min, "argmin")):
            best = pick(films, key=YEARS.__getitem__)
            more = ["get_attributes(#0)", f"{name}(#0,film.film.year)"]
            made.append(_record(len(made), [*steps, *more], [best], actor))
        other = [cast for film in films for cast in FILMS[film][1] if cast != actor]
        if other:
            more = ["get_relations(#0)", "get_neighbors(#0,film.film.actor)"]
            made.append(_record(len(made), [*steps, *more], sorted(set(other)), actor))
        director = directors[len(made) % 3]
        both = [film for film in films if FILMS[film][0] == director]
        if both:
            more = [f"get_neighbors({director},film.director.film)", "intersection(#0,#1)"]
            made.append(_record(len(made), [*steps, *more], both, actor, director))
    return made


def write_checkout(folder: Path, **replaced: Any) -> Path:
    """Write a checkout; ``replaced`` are splits by name."""
    data, names = folder / "data" / "knowledgegraph", folder / ONTOLOGY
    data.mkdir(parents=True)
    names.mkdir(parents=True)
    for split, value in {"std": records(), "dev": records()[:2], **replaced}.items():
        (data / f"{split}.json").write_text(json.dumps(value), encoding="utf-8")
    roles = "".join(f"{name.rpartition('.')[0]} {name} {kind}\n" for name, kind in ROLES.items())
    (names / "fb_roles").write_text(roles, encoding="utf-8")
    relations = [name for name in ROLES if name not in ATTRIBUTES]
    vocabulary = {"relations": relations, "attributes": ATTRIBUTES, "classes": []}
    (names / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    return folder


Row = dict[str, Any]


def _solve(tokens: list[str], graph: list[Triple]) -> list[Row]:
    """Return the solutions of a group; ``tokens`` begin behind its ``{``, which is consumed."""
    rows: list[Row] = [{}]
    while (token := tokens.pop(0)) != "}":
        if token == "FILTER":
            test = [tokens.pop(0) for _ in range(tokens.index(")") + 1)]
            if "!=" in test:
                rows = [row for row in rows if row[test[1]] != test[3].removeprefix("ns:")]
        elif token == "{":
            found = _select(tokens, graph)
            assert tokens.pop(0) == "}"
            rows = [{**row, **new} for row in rows for new in found if _agree(row, new)]
        else:
            terms = [token, tokens.pop(0), tokens.pop(0)]
            assert tokens.pop(0) == "."
            rows = [new for row in rows for triple in graph for new in _match(row, terms, triple)]
    return rows


def _agree(left: Row, right: Row) -> bool:
    return all(left.get(name, value) == value for name, value in right.items())


def _match(row: Row, terms: list[str], triple: Triple) -> Iterator[Row]:
    new: Row = {}
    for term, value in zip(terms, triple, strict=True):
        if not term.startswith("?"):
            if term != f"ns:{value}":
                return
        elif {**row, **new}.setdefault(term, value) != value:
            return
        else:
            new[term] = value
    yield {**row, **new}


def _select(tokens: list[str], graph: list[Triple]) -> list[Row]:
    """Return the rows of a query of the forms that the world sends."""
    head = [tokens.pop(0) for _ in range(tokens.index("{") + 1)]
    rows = _solve(tokens, graph)
    if "(COUNT(DISTINCT" in head:
        return [{"?count": len({row["?x"] for row in rows})}]
    name = next(word for word in head if word.startswith("?"))
    values = list(dict.fromkeys(row[name] for row in rows))
    if tokens[:2] == ["ORDER", "BY"]:
        values.sort(reverse=tokens[2].startswith("DESC"))
        assert tokens[3:5] == ["LIMIT", "1"]
        del tokens[:5], values[1:]
    return [{name: value} for value in values]


def answer(query: str, graph: list[Triple] | None = None) -> list[Row]:
    """Return the rows of a whole query."""
    prefix, _, rest = query.partition("> ")
    assert prefix == f"PREFIX ns: <{NAMESPACE}"
    return _select(rest.split(), triples() if graph is None else graph)


QUERY_BYTES_MAX = 8192
"""The endpoint closes the connection of a larger query."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode("ascii")
        if len(body) > QUERY_BYTES_MAX:
            return
        if self.path != "/sparql":
            self.send_error(404)
            return
        rows = [
            {
                name[1:]: {
                    "value": NAMESPACE + value if isinstance(value, str) else str(value),
                    "type": "uri" if isinstance(value, str) else "literal",
                }
                for name, value in row.items()
            }
            for row in answer(parse_qs(body)["query"][0])
        ]
        content = json.dumps({"results": {"bindings": rows}}).encode("ascii")
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def endpoint() -> Iterator[str]:
    """Serve the graph, and yield the address of the endpoint."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/sparql"
    finally:
        server.shutdown()
        server.server_close()
