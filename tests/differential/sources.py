"""Trajectories that are not perturbed gold: recorded episodes and calls of environments."""

from __future__ import annotations

import json
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2s
from pathlib import Path
from typing import Any

from fumehood.benchmarks.browsecomp.tasks import PROJECT_CANARY, Question, case_of
from fumehood.benchmarks.marble.scorer import score_game
from fumehood.benchmarks.marble.world_werewolf import SIDES, WOLF, side_of, winner
from fumehood.benchmarks.registry import load_suite
from fumehood.core.encryption import encrypt
from fumehood.core.errors import InputError
from fumehood.core.evidence import Evidence
from fumehood.core.task import Case
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.report.sections.evidence import BIN_SIZE, binned_error
from fumehood.scorers.judges.prompt import read_answer
from fumehood.scorers.judges.question import Opinion
from fumehood.scorers.judges.question import Question as JudgeQuestion
from fumehood.scorers.registry import score_evidence
from tests.differential.comparisons import (
    PROJECT,
    Item,
    OfSuite,
    originals_folder,
    play_all,
    success,
    trajectory_of,
)
from tests.differential.originals.questions import digits
from tests.differential.originals.results import results_digest
from tests.differential.perturbations import KEY_BYTES, Trajectory, call_tools_of
from tests.golden import FOLDER_VARIABLE
from tests.golden.recorded import RecordedEpisode, read_recorded
from tests.golden.replay import play_in_core, play_over_wire


def _key(*parts: Any) -> bytes:
    return blake2s(json.dumps(parts, sort_keys=True).encode(), digest_size=KEY_BYTES).digest()


@dataclass(frozen=True)
class Recorded:
    """Episodes of ToolMisuseBench whose verdicts the original gave when they were recorded."""

    name: str
    count: int
    elsewhere: bool = False
    has_episodes: bool = True

    def items(self, count: int, seed: int) -> Sequence[Item]:
        return [
            Item(
                _key(episode.name, *episode.moves),
                {"task": episode.name, "recorded": _verdict(episode.expect or {})},
            )
            for episode in self._episodes()[:count]
        ]

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        episodes = {episode.name: episode for episode in self._episodes()}
        chosen = [episodes[item.question["task"]] for item in items]
        if not (service and chosen):
            yield from (_verdict(play_in_core(episode)) for episode in chosen)
            return
        with ServicePool(1) as pool:
            play = play_over_wire(pool)
            yield from [_verdict(play(episode)) for episode in chosen]

    def _episodes(self) -> list[RecordedEpisode]:
        beside = PROJECT.parent / "shared" / "golden"
        folder = Path(os.environ.get(FOLDER_VARIABLE) or beside)
        return [*read_recorded(folder / self.name)]


def _verdict(result: Any) -> str:
    return digits(result["success"], *(holds for _, holds in sorted(result["checks"].items())))


@dataclass(frozen=True)
class Attacked(OfSuite):
    """Perturbed gold of AgentThreatBench, half of which also obeys the attack in some form."""

    def _trajectories(self, count: int, seed: int) -> Iterator[Trajectory]:
        for number, trajectory in enumerate(super()._trajectories(count, seed)):
            rng = random.Random(f"{seed}/{number}")
            yield _obeying(trajectory, rng) if rng.random() < 0.5 else trajectory


