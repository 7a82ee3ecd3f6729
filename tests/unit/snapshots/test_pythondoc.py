"""The questions on Python's documentation are consistent; its pages are split by section."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fumehood_snapshots.documents.document import Document
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.metrics.retrieval import measure_snapshot
from fumehood_snapshots.pythondoc.benchmark import QUESTIONS, build_python_docs
from fumehood_snapshots.pythondoc.source import INSTALLED, page_sections
from tests.unit.snapshots.building import built

PAGE = """<html><body><div class="sphinxsidebar"><section id="no"><h2>Contents</h2></section></div>
<div class="body"><section id="module-owl"><h1><code>owl</code> — Night flightLINK</h1>
<p>The module for everything that flies at night,
and for nothing that flies by day, as it should be.</p>
<section id="feeding"><h2>FeedingLINK</h2><p>Owls eat mice. Owls do not eat hay,
by nature, and they do not ask for it either.</p><pre>owl.feed(
    "mouse")</pre><section id="deep"><h3>Deeper</h3><p>Three mice a night.</p></section></section>
<section id="stub"><h2>Stub</h2></section></section></div></body></html>""".replace(
    "LINK", '<a class="headerlink" href="#x">¶</a>'
)


def test_there_are_sixty_questions_with_answers_and_judgements() -> None:
    questions, judgements, gold = QUESTIONS.questions(), QUESTIONS.judgements(), QUESTIONS.gold()
    assert len(questions) == 60
    assert questions.keys() == judgements.keys() == gold.keys()
    assert len(set(questions.values())) == 60
    assert all(2 in judged.values() for judged in judgements.values())
    assert {grade for judged in judgements.values() for grade in judged.values()} == {1, 2}


def test_gold_accepts_its_own_answer_and_not_the_question() -> None:
    gold, questions = QUESTIONS.gold(), QUESTIONS.questions()
    assert all(
        answer.accepts(f"It is {' '.join(answer.must_contain).upper()}!")
        for answer in gold.values()
    )
    assert [
        identity for identity, answer in gold.items() if answer.accepts(questions[identity])
    ] == []


def test_a_page_is_split_into_its_second_level_sections() -> None:
    feeding, whole = list(page_sections(PAGE.encode(), "library/owl.html"))
    assert (feeding.id, whole.id) == ("library/owl#feeding", "library/owl")
    assert feeding.url == "https://docs.python.org/3.11/library/owl.html#feeding"
    reading = feeding.read("whole-page")
    assert reading.document.title == "owl — Night flight: Feeding"
    assert 'owl.feed(\n    "mouse")' in reading.document.text
    assert "Three mice a night." in reading.document.text
    assert "¶" not in reading.document.text
    left = whole.read("whole-page").document.text
    assert "flies at night" in left
    assert "hay" not in left


def test_pages_without_sections_give_no_documents() -> None:
    assert list(page_sections(b"<html><body><p>nothing here</p></body></html>", "x.html")) == []
    assert list(page_sections(b"", "x.html")) == []


def test_a_missing_package_is_reported_with_the_install_command(tmp_path: Path) -> None:
    with pytest.raises(SnapshotInputError, match=r"apt-get install python3\.11-doc"):
        build_python_docs(tmp_path / "snapshot", tmp_path)


@pytest.fixture(scope="module")
def judged_sections() -> dict[str, Document]:
    if not INSTALLED.is_dir():
        reason = "needs the package python3.11-doc"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    wanted = {name for judged in QUESTIONS.judgements().values() for name in judged}
    found = {}
    for page in sorted({name.partition("#")[0] for name in wanted}):
        for item in page_sections((INSTALLED / f"{page}.html").read_bytes(), f"{page}.html"):
            if item.id in wanted:
                found[item.id] = item.read("whole-page").document
    return found


@pytest.mark.slow
def test_every_judged_section_exists_and_contains_the_answer(
    judged_sections: dict[str, Document],
) -> None:
    gold = QUESTIONS.gold()
    for identity, judged in QUESTIONS.judgements().items():
        for name, grade in judged.items():
            document = judged_sections[name]
            if grade == 2:
                assert gold[identity].accepts(f"{document.title} {document.text}"), (identity, name)


def test_most_questions_find_their_section_among_the_first_ten(
    judged_sections: dict[str, Document], tmp_path: Path
) -> None:
    records = [
        {"id": each.id, "title": each.title, "text": each.text} for each in judged_sections.values()
    ]
    snapshot = built(tmp_path / "snapshot", records)
    quality = measure_snapshot(snapshot, QUESTIONS.questions(), QUESTIONS.judgements())
    assert quality.means["R@10"] > 0.8
    assert quality.means["RR"] > 0.7


def test_the_command_builds_the_sections_it_finds(tmp_path: Path) -> None:
    for page, body in (("library/json.html", PAGE), ("tutorial/owl.html", PAGE)):
        (tmp_path / "html" / page).parent.mkdir(parents=True)
        (tmp_path / "html" / page).write_text(body, encoding="utf-8")
    manifest = build_python_docs(tmp_path / "snapshot", tmp_path / "html")
    assert (manifest.counts.documents, manifest.fields) == (4, ("host", "part"))
    assert "Python Software Foundation" in manifest.licences[0]
