"""Which task stands where: goal, faults, difficulty and budget follow from the position, so all balance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fumehood.benchmarks.seeded_choices import SeededChoices
from fumehood.benchmarks.toolmisuse.generate import crud, files, retrieval, scheduling
from fumehood.benchmarks.toolmisuse.generate.goal import Entity, Goal
from fumehood.benchmarks.toolmisuse.record import BudgetRecord, Difficulty, Domain, FaultType, Split

GoalMaker = Callable[[Entity, SeededChoices], Goal]

DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "hard")
RIVALS: Mapping[Difficulty, int] = {"easy": 3, "medium": 5, "hard": 8}
"""Difficulty → other entries in the state."""

BUDGETS: Mapping[str, BudgetRecord] = {
    name: BudgetRecord(max_steps=calls, max_tool_calls=calls, max_retries=retries, timeout_ms=1000)
    for name, calls, retries in (("tight", 3, 1), ("standard", 6, 2), ("relaxed", 10, 3))
}
"""Spec part 5."""

DOMAINS: tuple[Domain, ...] = ("crud", "retrieval", "files", "scheduling")


@dataclass(frozen=True, slots=True)
class Slot:
    """What the position of a task decides."""

    task_id: str
    domain: Domain
    difficulty: Difficulty
    families: tuple[FaultType, ...]
    budget: BudgetRecord
    entity: Entity
    make: GoalMaker
    seed: int


# Release 0.2: the published factorial (spec part 10).

FAULTS_0_2: tuple[FaultType | None, ...] = (
    None,
    "timeout",
    "rate_limit",
    "schema_drift",
    "authz",
    "adversarial_error",
)
_BASES = {"dev": 10_000, "test_public": 20_000, "train": 30_000}
"""Split → first entity number; the published one of train is not known."""
_LETTERS = {"dev": "d", "test_public": "t", "train": "r"}

_TEMPLATES_0_2: Mapping[Domain, Sequence[GoalMaker]] = {
    "crud": (crud.close_account, crud.update_account, crud.create_account),
    "retrieval": (retrieval.get_doc, retrieval.search_docs),
    "files": (files.write_file, files.read_file),
    "scheduling": (scheduling.create_job, scheduling.validate_cron),
}
"""By the entity's number, modulo how many there are."""

PERIOD_0_2 = len(DOMAINS) * len(FAULTS_0_2) * len(DIFFICULTIES) * len(BUDGETS)


def slot_0_2(split: Split, index: int, seed: int) -> Slot:
    """Return the slot at ``index``: domain, fault, difficulty and budget, the last changing fastest."""
    rest, budget = divmod(index % PERIOD_0_2, len(BUDGETS))
    rest, difficulty = divmod(rest, len(DIFFICULTIES))
    domain, fault = divmod(rest, len(FAULTS_0_2))
    family, level, budget_port = FAULTS_0_2[fault], DIFFICULTIES[difficulty], list(BUDGETS)[budget]
    number = _BASES[split] + 17 * index + 97 * (index // PERIOD_0_2)
    name = DOMAINS[domain]
    templates = _TEMPLATES_0_2[name]
    return Slot(
        task_id=f"{split}_v2_{name}_{family or 'clean'}_{level}_{budget_port}_{index:05d}",
        domain=name,
        difficulty=level,
        families=(family,) if family else (),
        budget=BUDGETS[budget_port],
        entity=_entity(split, number, level),
        make=templates[number % len(templates)],
        seed=seed * 1000 + _BASES[split] + index,
    )


# Release 0.1: domains, families and pairs of families in turn; no task without a fault.

_COMPANIONS: Mapping[FaultType, Sequence[FaultType | None]] = {
    "timeout": (None, None, "schema_drift", "adversarial_error"),
    "schema_drift": (None, None, "authz", "rate_limit"),
    "adversarial_error": (None, None, "authz", "rate_limit"),
    "authz": (None, None, "schema_drift", "adversarial_error"),
    "rate_limit": (None, None, "schema_drift", "adversarial_error"),
}
"""First family → what stands beside it, in turn. A fault behind one that strikes every call would never be
met, so no such pair is among them."""

_TEMPLATES_0_1: Mapping[Domain, Sequence[GoalMaker]] = {
    "crud": (crud.close_account, crud.update_account, crud.create_account, crud.get_account),
    "retrieval": (retrieval.get_doc, retrieval.search_docs),
    "files": (files.write_file, files.read_file, files.list_dir),
    "scheduling": (scheduling.create_job, scheduling.validate_cron, scheduling.list_jobs),
}


def slot_0_1(split: Split, index: int, seed: int) -> Slot:
    """Return the slot at ``index``: domains and families in turn, then what stands beside a family."""
    # Four domains and five families in turn meet in every pair within twenty tasks.
    domain, position = index % len(DOMAINS), index % len(_COMPANIONS)
    family = list(_COMPANIONS)[position]
    turn, beside = divmod(index // (len(DOMAINS) * len(_COMPANIONS)), len(_COMPANIONS[family]))
    companion = _COMPANIONS[family][beside]
    level = DIFFICULTIES[(turn + index) % len(DIFFICULTIES)]
    name = DOMAINS[domain]
    templates = _TEMPLATES_0_1[name]
    return Slot(
        task_id=f"{split}_{name}_{index:05d}",
        domain=name,
        difficulty=level,
        families=(family, companion) if companion else (family,),
        budget=BUDGETS["relaxed" if level == "hard" else "standard"],
        entity=_entity(split, _BASES[split] + 7 * index, level),
        make=templates[(turn + position + beside) % len(templates)],
        seed=seed * 1000 + _BASES[split] + index,
    )


def _entity(split: Split, number: int, difficulty: Difficulty) -> Entity:
    return Entity(number=number, split=split, letter=_LETTERS[split], rivals=RIVALS[difficulty])