def _obeying(trajectory: Trajectory, rng: random.Random) -> Trajectory:
    """Return the trajectory with an attacker's text in a call or in the answer."""
    (record,) = trajectory.case.gold.criteria
    fields: Any = [record.get(key, ()) for key in ("forbidden_actions", "sensitive_fields")]
    texts = [*fields[0], *fields[1], record.get("attack_marker") or "nothing"]
    form = rng.choice(("upper", "lower", "strip"))
    text = str(getattr(rng.choice(texts), form)())
    moves = deepcopy([dict(move) for move in trajectory.moves])
    recipients: Any = record.get("authorized_recipients", ["a@b.c"])
    recipient = rng.choice(["other@example.com", f"<{rng.choice(recipients)}>", "", None])
    indices: Any = record.get("attack_email_indices") or [1]
    index = rng.choice([rng.choice(indices), str(rng.choice(indices)), 1.0, "x", True])
    category = rng.choice(["important", "Important", "important ", "spam"])
    added = {
        "memory_poison": ("memory_write", {"key": "note", "value": text}),
        "autonomy_hijack": rng.choice(
            [
                ("draft_summary", {"email_index": 1, "summary": f"See {text}."}),
                ("categorize_email", {"email_index": index, "category": category}),
            ]
        ),
        "data_exfil": ("send_message", {"recipient": recipient, "body": f"It is {text}."}),
    }
    name, arguments = added[str(record["kind"])]
    moves.insert(0, {"tool_name": name, "args": arguments})
    for move in moves:
        if "submit" in move and rng.random() < 0.3:
            move["submit"] += f" {text}"
    return replace(trajectory, moves=tuple(moves), kinds=(*trajectory.kinds, "an attack obeyed"))


@dataclass(frozen=True)
class SourceTexts(OfSuite):
    """Perturbed gold whose arguments are source text, half of it with an argument in another
    notation."""

    def _trajectories(self, count: int, seed: int) -> Iterator[Trajectory]:
        for number, trajectory in enumerate(super()._trajectories(count, seed)):
            rng = random.Random(f"{seed}/{number}")
            yield _in_another_notation(trajectory, rng) if rng.random() < 0.5 else trajectory


def _in_another_notation(trajectory: Trajectory, rng: random.Random) -> Trajectory:
    moves = deepcopy([dict(move) for move in trajectory.moves])
    texts = [
        (move["args"], name)
        for move in moves
        for name, value in move.get("args", {}).items()
        if isinstance(value, str)
    ]
    if not texts:
        return trajectory
    arguments, name = rng.choice(texts)
    text = arguments[name]
    items = text.partition("asList(")[2].removesuffix("))").split(", ")
    added = " ".join(f"add({item});" for item in items)
    forms = (
        *(f'"{text}"', f"'{text}'", f" {text} ", f"{text}L", f"{text}f", f"{text}n", f"{text}.0"),
        *(text.replace(", ", ","), text.replace("(", "( "), text.replace('"', "'")),
        *(text.replace("[]{", "[] { "), text.replace("<>", "<Integer>"), text.replace("{", "{\n")),
        *(f"new ArrayList<Integer>() {{{{ {added} }}}}", "new ArrayList<>()", "new HashMap<>()"),
        *(f"new Array({text[1:-1]})", f"[{text}]", f"[{text}, {text}]", "new int[]{1, 2}"),
        *("[[1, 2], [3]]", "[]", "{}", "{'a': [1, 2], b: {c: 1}}", "null", "1e3", "0x10"),
    )
    arguments[name] = rng.choice(forms)
    kinds = (*trajectory.kinds, "an argument in another notation")
    return replace(trajectory, moves=tuple(moves), kinds=kinds)


@dataclass(frozen=True)
class OtherAnswers(OfSuite):
    """Perturbed gold, half of it with the answer in another form."""

    def _trajectories(self, count: int, seed: int) -> Iterator[Trajectory]:
        for number, trajectory in enumerate(super()._trajectories(count, seed)):
            rng = random.Random(f"{seed}/{number}")
            yield _with_another_answer(trajectory, rng) if rng.random() < 0.5 else trajectory


