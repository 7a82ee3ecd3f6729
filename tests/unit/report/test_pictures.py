"""Pictures are deterministic, use named colours, and need no network."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fumehood.report.findings import Findings
from fumehood.report.pictures import DARK, LIGHT, NARROW_PX, WIDE_PX, Picture, draw, in_light
from fumehood.report.sections.failures import COLOURS, failure_taxonomy
from fumehood.report.sections.registry import build_sections
from fumehood.report.statistics.failures import MEANINGS, Attribution, Label
from tests.unit.report.runs import findings_of, played


def pictures_of(findings: Findings) -> tuple[Picture, ...]:
    """Return the pictures of all sections."""
    return tuple(
        picture for section in build_sections(findings).values() for picture in section.pictures
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Picture, ...]:
    folder = tmp_path_factory.mktemp("pictures")
    return pictures_of(
        findings_of(
            played(folder / "run", "policy_aware", "instruction_parser", tasks=40, trials=2)
        )
    )


@pytest.mark.slow
def test_a_report_has_all_pictures_with_data(
    pictures: tuple[Picture, ...],
) -> None:
    assert [picture.name for picture in pictures] == [
        "success_by_fault",
        "success_by_domain",
        "budgeted_success",
        "calls_and_success",
        "effort_and_success",
        "repeated_trials",
        "differences",
        "flips_1",
        "failure_taxonomy",
    ]


def test_each_label_of_failures_has_its_own_colour() -> None:
    assert COLOURS.keys() == set(Label)
    assert len(set(COLOURS.values())) == len(Label)


def test_a_single_agent_has_no_comparison_pictures(tmp_path: Path) -> None:
    names = [
        picture.name
        for picture in pictures_of(findings_of(played(tmp_path / "run", "policy_aware")))
    ]
    assert not {"effort_and_success", "repeated_trials", "differences", "flips_1"} & set(names)


def test_failures_of_every_label_are_drawn_and_explained(tmp_path: Path) -> None:
    findings = findings_of(played(tmp_path / "run", "policy_aware"))
    (agent,) = findings.subjects
    failed = {str(label): Attribution(label, (), (), {}) for label in Label}
    agent = replace(agent, attributions=failed)
    picture = failure_taxonomy(replace(findings, subjects=(agent,)))
    assert draw(picture, WIDE_PX)
    assert all(meaning in picture.caption for meaning in MEANINGS.values())


@pytest.mark.slow
@pytest.mark.parametrize("width_px", [WIDE_PX, NARROW_PX])
def test_a_picture_has_the_requested_width_and_is_deterministic(
    pictures: tuple[Picture, ...], width_px: int
) -> None:
    for picture in pictures:
        svg = draw(picture, width_px)
        assert svg == draw(picture, width_px)
        assert float(ElementTree.fromstring(svg).attrib["width"]) <= width_px + 40


@pytest.mark.slow
def test_every_colour_has_a_name_with_a_light_and_a_dark_value(
    pictures: tuple[Picture, ...],
) -> None:
    assert LIGHT.keys() == DARK.keys()
    for picture in pictures:
        svg = draw(picture, WIDE_PX)
        named = set(re.findall(r"var\((--[a-z0-9-]+)\)", svg))
        assert named <= LIGHT.keys()
        assert set(re.findall(r'(?:fill|stroke)="(#[^"]+|rgb[^"]+)"', svg)) == set()
        assert "var(" not in in_light(svg)


@pytest.mark.slow
def test_marks_have_descriptions(pictures: tuple[Picture, ...]) -> None:
    for picture in pictures:
        marks = re.findall(
            r'aria-label="([^"]+)"[^>]*aria-roledescription="(?:point|bar)"', draw(picture, WIDE_PX)
        )
        assert marks, picture.name
        assert not [
            mark for mark in marks if "undefined" in mark or "NaN" in mark or "null" in mark
        ]
