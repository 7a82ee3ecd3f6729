"""JUnit XML: one test suite per agent, one test case per episode.

Source: the schema of Jenkins' xUnit plugin, ``junit-10.xsd``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from fumehood.core.outcome import Infra, outcome_name
from fumehood.exports.exported import ExportedEpisode, ExportedRun
from fumehood.scorers.verdict import marks_of

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids."""


def test_results(run: ExportedRun) -> Iterator[tuple[str, bytes]]:
    """Yield one file with all episodes."""
    root = ElementTree.Element("testsuites", name=_xml(run.suite))
    for agent in run.agents:
        suite = ElementTree.SubElement(root, "testsuite", name=_xml(f"{run.suite} / {agent}"))
        wall_ms, cases = 0, []
        for episode in run.episodes(agent):
            wall_ms += episode.row.wall_ms
            cases.append(_case(suite, run, episode))
        counted = ("failure", "error", "skipped")
        counts = {kind: sum(case.find(kind) is not None for case in cases) for kind in counted}
        suite.set("tests", str(len(cases)))
        suite.set("failures", str(counts["failure"]))
        suite.set("errors", str(counts["error"]))
        suite.set("skipped", str(counts["skipped"]))
        suite.set("time", str(wall_ms / 1000))
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    yield "junit.xml", content


def _case(
    suite: ElementTree.Element, run: ExportedRun, episode: ExportedEpisode
) -> ElementTree.Element:
    row = episode.row
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_xml(f"{run.suite}.{row.name.agent}"),
        name=_xml(f"{row.name.task}[{row.name.trial}]"),
        time=str(row.wall_ms / 1000),
    )
    if marks := marks_of(row.score.metrics):
        properties = ElementTree.SubElement(case, "properties")
        for name, own in marks.items():
            ElementTree.SubElement(properties, "property", name=name, value=str(own))
    if isinstance(row.outcome, Infra):
        message = f"{outcome_name(row.outcome)}: {row.outcome.detail}"
        ElementTree.SubElement(case, "error", message=_xml(message), type="infra")
    elif row.score.success is None:
        ElementTree.SubElement(case, "skipped", message="not graded")
    elif not row.score.success:
        checks = ", ".join(episode.failed_checks)
        message = f"{outcome_name(row.outcome)}; checks that do not hold: {checks}"
        ElementTree.SubElement(case, "failure", message=_xml(message), type="check")
    return case


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
