"""Task templates for the retrieval world: documents, of which the answer is checked."""

from __future__ import annotations

from dataclasses import dataclass

from fumehood.benchmarks.native.generate.draft import (
    Call,
    DraftTask,
    Source,
    answer_is,
    call,
    called_with,
    not_called,
    rate_limited,
    tried_any,
)
from fumehood.benchmarks.native.generate.words import FAMILIES, NOTES, OBJECTS, PLACES
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.json_values import Json, JsonObject


@dataclass(frozen=True, slots=True)
class _Fact:
    """A number that a document gives about an object: ``least`` to ``least + span - 1``."""

    aspect: str
    question: str
    sentence: str
    least: int
    span: int

    def value(self, choices: SeededChoices) -> str:
        """Return a plausible number."""
        return str(self.least + choices.below(self.span))


_FACTS = (
    _Fact(
        "load",
        "What is the maximum load of the {n}, in tons?",
        "The maximum load of the {n} is {v} tons.",
        3,
        90,
    ),
    _Fact(
        "dimensions",
        "What is the length of the {n}, in metres?",
        "The {n} is {v} metres long.",
        12,
        200,
    ),
    _Fact(
        "history", "In which year was the {n} rebuilt?", "The {n} was rebuilt in {v}.", 1871, 150
    ),
    _Fact(
        "upkeep",
        "How many days are there between two inspections of the {n}?",
        "The {n} is inspected every {v} days.",
        4,
        90,
    ),
)


def find_number(choices: SeededChoices, number: int) -> DraftTask:
    """Find a document and answer with a number from it."""
    thing, fact = _thing(choices), choices.pick(_FACTS)
    value = fact.value(choices)
    key = _key(choices, number)
    wording = choices.pick(
        (
            "Case {c}: {q} Find the document that gives the number, open it, and answer with the "
            "number only.",
            "For case {c}, search the documents, open the one that answers this question, and "
            "answer with the number only: {q}",
            "{q} One of the documents contains the answer. Open it and answer with the number "
            "only (case {c}).",
        )
    )
    document = _about(key, thing, fact, value)
    return DraftTask(
        world="retrieval",
        instruction=wording.format(q=fact.question.format(n=thing), c=number),
        state=_documents(choices, number, thing, fact, [document]),
        calls=(_search(f"{thing} {fact.aspect}"), call("get_doc", doc_id=key)),
        criteria=(called_with(call("get_doc", doc_id=key)), answer_is(value)),
        answer=value,
        source=Source("get_doc", "doc_id", key),
    )


def follow_reference(choices: SeededChoices, number: int) -> DraftTask:
    """Follow a reference from one document to another and answer from the second."""
    thing, fact = _thing(choices), choices.pick(_FACTS)
    value = fact.value(choices)
    first, second = _key(choices, number), _key(choices, number + 1)
    overview: Json = {
        "id": first,
        "title": f"The {thing}: overview",
        "text": f"{choices.pick(NOTES)}. For its {fact.aspect}, see document {second}.",
    }
    details: Json = {
        "id": second,
        "title": f"Survey {choices.below(900) + 100}",
        "text": fact.sentence.format(n="object of this survey", v=value),
    }
    wording = choices.pick(
        (
            "Case {c}: {q} The overview of the {n} names the document to open. Answer with the "
            "number only.",
            "{q} Start with the overview of the {n}, open the document that it refers to, and "
            "answer with the number only (case {c}).",
        )
    )
    return DraftTask(
        world="retrieval",
        instruction=wording.format(q=fact.question.format(n=thing), n=thing, c=number),
        state=_documents(choices, number, thing, fact, [overview, details]),
        calls=(
            _search(f"{thing} overview"),
            call("get_doc", doc_id=first),
            call("get_doc", doc_id=second),
        ),
        criteria=(called_with(call("get_doc", doc_id=second)), answer_is(value)),
        answer=value,
        source=Source("get_doc", "doc_id", second),
    )


def larger_number(choices: SeededChoices, number: int) -> DraftTask:
    """Read two documents and answer with the ID of the one that gives the larger number."""
    thing, fact = _thing(choices), choices.pick(_FACTS)
    left, right = choices.some(range(fact.least, fact.least + fact.span), 2)
    keys = [_key(choices, number), _key(choices, number + 1)]
    documents = [
        _about(key, thing, fact, str(value)) for key, value in zip(keys, (left, right), strict=True)
    ]
    wording = choices.pick(
        (
            "The documents {a} and {b} give different numbers for the {n} ({f}). Read both and "
            "answer with only the ID of the one that gives the larger number.",
            "Open {a} and {b} and compare what they state about the {n} ({f}). Which document "
            "gives the larger number? Answer with its ID only.",
        )
    )
    return DraftTask(
        world="retrieval",
        instruction=wording.format(a=keys[0], b=keys[1], n=thing, f=fact.aspect),
        state=_documents(choices, number, thing, fact, documents),
        calls=tuple(call("get_doc", doc_id=key) for key in keys),
        criteria=(
            *(called_with(call("get_doc", doc_id=key)) for key in keys),
            answer_is(keys[left < right]),
        ),
        answer=keys[left < right],
    )