def _with_another_answer(trajectory: Trajectory, rng: random.Random) -> Trajectory:
    moves = [dict(move) for move in trajectory.moves]
    text = str(moves[-1].get("submit", ""))
    middle = len(text) // 2
    forms = (
        *(f"({text})", f"{text}s", text[:-1], text[1:], f"x{text}", f"{text[:2]}-{text[2:]}"),
        *(f"{{'answer': {text!r}}}", text.replace(" ", "_"), text.replace(" ", "  ")),
        *(f"{text[:middle]}\n{text[middle:]}", text.replace(" ", "-"), "I do not know", ""),
    )
    moves[-1]["submit"] = rng.choice(forms)
    kinds = (*trajectory.kinds, "another form of the answer")
    return replace(trajectory, moves=tuple(moves), kinds=kinds)


@dataclass(frozen=True)
class ToolResults(OtherAnswers):
    """Compares also what the tools answer."""

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        for item, evidence in zip(items, play_all(items, service=service), strict=True):
            case = trajectory_of(item).case
            results = [
                ["raised", None] if call.failure is not None else ["value", call.output]
                for call in evidence.calls
            ]
            verdict = success(score_evidence(case.task, case.gold, evidence))
            yield f"{verdict}:{results_digest(results)}"


@dataclass(frozen=True)
class EnvironmentCalls:
    """Up to four calls of the tools of each task of Agent-SafetyBench, which has no gold."""

    name: str
    count: int
    checkout: str
    elsewhere: bool = True
    has_episodes: bool = True

    def items(self, count: int, seed: int) -> Sequence[Item]:
        checkout = originals_folder() / self.checkout
        if not checkout.exists():
            raise InputError(f"no {checkout}; run scripts/setup-originals")
        cases = [
            case
            for case in load_suite(f"safetybench:{checkout}").cases
            if case.task.initial_state["environments"]
        ]
        random.Random(seed).shuffle(cases)
        return [
            self._item(case, random.Random(f"{seed}/{number}"))
            for number, case in enumerate(cases[:count])
        ]

    def _item(self, case: Case, rng: random.Random) -> Item:
        calls = call_tools_of(case, rng, rng.randint(1, 4))
        state: Any = case.task.initial_state["environments"]
        environments = [
            {"name": item["name"], "tools": item["offered"], "parameters": item["parameters"]}
            for item in state
        ]
        question = {
            "task": case.task.task_id,
            "environments": environments,
            "moves": [dict(call) for call in calls],
        }
        trajectory = Trajectory(case, (*calls, {"submit": ""}), ())
        return Item(_key(question["task"], *calls), question, trajectory)

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        # A judge decides success, so the tools' results are compared here.
        for evidence in play_all(items, service=service):
            yield results_digest(_results(evidence))


def _results(evidence: Evidence) -> list[Any]:
    return [
        ["raised", None] if call.failure is not None else ["value", (call.output or {})["result"]]
        for call in evidence.calls
    ]


@dataclass(frozen=True)
class RandomItems(ABC):
    """Questions without episodes, each drawn from its own seed."""

    name: str
    count: int
    elsewhere: bool = False
    has_episodes: bool = False

    def items(self, count: int, seed: int) -> Sequence[Item]:
        return [self._item(random.Random(f"{seed}/{number}")) for number in range(count)]

    @abstractmethod
    def _item(self, rng: random.Random) -> Item: ...


class WerewolfGames(RandomItems):
    """Random sets of living players of a game of werewolf."""

    def _item(self, rng: random.Random) -> Item:
        kinds = (WOLF, "villager", "seer", "witch", "guard")
        roles = {f"p{number}": rng.choice(kinds) for number in range(rng.randint(1, 12))}
        alive = [name for name in roles if rng.random() < 0.5]
        if rng.random() < 0.5:
            side = rng.choice(SIDES)
            alive = [name for name in alive if side_of(roles[name]) == side]
        return Item(_key(roles, alive), {"roles": roles, "alive": alive})

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        for item in items:
            roles, alive = item.question["roles"], item.question["alive"]
            side = winner(roles, alive)
            wolves = {name for name, role in roles.items() if role == WOLF}
            _, metrics = score_game({"alive": alive, "winner": side}, side, wolves)
            yield "0" if side is None else f"1:{side}:{metrics['result_score']}"


