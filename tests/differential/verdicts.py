"""Compares verdicts, stores those of originals, and writes the tables of the benchmarks' pages.

A stored verdict is a hash and a number. No text of a benchmark is stored.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fumehood.core.json_values import JsonObject
from tests.differential.comparisons import (
    PROJECT,
    Comparison,
    Item,
    is_compared,
    reason_of,
)
from tests.differential.perturbations import KEY_BYTES

FORMAT = "fumehood.differential/1"
FOLDER = Path(__file__).parent / "verdicts"
SECTION = re.compile(r"\n## Comparison with the original\n.*?(?=\n## |\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Part:
    """The original's verdicts on the trajectories of one source."""

    source: str
    seed: int
    keys: Sequence[bytes]
    verdicts: Sequence[str]

    @staticmethod
    def of(source: str, seed: int, items: Sequence[Item], verdicts: Sequence[str]) -> Part:
        return Part(source, seed, [item.key for item in items], verdicts)

    def to_json(self) -> JsonObject:
        table = sorted(set(self.verdicts))
        codes = b"".join(table.index(verdict).to_bytes(2, "big") for verdict in self.verdicts)
        return {
            "source": self.source,
            "seed": self.seed,
            "count": len(self.keys),
            "keys": b64encode(b"".join(self.keys)).decode(),
            "table": [*table],
            "codes": b64encode(codes).decode(),
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> Part:
        keys, codes = b64decode(value["keys"]), b64decode(value["codes"])
        return Part(
            value["source"],
            value["seed"],
            [keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)],
            [
                value["table"][int.from_bytes(codes[at : at + 2], "big")]
                for at in range(0, len(codes), 2)
            ],
        )


@dataclass(slots=True)
class Tally:
    """The counts of a comparison."""

    comparison: Comparison
    compared: int = 0
    passed: int = 0
    """Compared trajectories that pass in the original."""
    not_compared: int = 0
    """The original raises an exception, or Fumehood grades nothing without a judge."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Disagreements by reason."""
    unexplained: list[str] = field(default_factory=list)
    through_services: int = 0
    """Trajectories that were played through real services; the others have no episode."""

    @property
    def agreed(self) -> int:
        return self.compared - sum(self.reasons.values()) - len(self.unexplained)

    def line(self, source: str) -> str:
        return (
            f"{source}: so far {self.agreed} of {self.compared} agree, "
            f"{self.passed} pass, {self.not_compared} not compared"
        )

    def to_json(self) -> JsonObject:
        return {
            "benchmark": self.comparison.name,
            "original": self.comparison.original,
            "compared": self.compared,
            "agreed": self.agreed,
            "passed_in_original": self.passed,
            "not_compared": self.not_compared,
            "through_services": self.through_services,
            "disagreements": dict(sorted(self.reasons.items())),
            "unexplained": [*self.unexplained],
        }


def compare(
    tally: Tally, source: str, items: Sequence[Item], here: Sequence[str], there: Sequence[str]
) -> Iterator[str]:
    """Add the verdicts on one source to a tally; yield a line for each disagreement."""
    for number, (item, local, original) in enumerate(zip(items, here, there, strict=True)):
        if not is_compared(local, original):
            tally.not_compared += 1
            continue
        tally.compared += 1
        tally.passed += "0" not in original.split(":")[0]
        if local == original:
            continue
        kinds = "" if item.trajectory is None else f" ({', '.join(item.trajectory.kinds)})"
        text = (
            f"{source}, trajectory {number}, task {item.question.get('task')}{kinds}: "
            f"{local} here, {original} in the original"
        )
        reason = reason_of(tally.comparison, item, local, original)
        if reason is None:
            tally.unexplained.append(text)
        else:
            tally.reasons[reason] += 1
        yield f"{text}; {reason or 'no reason is known'}"


def read_summary(comparison: Comparison) -> dict[str, Any]:
    """Return the stored counts of a benchmark, with its parts."""
    stored: dict[str, Any] = json.loads(_path(comparison).read_text(encoding="ascii"))
    return stored


def has_verdicts(comparison: Comparison) -> bool:
    """Return whether verdicts of the original are stored."""
    return _path(comparison).exists()


def read_parts(comparison: Comparison) -> list[Part]:
    """Return the stored verdicts of a benchmark."""
    return [Part.from_json(part) for part in read_summary(comparison)["parts"]]


def write_parts(tally: Tally, parts: Sequence[Part]) -> None:
    """Store the verdicts and the counts."""
    value = {"format": FORMAT, **tally.to_json(), "parts": [part.to_json() for part in parts]}
    text = json.dumps(value, indent=1, ensure_ascii=True)
    _path(tally.comparison).write_text(f"{text}\n", encoding="ascii")


def write_page(tally: Tally) -> None:
    """Replace the section of the benchmark's page about the comparison."""
    comparison = tally.comparison
    page = PROJECT / "runner" / "fumehood" / "benchmarks" / comparison.name / "README.md"
    text = SECTION.sub("", page.read_text(encoding="utf-8")).rstrip("\n")
    page.write_text(f"{text}\n{_section(tally)}", encoding="utf-8")


def _section(tally: Tally) -> str:
    compared = max(tally.compared, 1)
    lines = [
        "",
        "## Comparison with the original",
        "",
        "`make differential` scores perturbed trajectories here and with "
        f"{tally.comparison.original}.",
        "",
        "| trajectories | count |",
        "| --- | --- |",
        f"| compared | {tally.compared} |",
        f"| agreed | {tally.agreed} ({tally.agreed / compared:.2%}) |",
        f"| passed in the original | {tally.passed} ({tally.passed / compared:.0%}) |",
        f"| not compared: the original raises, or a judge is needed | {tally.not_compared} |",
        f"| played through real services | {tally.through_services} |",
    ]
    if without := tally.compared + tally.not_compared - tally.through_services:
        lines.append(f"| questions to rules, without an episode | {without} |")
    if tally.reasons:
        lines += ["", "| disagreements | right | reason |", "| --- | --- | --- |"]
        lines += [
            f"| {tally.reasons[reason.name]} | {reason.right} | {reason.text} |"
            for reason in tally.comparison.reasons
            if tally.reasons[reason.name]
        ]
        command = f"python -m tests.differential --only {tally.comparison.name}"
        lines += ["", f"`{command}` prints each of them."]
    return "\n".join([*lines, ""])


def _path(comparison: Comparison) -> Path:
    return FOLDER / f"{comparison.name}.json"
