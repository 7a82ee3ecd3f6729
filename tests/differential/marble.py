"""Random replies of MARBLE's judge, and random names of root causes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from fumehood.benchmarks.marble.judge_prompts import (
    RATINGS,
    SIDE_RATINGS,
    read_milestones,
    read_ratings,
    read_score,
    read_side_ratings,
)
from fumehood.benchmarks.marble.scorer import score_causes
from fumehood.benchmarks.marble.world_bargaining import SIDES
from tests.differential.comparisons import Item
from tests.differential.sources import RandomItems, _key

_VALUES: tuple[Any, ...] = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    4.7,
    "4",
    " 3 ",
    "four",
    None,
    True,
    [],
    -1,
    2.0,
    "5.0",
)
_GOOD = (3, 4, 5)
_FORMS = (
    *("{}", "{}", "{}", "```json\n{}\n```", "```\n{}\n```", "Here it is: {}", "{} Thank you."),
    *(
        "{}\n{}",
        "First {{draft}}, then {}",
        "I give 4 of 5 points.",
        "",
        "none",
        "{} }}",
        "```json{}",
    ),
)
LABELS = ("INSERT_LARGE_DATA", "LOCK_CONTENTION", "VACUUM", "REDUNDANT_INDEX", "FETCH_LARGE_DATA")


def _value(rng: random.Random) -> Any:
    return rng.choice(_GOOD if rng.random() < 0.8 else _VALUES)


def _ratings(rng: random.Random, names: Sequence[str]) -> dict[str, Any]:
    """Return ratings, seldom without one of them."""
    kept = names if rng.random() < 0.9 else rng.sample(names, len(names) - 1)
    return {name: _value(rng) for name in kept}


def _content(rng: random.Random, kind: str) -> Any:
    if kind == "score":
        return _ratings(rng, ("rating",))
    if kind == "milestones":
        made = [
            {"milestone": f"step {at}", "agents": ["agent1"]} for at in range(rng.randint(0, 4))
        ]
        return made if rng.random() < 0.9 else {"milestones": made}
    if kind == "sides":
        sides = SIDES if rng.random() < 0.2 else (rng.choice(SIDES),)
        return {side: _ratings(rng, SIDE_RATINGS) for side in sides}
    return _ratings(rng, RATINGS[kind])


def _shown(values: Sequence[int]) -> str:
    return f"{int(bool(values) and fmean(values) >= 3)}:{','.join(map(str, values))}"


class JudgeReplies(RandomItems):
    """Replies in many forms to every question of the judge."""

    def _item(self, rng: random.Random) -> Item:
        kind = rng.choice(("score", "milestones", "sides", *RATINGS))
        text = json.dumps(_content(rng, kind), indent=rng.choice((None, 2)))
        if rng.random() < 0.1:
            text = text.replace("\n", "\\n")
        if rng.random() < 0.1:
            text = text[: rng.randint(0, len(text))]
        form = rng.choice(_FORMS)
        reply = form.format(text, text) if form.count("{}") > 1 else form.format(text)
        return Item(_key(kind, reply), {"kind": kind, "reply": reply})

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        for item in items:
            kind, reply = item.question["kind"], item.question["reply"]
            if kind == "score":
                yield _shown([read_score(reply)])
            elif kind == "milestones":
                count = len(read_milestones(reply))
                yield f"{int(count > 0)}:{count}"
            elif kind == "sides":
                ratings = read_side_ratings(reply)
                yield _shown([ratings[side][name] for side in SIDES for name in SIDE_RATINGS])
            else:
                values = read_ratings(reply, kind)
                yield _shown([values[name] for name in sorted(values)])


class RootCauses(RandomItems):
    """Two names of root causes, as a model reads them from a text for the original."""

    def _item(self, rng: random.Random) -> Item:
        causes = rng.sample(LABELS, rng.randint(1, 2))
        right = [name for name in causes if rng.random() < 0.7]
        others = rng.sample([name for name in LABELS if name not in right], 2 - len(right))
        named = rng.sample(right + others, 2)
        return Item(_key(causes, named), {"kind": "causes", "causes": causes, "named": named})

    def score(self, items: Sequence[Item], *, service: bool) -> Iterator[str]:
        for item in items:
            criterion = {
                "labels": [*LABELS],
                "root_causes": item.question["causes"],
                "names_max": 2,
            }
            text = f"Root causes: {', '.join(item.question['named'])}"
            success, metrics = score_causes(criterion, text)
            yield f"{int(success)}:{metrics['task_completion']:.2f}"