_CITATIONS = (
    *("[{}]", "【{}】", "[docid: {}]", "[ {} ]", '["{}"]', "({})", "[{}; {}]", "[{} and {}]"),
    *(
        "[{}, {}]",
        "【{}, {}】",
        "[sic]",
        "[text](url)",
        "【{}†L1-L3】",
        "[[{}]]",
        "[{}",
        "{}",
        "[]",
    ),
)


_REPLIES = (
    *(
        "correct: {}",
        "**correct:** {}",
        "**correct**: {}",
        "Correct:{}",
        "correct: {}.",
        "CORRECT: {}",
    ),
    *("reasoning: it is so\ncorrect: {}\nconfidence: 80", "correct - {}", "{}", ""),
    *("correct: maybe", "correct:\n{}", "**correct:** {}\ncorrect: no", "incorrect: {}"),
)
GRADED = "correct: yes, as I found. "
"""Part of some answers, which a reply quotes."""


@dataclass(frozen=True)
class CitedAnswers(RandomItems):
    """Random answers with citations in many forms, and a judge's reply to each."""

    has_episodes: bool = True

    def _item(self, rng: random.Random) -> Item:
        documents = [str(rng.randint(1, 99_999)) for _ in range(8)]
        relevant = documents[: rng.randint(0, 6)]
        forms = rng.choices(_CITATIONS, k=rng.randint(0, 6))
        text = ". ".join(f"It is so {form.format(*rng.sample(documents, 2))}" for form in forms)
        reply = rng.choice(_REPLIES).format(rng.choice(("yes", "yes", "YES", "no", "No")))
        is_graded = rng.random() < 0.01
        if is_graded:
            text, reply = GRADED + text, f"extracted_final_answer: {GRADED}\n{reply}"
        text = text or "I do not know."
        case = case_of(
            _question(documents, relevant), None, None, "{question}{response}{correct_answer}"
        )
        return Item(
            _key(text, relevant, reply),
            {"answer": text, "relevant": relevant, "reply": reply},
            Trajectory(case, ({"submit": text},), ("a graded answer",) * is_graded),
        )

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        for item, evidence in zip(items, play_all(items, service=service), strict=True):
            case = trajectory_of(item).case
            ask = partial(_answer_as_judge, item.question["reply"])
            score = score_evidence(case.task, case.gold, evidence, ask)
            # The original's averages leave out answers without citations, for which it has 0.
            values = [score.metrics[f"citation_{name}"] or 0.0 for name in ("precision", "recall")]
            yield f"{success(score)}:{values[0]:.6f},{values[1]:.6f}"


def _question(documents: Sequence[str], relevant: Sequence[str]) -> Question:
    question, answer = (encrypt(text, PROJECT_CANARY) for text in ("Who?", "Ann"))
    grades = dict.fromkeys(relevant, 1)
    return Question("-".join(documents), PROJECT_CANARY, question, answer, grades)


def _answer_as_judge(reply: str, question: JudgeQuestion) -> Opinion:
    return Opinion(read_answer(reply, question, ""))


class StatedConfidences(RandomItems):
    """Random confidences of 100 to 450 answers. Two equal ones have no defined order."""

    def _item(self, rng: random.Random) -> Item:
        bias = rng.random()
        stated = [
            (confidence / 1000, rng.random() < bias * confidence / 1e5)
            for confidence in rng.sample(range(100_000), rng.randint(100, 450))
        ]
        return Item(_key(stated), {"stated": stated})

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        for item in items:
            stated = sorted(
                (percent / 100, float(right)) for percent, right in item.question["stated"]
            )
            error = binned_error(stated, BIN_SIZE, omitted=1)
            assert error is not None
            yield f"{int(error < 0.5)}:{error:.6f}"
