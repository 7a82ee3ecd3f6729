"""Derives goal, faults, difficulty and budget of a task from its position; suites are balanced.

Source: docs/reference/toolmisuse.md, Generated suites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from fumehood.benchmarks.shared.generator import split_sizes
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.benchmarks.toolmisuse.generate import crud, files, retrieval, scheduling
from fumehood.benchmarks.toolmisuse.generate.goal import Entity, Goal
from fumehood.benchmarks.toolmisuse.records import (
    SPLITS,
    BudgetRecord,
    Difficulty,
    Domain,
    FaultType,
    Split,
)

GoalMaker = Callable[[Entity, SeededChoices], Goal]

DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "hard")
RIVALS: Mapping[Difficulty, int] = {"easy": 3, "medium": 5, "hard": 8}
"""Difficulty → number of other entries in the state."""

BUDGETS: Mapping[str, BudgetRecord] = {
    name: BudgetRecord(max_steps=calls, max_tool_calls=calls, max_retries=retries, timeout_ms=1000)
    for name, calls, retries in (("tight", 3, 1), ("standard", 6, 2), ("relaxed", 10, 3))
}
"""Name → budget, as published."""

DOMAINS: tuple[Domain, ...] = ("crud", "retrieval", "files", "scheduling")


@dataclass(frozen=True, slots=True)
class Slot:
    """The properties of a task that its position determines."""

    task_id: str
    domain: Domain
    difficulty: Difficulty
    families: tuple[FaultType, ...]
    budget: BudgetRecord
    entity: Entity
    make: GoalMaker
    seed: int


# Release 0.2: the published factorial design.

FAULTS_0_2: tuple[FaultType | None, ...] = (
    None,
    "timeout",
    "rate_limit",
    "schema_drift",
    "authz",
    "adversarial_error",
)
_BASES = {"dev": 10_000, "test_public": 20_000, "train": 30_000}
"""Split → first entity number. The published value of train is unknown."""
_LETTERS = {"dev": "d", "test_public": "t", "train": "r"}

_TEMPLATES_0_2: Mapping[Domain, Sequence[GoalMaker]] = {
    "crud": (crud.close_account, crud.update_account, crud.create_account),
    "retrieval": (retrieval.get_doc, retrieval.search_docs),
    "files": (files.write_file, files.read_file),
    "scheduling": (scheduling.create_job, scheduling.validate_cron),
}
"""Indexed by the number of the entity modulo the number of templates."""

PERIOD_0_2 = len(DOMAINS) * len(FAULTS_0_2) * len(DIFFICULTIES) * len(BUDGETS)


def slot_0_2(split: Split, index: int, seed: int) -> Slot:
    """Return the slot at ``index``. The budget changes fastest, then difficulty, fault and
    domain."""
    rest, budget = divmod(index % PERIOD_0_2, len(BUDGETS))
    rest, difficulty = divmod(rest, len(DIFFICULTIES))
    domain, fault = divmod(rest, len(FAULTS_0_2))
    family, level, budget_name = FAULTS_0_2[fault], DIFFICULTIES[difficulty], list(BUDGETS)[budget]
    number = _BASES[split] + 17 * index + 97 * (index // PERIOD_0_2)
    name = DOMAINS[domain]
    templates = _TEMPLATES_0_2[name]
    return Slot(
        task_id=f"{split}_v2_{name}_{family or 'clean'}_{level}_{budget_name}_{index:05d}",
        domain=name,
        difficulty=level,
        families=(family,) if family else (),
        budget=BUDGETS[budget_name],
        entity=_entity(split, number, level),
        make=templates[number % len(templates)],
        seed=seed * 1000 + _BASES[split] + index,
    )


# Release 0.1: domains, families and pairs of families rotate; every task has a fault.

_COMPANIONS: Mapping[FaultType, Sequence[FaultType | None]] = {
    "timeout": (None, None, "schema_drift", "adversarial_error"),
    "schema_drift": (None, None, "authz", "rate_limit"),
    "adversarial_error": (None, None, "authz", "rate_limit"),
    "authz": (None, None, "schema_drift", "adversarial_error"),
    "rate_limit": (None, None, "schema_drift", "adversarial_error"),
}
"""First family → second families, in rotation. A fault behind one that fires on every call would
never fire, so such pairs are left out."""

_TEMPLATES_0_1: Mapping[Domain, Sequence[GoalMaker]] = {
    "crud": (crud.close_account, crud.update_account, crud.create_account, crud.get_account),
    "retrieval": (retrieval.get_doc, retrieval.search_docs),
    "files": (files.write_file, files.read_file, files.list_dir),
    "scheduling": (scheduling.create_job, scheduling.validate_cron, scheduling.list_jobs),
}


def slot_0_1(split: Split, index: int, seed: int) -> Slot:
    """Return the slot at ``index``. Domains and families rotate, then the second family."""
    # Four domains and five families form every pair within twenty tasks.
    domain, position = index % len(DOMAINS), index % len(_COMPANIONS)
    family = list(_COMPANIONS)[position]
    turn, companion_at = divmod(
        index // (len(DOMAINS) * len(_COMPANIONS)), len(_COMPANIONS[family])
    )
    companion = _COMPANIONS[family][companion_at]
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
        make=templates[(turn + position + companion_at) % len(templates)],
        seed=seed * 1000 + _BASES[split] + index,
    )


# Profile paper: calibrated to the paper's tables.


@dataclass(frozen=True, slots=True)
class Share:
    """The tasks of profile ``paper`` with one goal and one set of faults."""

    tasks: int
    """Number of tasks, of 1,000."""
    domain: Domain
    make: GoalMaker
    families: tuple[FaultType, ...]


SHARES_OF_PAPER: Sequence[Share] = (
    # The goal's tool is the first of the toolset, so default calls meet the fault. `heuristic`
    # does not repeat the call and fails; `schema_repair` repeats it and recovers.
    Share(168, "retrieval", retrieval.search_docs, ("timeout",)),
    Share(82, "retrieval", retrieval.search_docs, ("schema_drift",)),
    # The goal's tool comes later, and faults fire on the first call of an episode only. Default
    # calls meet no fault: `heuristic` succeeds. The first tool rejects default arguments, which
    # `schema_repair` repeats until no retry is left.
    Share(84, "files", files.list_dir, ("timeout",)),
    Share(42, "files", files.list_dir, ("schema_drift",)),
    Share(42, "scheduling", scheduling.validate_cron, ("timeout",)),
    Share(21, "scheduling", scheduling.validate_cron, ("schema_drift",)),
    Share(41, "scheduling", scheduling.list_jobs, ("timeout",)),
    Share(20, "scheduling", scheduling.list_jobs, ("schema_drift",)),
    # No call of the goal's tool succeeds. The position of this tool determines how many denials
    # default calls meet: `heuristic` one if it is the first or second tool, none if a third error
    # ends the episode there; `schema_repair` two if it is the first tool, otherwise none.
    Share(1, "crud", crud.get_account, ("authz",)),
    Share(43, "crud", crud.update_account, ("authz",)),
    Share(42, "files", files.write_file, ("authz",)),
    Share(25, "crud", crud.create_account, ("authz",)),
    Share(139, "crud", crud.close_account, ("authz",)),
    Share(25, "crud", crud.create_account, ("rate_limit",)),
    Share(17, "crud", crud.close_account, ("rate_limit", "adversarial_error")),
    Share(42, "files", files.read_file, ("rate_limit",)),
    Share(40, "files", files.write_file, ("rate_limit", "adversarial_error")),
    Share(83, "scheduling", scheduling.create_job, ("rate_limit",)),
    Share(43, "scheduling", scheduling.create_job, ("rate_limit", "adversarial_error")),
)
"""Solves the equations of Tables I and II for the three agents of the paper, for disjoint rows:
335 tasks with a timeout and 165 with drift give every printed digit."""

_PERIOD_OF_PAPER = sum(share.tasks for share in SHARES_OF_PAPER)
_STRIDE = 383
"""Coprime to the period, so that every part of a split has all kinds of tasks."""


def slot_of_paper(split: Split, index: int, seed: int) -> Slot:
    """Return the slot at ``index`` of profile ``paper``."""
    rank = index * _STRIDE % _PERIOD_OF_PAPER
    ends = accumulate(share.tasks for share in SHARES_OF_PAPER)
    share = next(share for share, end in zip(SHARES_OF_PAPER, ends, strict=True) if rank < end)
    level = DIFFICULTIES[index % len(DIFFICULTIES)]
    return Slot(
        task_id=f"{split}_paper_{share.domain}_{index:05d}",
        domain=share.domain,
        difficulty=level,
        families=share.families,
        budget=BUDGETS["standard"],
        entity=_entity(split, _BASES[split] + 7 * index, level),
        make=share.make,
        seed=seed * 1000 + _BASES[split] + index,
    )


def _entity(split: Split, number: int, difficulty: Difficulty) -> Entity:
    return Entity(number=number, split=split, letter=_LETTERS[split], rivals=RIVALS[difficulty])


# Sizes.


@dataclass(frozen=True, slots=True)
class Profile:
    """The size and the release of a suite."""

    name: str
    release: str
    """``"0.1"``, ``"0.2"`` or ``"paper"``: determines IDs, templates, faults and budgets."""
    sizes: Mapping[Split, int]
    """Split → number of tasks."""


def _sized(name: str, release: str, *sizes: int) -> Profile:
    return Profile(name, release, dict(zip(SPLITS, sizes, strict=True)))


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        _sized("default", "0.1", 24, 12, 12),
        _sized("small", "0.1", 200, 50, 50),
        _sized("medium", "0.1", 1000, 200, 300),
        _sized("large", "0.1", 5000, 800, 1000),
        _sized("v0.2_large", "0.2", 6000, 900, 1200),
        _sized("paper", "paper", 5000, 800, 1000),
    )
}


def profile_of(name: str, overrides: Mapping[str, int] | None = None) -> Profile:
    """Return a profile, with the split sizes that ``overrides`` names.

    Raises:
        InputError: there is no such profile or split, or a size is negative.
    """
    sizes = split_sizes(
        name, {profile.name: profile.sizes for profile in PROFILES.values()}, overrides or {}
    )
    return Profile(name, PROFILES[name].release, sizes)
