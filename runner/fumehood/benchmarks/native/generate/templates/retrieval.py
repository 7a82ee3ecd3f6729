"""Stories over a shelf of documents; what is asked for is said, so the answer is what counts."""

from __future__ import annotations

from dataclasses import dataclass

from fumehood.benchmarks.native.generate.draft import (
    Call,
    Scene,
    Source,
    answer_is,
    call,
    called_with,
    not_called,
    tried_any,
)
from fumehood.benchmarks.native.generate.words import FAMILIES, NOTES, OBJECTS, PLACES
from fumehood.benchmarks.seeded_choices import Draws
from fumehood.core.json_values import Json, JsonObject


@dataclass(frozen=True, slots=True)
class _Fact:
    """Something that a document says about a thing, in numbers from ``least`` on, ``span`` of them."""

    aspect: str
    question: str
    sentence: str
    least: int
    span: int

    def value(self, draws: Draws) -> str:
        """Return a likely number."""
        return str(self.least + draws.below(self.span))


_FACTS = (
    _Fact("load", "How many tons may the {n} bear?", "The {n} may bear {v} tons.", 3, 90),
    _Fact("dimensions", "How many metres long is the {n}?", "The {n} is {v} metres long.", 12, 200),
    _Fact(
        "history", "In which year was the {n} rebuilt?", "The {n} was rebuilt in {v}.", 1871, 150
    ),
    _Fact(
        "upkeep",
        "Every how many days is the {n} inspected?",
        "The {n} is inspected every {v} days.",
        4,
        90,
    ),
)


def say_the_number(draws: Draws, number: int) -> Scene:
    """Find a document and answer with a number from it."""
    thing, fact = _thing(draws), draws.pick(_FACTS)
    value = fact.value(draws)
    key = _key(draws, number)
    asked = draws.pick(
        (
            "{q} Look it up on the shelf for case {c} and answer with the number alone.",
            "Case {c}: find the document that says it, read it, and answer with the bare number: {q}",
            "{q} Somewhere on the shelf it says so. Only the number is wanted, by case {c}.",
        )
    )
    document = _about(key, thing, fact, value)
    return Scene(
        world="retrieval",
        instruction=asked.format(q=fact.question.format(n=thing), c=number),
        state=_shelf(draws, number, thing, fact, [document]),
        calls=(_search(f"{thing} {fact.aspect}"), call("get_doc", doc_id=key)),
        criteria=(called_with(call("get_doc", doc_id=key)), answer_is(value)),
        answer=value,
        source=Source("get_doc", "doc_id", key),
    )


def follow_reference(draws: Draws, number: int) -> Scene:
    """Follow one document to another and answer from that."""
    thing, fact = _thing(draws), draws.pick(_FACTS)
    value = fact.value(draws)
    first, second = _key(draws, number), _key(draws, number + 1)
    overview: Json = {
        "id": first,
        "title": f"The {thing}: overview",
        "text": f"{draws.pick(NOTES)}. For its {fact.aspect} see document {second}.",
    }
    details: Json = {
        "id": second,
        "title": f"Survey {draws.below(900) + 100}",
        "text": fact.sentence.format(n="object of this survey", v=value),
    }
    asked = draws.pick(
        (
            "{q} The overview of it says where to look. Answer case {c} with the number alone.",
            "Case {c} asks: {q} Begin with its overview on the shelf, follow it, and answer with the bare "
            "number.",
        )
    )
    return Scene(
        world="retrieval",
        instruction=asked.format(q=fact.question.format(n=thing), c=number),
        state=_shelf(draws, number, thing, fact, [overview, details]),
        calls=(
            _search(f"{thing} overview"),
            call("get_doc", doc_id=first),
            call("get_doc", doc_id=second),
        ),
        criteria=(called_with(call("get_doc", doc_id=second)), answer_is(value)),
        answer=value,
        source=Source("get_doc", "doc_id", second),
    )


def which_is_more(draws: Draws, number: int) -> Scene:
    """Read two documents and answer with the one that gives the larger number."""
    thing, fact = _thing(draws), draws.pick(_FACTS)
    left, right = draws.some(range(fact.least, fact.least + fact.span), 2)
    keys = [_key(draws, number), _key(draws, number + 1)]
    documents = [
        _about(key, thing, fact, str(value)) for key, value in zip(keys, (left, right), strict=True)
    ]
    asked = draws.pick(
        (
            "{a} and {b} disagree on the {f} of the {n}. Read both and answer with the id of the one that "
            "gives the larger number.",
            "Compare what {a} and {b} say about the {n} ({f}). Which of them names the larger number? Answer "
            "with its id and nothing else.",
        )
    )
    return Scene(
        world="retrieval",
        instruction=asked.format(a=keys[0], b=keys[1], n=thing, f=fact.aspect),
        state=_shelf(draws, number, thing, fact, documents),
        calls=tuple(call("get_doc", doc_id=key) for key in keys),
        criteria=(
            *(called_with(call("get_doc", doc_id=key)) for key in keys),
            answer_is(keys[left < right]),
        ),
        answer=keys[left < right],
    )


