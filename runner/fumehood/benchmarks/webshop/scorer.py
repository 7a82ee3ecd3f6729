"""Scores purchases by the reward of WebShop.

Source: ``web_agent_site/engine/goal.py`` of WebShop 64fa2a5; ``token_set_ratio`` of thefuzz 0.22.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.native import NativeScorer, task_metrics

OP = "reward"
RATIO_MIN = 85


class WebShop:
    """Scorer of WebShop: success is a reward of 1."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score with the reward and its parts as metrics."""
        goal: Any = gold.criterion(OP)
        if goal is None:
            return NativeScorer().score(task, gold, evidence)
        bought: Any = evidence.final_state.get("bought")
        parts = {"reward": 0.0} if bought is None else reward(bought, goal)
        success = parts["reward"] == 1.0
        metrics: JsonObject = {**task_metrics(task, evidence, success), **parts}
        return Score(success, {"reward_1": success}, {**metrics, "bought": bought is not None})


def reward(bought: dict[str, Any], goal: dict[str, Any]) -> dict[str, float]:
    """Return the reward of a purchase and its parts.

    Args:
        bought: the product with ``asin``, ``options`` and ``price``.
        goal: ``query``, ``product_category``, ``title_scores`` (ASIN → share of the nouns of the
            wanted product's name), ``attributes``, ``price_upper``, ``options`` and ``colors``.
    """
    kind = _type_reward(bought, goal)
    attributes = sum(_has_attribute(bought, each) for each in goal["attributes"])
    given = [normalize_color(each, goal["colors"]) for each in bought["options"].values()]
    wanted = [normalize_color(each, goal["colors"]) for each in goal["options"]]
    options = sum(any(token_set_ratio(g, w) > RATIO_MIN for g in given) for w in wanted)
    price = bought["price"] <= goal["price_upper"]
    total = (attributes + options + price) / (len(goal["attributes"]) + len(wanted) + 1)
    return {
        "reward": total * kind,
        "r_type": kind,
        "r_att": attributes / len(goal["attributes"]),
        **({"r_option": options / len(wanted)} if wanted else {}),
        "r_price": float(price),
    }


def _type_reward(bought: dict[str, Any], goal: dict[str, Any]) -> float:
    title_score = goal["title_scores"].get(bought["asin"], 0.0)
    left, right = (
        {part.strip() for part in each["product_category"].split("›")} for each in (bought, goal)
    )
    if title_score == 0:
        return 0.0
    if title_score < 0.1:
        return 0.1
    matches = bought["query"] == goal["query"] or len(left & right) >= 2 or title_score > 0.2
    return 1.0 if matches else 0.5


def _has_attribute(bought: dict[str, Any], attribute: str) -> bool:
    texts = [bought["name"], " ".join(bought["bullets"]), bought["description"]]
    return any(
        token_set_ratio(each, attribute) > RATIO_MIN for each in bought["attributes"]
    ) or any(attribute in text.lower() for text in texts)


def normalize_color(text: str, colors: Sequence[str]) -> str:
    """Return the first color that the text contains, or the text."""
    return next((color for color in colors if color in text), text)


def token_set_ratio(left: str, right: str) -> int:
    """Return how similar the words of two texts are, from 0 to 100."""
    words = [
        set(re.sub(r"[\W_]", " ", text.encode("ascii", "ignore").decode()).lower().split())
        for text in (left, right)
    ]
    if not all(words):
        return 0
    common = words[0] & words[1]
    if common and (words[0] <= words[1] or words[1] <= words[0]):
        return 100
    only = [" ".join(sorted(each - common)) for each in words]
    shared = len(" ".join(common))
    lengths = [shared + bool(shared) + len(each) for each in only]
    ratios = [_similarity(_distance(*only), sum(lengths))]
    if shared:
        ratios += [
            _similarity(bool(shared) + len(each), shared + length)
            for each, length in zip(only, lengths, strict=True)
        ]
    return round(max(ratios))


def _similarity(distance: int, length: int) -> float:
    return 100 - 100 * distance / length


def _distance(left: str, right: str) -> int:
    """Return the number of insertions and deletions that make the texts equal."""
    row = [0] * (len(right) + 1)
    for letter in left:
        previous, row = row, [0]
        for at, other in enumerate(right):
            row.append(previous[at] + 1 if letter == other else max(previous[at + 1], row[at]))
    return len(left) + len(right) - 2 * row[-1]
