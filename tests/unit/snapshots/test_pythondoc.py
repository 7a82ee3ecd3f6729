"""The questions on Python's documentation hang together, and its pages are cut by their sections."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapshots.build.options import BuildOptions, Pace
from snapshots.build.pipeline import build_snapshot
from snapshots.errors import SnapshotInputError
from snapshots.metrics.retrieval import measure_snapshot
from snapshots.pythondoc.benchmark import build_python_docs, python_gold, python_judgements, python_questions
from snapshots.pythondoc.source import INSTALLED, PythonDocs, page_sections
from snapshots.snapshot import Snapshot, open_snapshot

PAGE = """<html><body><div class="sphinxsidebar"><section id="no"><h2>Contents</h2></section></div>
<div class="body"><section id="module-owl"><h1><code>owl</code> — Night flight<a class="headerlink">¶</a></h1>
<p>The module for everything that flies at night, and for nothing that flies by day, as it should be.</p>
<section id="feeding"><h2>Feeding<a class="headerlink">¶</a></h2><p>Owls eat mice. Owls do not eat hay,
whatever anybody says, and they do not ask for it either.</p><pre>owl.feed(
    "mouse")</pre><section id="deep"><h3>Deeper</h3><p>Three mice a night.</p></section></section>
<section id="stub"><h2>Stub</h2></section></section></div></body></html>"""


def test_there_are_sixty_questions_each_with_an_answer_and_a_place() -> None:
    questions, judgements, gold = python_questions(), python_judgements(), python_gold()
    assert len(questions) == 60
    assert questions.keys() == judgements.keys() == gold.keys()
    assert len(set(questions.values())) == 60
    assert all(2 in judged.values() for judged in judgements.values())
    assert {grade for judged in judgements.values() for grade in judged.values()} == {1, 2}


def test_gold_accepts_its_own_answer_and_not_the_question() -> None:
    gold, questions = python_gold(), python_questions()
    assert all(answer.accepts(f"It is {' '.join(answer.must_contain).upper()}!") for answer in gold.values())
    assert [identity for identity, answer in gold.items() if answer.accepts(questions[identity])] == []


def test_a_page_is_cut_into_its_sections_of_the_second_level() -> None:
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


def test_pages_without_sections_give_nothing() -> None:
    assert list(page_sections(b"<html><body><p>nothing here</p></body></html>", "x.html")) == []
    assert list(page_sections(b"", "x.html")) == []


def test_without_the_package_the_build_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(SnapshotInputError, match=r"apt-get install python3\.11-doc"):
        build_python_docs(tmp_path / "snapshot", tmp_path)


@pytest.fixture(scope="module")
def library_docs(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    if not INSTALLED.is_dir():
        pytest.skip("needs the package python3.11-doc")
    root = tmp_path_factory.mktemp("docs")
    wanted = sorted({name.partition("#")[0] for judged in python_judgements().values() for name in judged})
    for page in wanted:
        (root / "html" / page).parent.mkdir(parents=True, exist_ok=True)
        (root / "html" / f"{page}.html").write_bytes((INSTALLED / f"{page}.html").read_bytes())
    options = BuildOptions(extractor="whole-page")
    build_snapshot([PythonDocs(root / "html")], root / "snapshot", options, Pace(workers=2))
    return open_snapshot(root / "snapshot")


def test_every_judged_document_is_there_and_holds_what_it_is_said_to_hold(library_docs: Snapshot) -> None:
    gold = python_gold()
    for identity, judged in python_judgements().items():
        for name, grade in judged.items():
            document = library_docs.find(name)
            assert document is not None, name
            if grade == 2:
                assert gold[identity].accepts(f"{document.title} {document.text}"), (identity, name)


def test_most_answers_are_found_among_the_first_ten(library_docs: Snapshot) -> None:
    quality = measure_snapshot(library_docs, python_questions(), python_judgements())
    assert quality.means["R@10"] > 0.6
    assert quality.means["RR"] > 0.5