def all_by_one_author(draws: Draws, number: int) -> Scene:
    """Open exactly the documents of one author."""
    author, *others = draws.some(FAMILIES, 4)
    writers = draws.shuffled([author, author, *others])
    keys = [_key(draws, number + step) for step in range(len(writers))]
    documents: list[Json] = [
        {
            "id": key,
            "title": f"{draws.pick(OBJECTS)} notes, by {writer}",
            "text": f"{draws.pick(NOTES)}.",
        }
        for key, writer in zip(keys, writers, strict=True)
    ]
    theirs = [key for key, writer in zip(keys, writers, strict=True) if writer == author]
    rest = [key for key in keys if key not in theirs]
    asked = draws.pick(
        (
            "Case {n}: open every document that is by {w}, and no other.",
            "All that {w} wrote has to be opened for case {n}; what others wrote is none of your business.",
        )
    )
    return Scene(
        world="retrieval",
        instruction=asked.format(w=author, n=number),
        state={"docs": documents},
        calls=(_search(author), *(call("get_doc", doc_id=key) for key in theirs)),
        criteria=(
            *(called_with(call("get_doc", doc_id=key)) for key in theirs),
            *(not_called("get_doc", doc_id=key) for key in rest),
        ),
    )


def not_on_the_shelf(draws: Draws, number: int) -> Scene:
    """Answer a question that no document answers."""
    thing = _thing(draws)
    fact, other = draws.some(_FACTS, 2)
    key = _key(draws, number)
    asked = draws.pick(
        (
            "Case {c}: {q} If the shelf does not say, give up rather than guess.",
            "{q} Answer case {c} with the number alone, and only with one that a document gives; else give "
            "up.",
        )
    )
    return Scene(
        world="retrieval",
        instruction=asked.format(q=fact.question.format(n=thing), c=number),
        state=_shelf(draws, number, thing, fact, [_about(key, thing, other, other.value(draws))]),
        calls=(_search(f"{thing} {fact.aspect}"), call("get_doc", doc_id=key)),
        criteria=(tried_any(call("search_docs"), call("get_doc", doc_id=key)), {"op": "gave_up"}),
        gives_up=f"no document gives the {fact.aspect} of the {thing}",
    )


def dangling_reference(draws: Draws, number: int) -> Scene:
    """Follow a reference to a document that is gone."""
    thing, fact = _thing(draws), draws.pick(_FACTS)
    first, second = _key(draws, number), _key(draws, number + 1)
    overview: Json = {
        "id": first,
        "title": f"The {thing}: overview",
        "text": f"{draws.pick(NOTES)}. For its {fact.aspect} see document {second}.",
    }
    asked = draws.pick(
        (
            "Open document {a} and then the document that it refers to.",
            "{a} refers to another document. Fetch that one.",
        )
    )
    return Scene(
        world="retrieval",
        instruction=asked.format(a=first),
        state=_shelf(draws, number, thing, fact, [overview]),
        calls=(call("get_doc", doc_id=first), call("get_doc", doc_id=second)),
        criteria=(tried_any(call("get_doc", doc_id=second)), {"op": "gave_up"}),
        gives_up=f"there is no document {second}",
    )


def too_many_hits(draws: Draws, number: int) -> Scene:
    """Ask for fewer hits where many are too much."""
    thing, fact = _thing(draws), draws.pick(_FACTS)
    key, many, few = _key(draws, number), draws.below(40) + 20, draws.below(3) + 2
    asked = draws.pick(
        (
            "Case {c}: search for '{q}', {m} hits at once; should that be too much for the shelf, {f} will "
            "do. Answer with the id of the best hit.",
            "Which document fits '{q}' best, for case {c}? Answer with its id. Ask for {m} hits, or for {f} "
            "if {m} are more than the shelf can give at the moment.",
        )
    )
    query = f"{thing} {fact.aspect}"
    document = _about(key, thing, fact, fact.value(draws), emphasis=3)
    return Scene(
        world="retrieval",
        instruction=asked.format(q=query, m=many, f=few, c=number),
        state=_shelf(draws, number, thing, fact, [document]),
        calls=(
            call("search_docs", query=query, top_k=many),
            call("search_docs", query=query, top_k=few),
        ),
        criteria=(
            tried_any(call("search_docs", top_k=many)),
            called_with(call("search_docs", query=query, top_k=few)),
            answer_is(key),
        ),
        answer=key,
        faults=(
            {
                "fault_type": "rate_limit",
                "trigger": {"on_tool": "search_docs", "when_arg_matches": {"top_k": many}},
                "payload": {"retry_after_ms": 60_000},
            },
        ),
    )


def _search(query: str) -> Call:
    return call("search_docs", query=query, top_k=5)


def _thing(draws: Draws) -> str:
    return f"{draws.pick(OBJECTS)} at the {draws.pick(PLACES)}"


def _key(draws: Draws, number: int) -> str:
    return f"{draws.pick('fghkm')}{number}"


def _about(key: str, thing: str, fact: _Fact, value: str, emphasis: int = 1) -> Json:
    title = f"The {thing}: {fact.aspect}"
    return {
        "id": key,
        "title": title,
        "text": " ".join([fact.sentence.format(n=thing, v=value)] * emphasis),
    }


def _shelf(draws: Draws, number: int, thing: str, fact: _Fact, documents: list[Json]) -> JsonObject:
    """Return a state with the documents among others about other things or other sides of them."""
    shelf = list(documents)
    others = [other for other in _FACTS if other is not fact]
    for step in range(3):
        rival = _thing(draws)
        # Never the same fact about the same thing, so that no question has two answers.
        about = draws.pick(_FACTS if rival != thing else others)
        shelf.append(_about(_key(draws, number + 2 + step), rival, about, about.value(draws)))
    return {"docs": draws.shuffled(shelf)}