def all_by_one_author(choices: SeededChoices, number: int) -> DraftTask:
    """Open exactly the documents of one author."""
    author, *others = choices.some(FAMILIES, 4)
    writers = choices.shuffled([author, author, *others])
    keys = [_key(choices, number + step) for step in range(len(writers))]
    documents: list[Json] = [
        {
            "id": key,
            "title": f"{choices.pick(OBJECTS)} notes, by {writer}",
            "text": f"{choices.pick(NOTES)}.",
        }
        for key, writer in zip(keys, writers, strict=True)
    ]
    by_author = [key for key, writer in zip(keys, writers, strict=True) if writer == author]
    rest = [key for key in keys if key not in by_author]
    wording = choices.pick(
        (
            "Case {n}: open every document written by {w}. Do not open any other document.",
            "For case {n}, open all documents by {w}, and only those.",
        )
    )
    return DraftTask(
        world="retrieval",
        instruction=wording.format(w=author, n=number),
        state={"docs": documents},
        calls=(_search(author), *(call("get_doc", doc_id=key) for key in by_author)),
        criteria=(
            *(called_with(call("get_doc", doc_id=key)) for key in by_author),
            *(not_called("get_doc", doc_id=key) for key in rest),
        ),
    )


def unanswered_question(choices: SeededChoices, number: int) -> DraftTask:
    """Answer a question that maybe no document answers."""
    thing = _thing(choices)
    fact, other = choices.some(_FACTS, 2)
    key = _key(choices, number)
    wording = choices.pick(
        (
            "Case {c}: {q} Answer with the number only. If no document answers this question, give "
            "up instead of guessing.",
            "{q} Answer with the number only, and only if a document states it; otherwise give up "
            "(case {c}).",
        )
    )
    instruction = wording.format(q=fact.question.format(n=thing), c=number)
    look = (_search(f"{thing} {fact.aspect}"), call("get_doc", doc_id=key))
    if choices.below(2):
        value = fact.value(choices)
        return DraftTask(
            world="retrieval",
            instruction=instruction,
            state=_documents(choices, number, thing, fact, [_about(key, thing, fact, value)]),
            calls=look,
            criteria=(called_with(call("get_doc", doc_id=key)), answer_is(value)),
            answer=value,
        )
    return DraftTask(
        world="retrieval",
        instruction=instruction,
        state=_documents(
            choices, number, thing, fact, [_about(key, thing, other, other.value(choices))]
        ),
        calls=look,
        criteria=(tried_any(call("search_docs"), call("get_doc", doc_id=key)), {"op": "gave_up"}),
        gives_up=f"no document gives the {fact.aspect} of the {thing}",
    )


def dangling_reference(choices: SeededChoices, number: int) -> DraftTask:
    """Follow a reference to a document that may not exist."""
    thing, fact = _thing(choices), choices.pick(_FACTS)
    first, second = _key(choices, number), _key(choices, number + 1)
    overview: Json = {
        "id": first,
        "title": f"The {thing}: overview",
        "text": f"{choices.pick(NOTES)}. For its {fact.aspect}, see document {second}.",
    }
    wording = choices.pick(
        (
            "Open document {a}, then open the document that it refers to. If you cannot, give up.",
            "Document {a} refers to another document. Open that document. If this is impossible, "
            "give up.",
        )
    )
    calls = (call("get_doc", doc_id=first), call("get_doc", doc_id=second))
    if choices.below(2):
        details: Json = {
            "id": second,
            "title": f"Survey {choices.below(900) + 100}",
            "text": fact.sentence.format(n="object of this survey", v=fact.value(choices)),
        }
        return DraftTask(
            world="retrieval",
            instruction=wording.format(a=first),
            state=_documents(choices, number, thing, fact, [overview, details]),
            calls=calls,
            criteria=tuple(map(called_with, calls)),
        )
    return DraftTask(
        world="retrieval",
        instruction=wording.format(a=first),
        state=_documents(choices, number, thing, fact, [overview]),
        calls=calls,
        criteria=(tried_any(call("get_doc", doc_id=second)), {"op": "gave_up"}),
        gives_up=f"there is no document {second}",
    )


def too_many_results(choices: SeededChoices, number: int) -> DraftTask:
    """Request fewer results after a rate limit."""
    thing, fact = _thing(choices), choices.pick(_FACTS)
    key, many, few = _key(choices, number), choices.below(40) + 20, choices.below(3) + 2
    wording = choices.pick(
        (
            "Case {c}: search for '{q}' and request {m} results. If this call is rate-limited, "
            "request {f} results instead. Answer with the ID of the best result only.",
            "Which document matches '{q}' best? Answer with its ID only. Request {m} search "
            "results; if the search is too busy for this, request {f} (case {c}).",
        )
    )
    query = f"{thing} {fact.aspect}"
    document = _about(key, thing, fact, fact.value(choices), emphasis=3)
    return DraftTask(
        world="retrieval",
        instruction=wording.format(q=query, m=many, f=few, c=number),
        state=_documents(choices, number, thing, fact, [document]),
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
        faults=(rate_limited("search_docs", top_k=many),),
    )


def _search(query: str) -> Call:
    return call("search_docs", query=query, top_k=5)


def _thing(choices: SeededChoices) -> str:
    return f"{choices.pick(OBJECTS)} at the {choices.pick(PLACES)}"


def _key(choices: SeededChoices, number: int) -> str:
    return f"{choices.pick('fghkm')}{number}"


def _about(key: str, thing: str, fact: _Fact, value: str, emphasis: int = 1) -> Json:
    title = f"The {thing}: {fact.aspect}"
    return {
        "id": key,
        "title": title,
        "text": " ".join([fact.sentence.format(n=thing, v=value)] * emphasis),
    }


def _documents(
    choices: SeededChoices, number: int, thing: str, fact: _Fact, documents: list[Json]
) -> JsonObject:
    """Return a state with the given documents and three others on other subjects."""
    documents = list(documents)
    others = [other for other in _FACTS if other is not fact]
    for step in range(3):
        rival = _thing(choices)
        # Never the same fact about the same object, so that no question has two answers.
        about = choices.pick(_FACTS if rival != thing else others)
        documents.append(
            _about(_key(choices, number + 2 + step), rival, about, about.value(choices))
        )
    return {"docs": choices.shuffled(documents)}
