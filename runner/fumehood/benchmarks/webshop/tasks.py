"""Loads WebShop's instructions of human writers, as AgentBench runs them."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from pydantic import Field

from fumehood.benchmarks.shared.checkout import checkout_folder
from fumehood.benchmarks.shared.published_record import PublishedRecord
from fumehood.benchmarks.shared.reading import (
    Place,
    Placed,
    Problem,
    Unreadable,
    read_json,
    read_text,
)
from fumehood.benchmarks.shared.records import cases_of, validated
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.benchmarks.webshop.catalogue import HUMAN, Catalogue, catalogue
from fumehood.benchmarks.webshop.scorer import OP, RATIO_MIN, normalize_color, token_set_ratio
from fumehood.benchmarks.webshop.world import NEXT, PAGE_PRODUCTS
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task

SPLITS = {"std": (0, 200), "dev": (200, 280), "all": (0, None)}
"""AgentBench's ranges of goals."""
USAGE = f"webshop:[words:]CHECKOUT[:{' | :'.join(SPLITS)}]"
ROUNDS = 20
BUDGET = Budget(steps=ROUNDS, calls=ROUNDS)
MODEL = "en_core_web_sm"
SHUFFLE_SEED = 233
NO_LIMIT = 1_000_000.0
NORMALIZE = Path("web_agent_site", "engine", "normalize.py")
INSTRUCTION = """\
Buy what the instruction asks for in a web shop. search_action searches, and click_action clicks \
one of the clickables of the page, by its text. Search results are ASINs that you can click; on \
the page of a product, click its options and then "buy now", which ends the task. An action that \
the page does not offer does nothing. You have {rounds} actions. When you have bought a product, \
submit any text.

{instruction}"""


class Instruction(PublishedRecord):
    """One human instruction for a product."""

    instruction: str = Field(min_length=1)
    instruction_attributes: list[str]
    instruction_options: list[str]


class WebShop:
    """The benchmark ``webshop``."""

    source = "princeton-nlp/WebShop 64fa2a5, your checkout with its product files"

    def load(self, argument: str) -> Suite:
        """Return the goals of a split."""
        by_words = argument.startswith("words:")
        folder, _, split = argument.removeprefix("words:").rpartition(":")
        if split not in SPLITS or not folder:
            folder, split = argument.removeprefix("words:"), "std"
        root = checkout_folder(folder, contains=str(NORMALIZE), usage=USAGE)
        colors = _colors(root / NORMALIZE)
        shop = catalogue(str(root))
        goals = list(_goals(root / "data" / HUMAN, shop))
        random.Random(SHUFFLE_SEED).shuffle(goals)
        first, last = SPLITS[split]
        chosen = [
            Placed((f"webshop_{first + at}", *goal.value), goal.place)
            for at, goal in enumerate(goals[first:last])
        ]
        if not chosen:
            raise InputError(f"{root / 'data'}: has {len(goals)} goals, and none for {split}")
        nouns = words if by_words else _nouns_by_spacy()
        names = {asin: nouns(product["name"]) for asin, product in shop.products.items()}
        cases = cases_of(
            chosen, lambda item: _case(*item, shop=shop, names=names, colors=colors, root=root)
        )
        about = About(
            licence="MIT (princeton-nlp/WebShop); products of your files",
            criterion="a reward of 1 by the original's rule, reimplemented; the metric reward",
            scored_on="the purchased product, its options and price; nouns of names: "
            + ("all words (words:)" if by_words else f"spaCy's {MODEL}"),
        )
        return Suite(":".join(["webshop", *["words"] * by_words, split]), cases, about=about)


def words(name: str) -> list[str]:
    """Return the words of a product's name."""
    return re.findall(r"[a-z]{3,}", name.lower())


def _nouns_by_spacy() -> Callable[[str], list[str]]:
    try:
        parse = import_module("spacy").load(MODEL)
    except (ImportError, OSError):
        raise InputError(
            f"webshop: spaCy or its model is missing; run: pip install spacy && python -m spacy "
            f"download {MODEL}, or use webshop:words:CHECKOUT, where all words count as nouns"
        ) from None
    return lambda name: [
        token.text.lower() for token in parse(name) if token.pos_ in ("NOUN", "PROPN")
    ]


