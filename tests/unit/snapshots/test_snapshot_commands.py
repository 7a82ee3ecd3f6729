"""The snapshot commands, their output and their one-line errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fumehood_snapshots.cli.group import COMMANDS, snapshot
from tests.unit.snapshots.building import ANIMALS, build, flip_byte, write_jsonl
from tests.unit.snapshots.sites import article, serving


def _run(*arguments: object, status: int = 0) -> Result:
    result = CliRunner().invoke(snapshot, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    build(tmp_path / "animals")
    return tmp_path / "animals"


def test_every_command_has_help() -> None:
    listed = _run("--help").output
    for name in COMMANDS:
        assert name in listed
        assert "Usage:" in _run(name, "--help").output


def test_build_makes_a_valid_snapshot(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "c.jsonl", [{"docid": "x", "text": "An owl"}, {"docid": "y"}])
    out = tmp_path / "out"
    built = _run(
        "build", out, "--jsonl", corpus, "--key", "id=docid", "--licence", "CC0", "--workers", 1
    )
    assert "1 document," in built.output
    assert "1 broken" in built.output
    digest = built.output.split("digest ")[1].strip()
    assert digest in _run("verify", out).output
    arguments = json.loads(_run("info", out, "--json").output)
    assert (arguments["digest"], arguments["licences"]) == (digest, ["CC0"])
    assert "CC0" in _run("info", out).output
    hit = json.loads(_run("search", out, "owls", "--json").output)
    assert hit["id"] == "x"


def test_a_build_without_documents_leaves_no_folder_and_reports_the_first_line(
    tmp_path: Path,
) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("not json\n{}\n", encoding="utf-8")
    said = _run("build", tmp_path / "out", "--jsonl", corpus, "--workers", 1, status=1).output
    assert "all 2 pages are broken; c.jsonl:1: not JSON" in said
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


def test_an_invalid_url_is_refused(tmp_path: Path) -> None:
    said = _run(
        "build", tmp_path / "out", "--folder", tmp_path, "--base-url", "notaurl", status=1
    ).output
    assert "'notaurl' is not a URL" in said


def test_a_misspelt_command_is_answered_with_the_nearest_name() -> None:
    assert "unknown command 'bild'; did you mean build?" in _run("bild", status=2).output


def test_build_reads_folders_and_archives_too(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "owl.html").write_text(article("owls"), encoding="utf-8")
    _run(
        "build",
        tmp_path / "a",
        "--folder",
        tmp_path / "site",
        "--base-url",
        "https://e.example/",
        "--workers",
        1,
    )
    warc = tmp_path / "a" / "captures" / "pages.warc"
    _run("build", tmp_path / "b", "--warc", warc, "--workers", 1)
    assert "https://e.example/owl.html" in _run("search", tmp_path / "b", "owls", "--json").output


def test_search_prints_a_list_and_filters(animals: Path) -> None:
    lines = _run("search", animals, "mice", "-k", 5).output.splitlines()
    assert lines[0].split()[0] == "1"
    assert {line.split()[2] for line in lines[::2]} == {"owl", "fox"}
    nothing = _run("search", animals, "mice", "--filter", "host=zoo.example")
    assert (nothing.stdout, nothing.stderr) == ("", "no hits\n")


def test_search_prints_no_terminal_escapes(tmp_path: Path) -> None:
    build(
        tmp_path / "s",
        [{"id": "x", "title": "a\x1b[31mred", "text": "owl \x1b]0;title\x07 \u202e owl"}],
    )
    output = _run("search", tmp_path / "s", "owl").output
    assert "\x1b" not in output
    assert "\u202e" not in output


def test_diff_lists_the_differences(tmp_path: Path, animals: Path) -> None:
    assert _run("diff", animals, animals).output == "equal\n"
    changed = [{**ANIMALS[0], "title": "Kittens"}, *ANIMALS[2:], {"id": "yak", "text": "A yak"}]
    build(tmp_path / "other" / "snapshot", changed)
    output = _run("diff", animals, tmp_path / "other" / "snapshot", status=1).output
    assert "only left  dog" in output
    assert "only right  yak" in output
    assert "changed  cat: title" in output
    assert "provenance.inputs" in output


def test_record_and_build_work_together(tmp_path: Path) -> None:
    with serving({"/": article("birds", "/owls"), "/owls": article("owls")}) as site:
        host = f"127.0.0.1:{site.port}"
        recorded = _run(
            "record", tmp_path / "r", f"{site.url}/", "http://elsewhere.example/",
            "--allow", host, "--allow-private", host, "--depth", 1, "--pause", 0,
        )  # fmt: skip
    assert "2 pages recorded, 1 failed" in recorded.output
    _run(
        "build",
        tmp_path / "s",
        "--recording",
        tmp_path / "r",
        "--extractor",
        "resiliparse",
        "--workers",
        1,
    )
    assert f"{site.url}/owls" in _run("search", tmp_path / "s", "owls", "--json").output
    assert (tmp_path / "s" / "recorded" / "requests.jsonl").exists()


def test_record_fails_if_no_page_was_recorded(tmp_path: Path) -> None:
    url = "http://elsewhere.example:8080/"
    recorded = _run("record", tmp_path / "r", url, "--allow", "elsewhere.example", status=1)
    assert f"{url}: host_not_allowed: elsewhere.example:8080 is not on the list" in recorded.output
    assert "no page was recorded" in recorded.output


def test_measure_prints_means_and_questions(tmp_path: Path, animals: Path) -> None:
    (tmp_path / "q.tsv").write_text("q1\tmice\n", encoding="utf-8")
    (tmp_path / "qrels").write_text("q1 0 owl 1\n", encoding="utf-8")
    arguments = (
        "measure",
        animals,
        "--questions",
        tmp_path / "q.tsv",
        "--qrels",
        tmp_path / "qrels",
    )
    assert "R@5        1.0000" in _run(*arguments).output
    assert json.loads(_run(*arguments, "--json").output)["by_question"]["q1"]["R@5"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("verify", "{tmp}"), "is not a snapshot"),
        (("info", "{tmp}/absent"), "is not a snapshot"),
        (("build", "{tmp}/out"), "nothing to build"),
        (("build", "{tmp}/out", "--jsonl", "{tmp}/absent"), "no such file"),
        (("build", "{tmp}/animals", "--jsonl", "{tmp}/input.jsonl"), "exists"),
        (
            ("build", "{tmp}/out", "--jsonl", "{tmp}/input.jsonl", "--key", "id"),
            "--key must have the form",
        ),
        (("record", "{tmp}/r", "--allow", "x"), "no URL to record"),
        (("search", "{tmp}/animals", "x", "--filter", "host"), "--filter must have the form"),
        (("search", "{tmp}/animals", "x", "--filter", "a=b"), "unknown filter field 'a'"),
        (("measure", "{tmp}/animals"), "give --questions"),
        (("python-doc", "{tmp}/out", "--html", "{tmp}"), "apt-get install"),
    ],
)
def test_an_input_error_is_one_line(
    tmp_path: Path, animals: Path, arguments: tuple[str, ...], named: str
) -> None:
    output = _run(*(argument.format(tmp=tmp_path) for argument in arguments), status=1).output
    assert named in output
    assert output.count("\n") == 1


def test_a_damaged_snapshot_is_reported(animals: Path) -> None:
    flip_byte(animals / "index" / "weights.npy", -1)
    assert "index/weights.npy has changed" in _run("verify", animals, status=1).output


def test_results_are_printed_as_json(tmp_path: Path) -> None:
    built = json.loads(_run("almanac", tmp_path / "a", "--json").stdout)
    assert built["counts"]["documents"] == 30
    verified = json.loads(_run("verify", tmp_path / "a", "--json").stdout)
    assert (verified["digest"], verified["path"]) == (built["digest"], str(tmp_path / "a"))
    build(tmp_path / "b" / "snapshot", [*ANIMALS[1:], {"id": "yak", "text": "A yak"}])
    differences = json.loads(
        _run("diff", tmp_path / "a", tmp_path / "b" / "snapshot", "--json", status=1).stdout
    )
    assert "yak" in differences["only_right"]
    equal = json.loads(_run("diff", tmp_path / "a", tmp_path / "a", "--json").stdout)
    assert equal == {"settings": {}, "only_left": [], "only_right": [], "changed": []}