def _colors(path: Path) -> list[str]:
    """Return the list ``COLOR_SET`` of the checkout, without executing it."""
    try:
        for node in ast.parse(read_text(path)).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COLOR_SET":
                return [str(color) for color in ast.literal_eval(node.value)]
    except (SyntaxError, ValueError):
        pass
    raise Unreadable(Place(path), Problem.INVALID_RECORD, "does not define COLOR_SET")


def _goals(path: Path, shop: Catalogue) -> Iterator[Placed[tuple[str, Instruction, float]]]:
    """Yield product, instruction and highest price, in the order of the products."""
    instructions = read_json(path)
    if not isinstance(instructions, dict):
        raise Unreadable(Place(path), Problem.INVALID_RECORD, "must be an object by ASIN")
    for asin, product in shop.products.items():
        for at, value in enumerate(instructions.get(asin, ())):
            record = validated(Placed(value, Place(path, index=at)), Instruction).value
            if record.instruction_attributes:
                limit = _price_limit(product["price"], asin, at)
                yield Placed((asin, record, limit), Place(path))


def _price_limit(price: float, asin: str, at: int) -> float:
    """Return the higher of two of the next four tens, as in the original, but with a seed."""
    tens = [10.0 * ten for ten in range(1, 100) if 10 * ten > price][:4]
    if len(tens) < 2:
        return NO_LIMIT
    return max(SeededChoices("webshop", asin, at).some(tens, 2))


def _case(
    task_id: str,
    asin: str,
    record: Instruction,
    limit: float,
    *,
    shop: Catalogue,
    names: dict[str, list[str]],
    colors: list[str],
    root: Path,
) -> Case:
    product, nouns = shop.products[asin], names[asin]
    text = record.instruction.strip(".")
    if limit < NO_LIMIT:
        text += f", and price lower than {limit:.2f} dollars"
    criterion: JsonObject = {
        "op": OP,
        **{key: product[key] for key in ("query", "product_category")},
        "title_scores": _title_scores(nouns, names),
        "attributes": [*record.instruction_attributes],
        "options": [*record.instruction_options],
        "price_upper": limit,
        "colors": [*colors],
    }
    task = Task(
        task_id=task_id,
        world="webshop",
        harness_mode="native",
        initial_state={"folder": str(root), "instruction": text},
        seats=(
            SeatSpec(
                instruction=INSTRUCTION.format(rounds=ROUNDS, instruction=text), budget=BUDGET
            ),
        ),
        tags={"domain": "webshop"},
    )
    return Case(task, Gold("webshop", (criterion,), oracle=_oracle(shop, asin, record, colors)))


def _title_scores(nouns: list[str], names: dict[str, list[str]]) -> JsonObject:
    """Return, by ASIN, the share of the nouns that a name contains; zeros are left out."""
    if not nouns:
        return dict.fromkeys(names, 0.2)
    shares = {asin: len({*nouns} & {*found}) / len(nouns) for asin, found in names.items()}
    return {asin: share for asin, share in shares.items() if share}


def _oracle(
    shop: Catalogue, asin: str, record: Instruction, colors: list[str]
) -> tuple[JsonObject, ...] | None:
    """Return the purchase of the goal's product; None if a search for its name does not show it."""
    product = shop.products[asin]
    found = shop.search(product["name"].lower())
    if asin not in found:
        return None
    clicks = [NEXT] * (found.index(asin) // PAGE_PRODUCTS) + [asin.lower()]
    wanted = [normalize_color(option, colors) for option in record.instruction_options]
    for values in product["options"].values():
        fits = [
            value
            for value in values
            for option in wanted
            if token_set_ratio(normalize_color(value, colors), option) > RATIO_MIN
        ]
        exact = [value for value in fits if value in record.instruction_options]
        clicks += (exact or fits)[:1]
    moves: list[JsonObject] = [
        {"tool_name": "search_action", "args": {"keywords": product["name"].lower()}}
    ]
    moves += [{"tool_name": "click_action", "args": {"value": each}} for each in clicks]
    buy: JsonObject = {"tool_name": "click_action", "args": {"value": "buy now"}}
    return (*moves, buy, {"submit": "Bought."})
