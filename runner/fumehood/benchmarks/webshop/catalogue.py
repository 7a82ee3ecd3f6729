"""The products of WebShop: options, prices and search.

Source of all rules: ``load_products`` in ``web_agent_site/engine/engine.py`` of WebShop 64fa2a5.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.core.errors import SpecError

PRODUCTS, ATTRIBUTES, HUMAN = (
    "items_shuffle_1000.json",
    "items_ins_v2_1000.json",
    "items_human_ins.json",
)
RESULTS_MAX = 50
_K1, _B = 0.9, 0.4
"""Parameters of BM25 in Pyserini, which the original uses."""


class Catalogue:
    """The products by ASIN, in the order of the file."""

    def __init__(self, products: list[Any], attributes: dict[str, Any]) -> None:
        """Read published records.

        Raises:
            KeyError, TypeError, AttributeError, ValueError: a record has another format.
        """
        self.products: dict[str, dict[str, Any]] = {}
        for record in products:
            asin = record["asin"]
            if asin != "nan" and len(asin) <= 10 and asin not in self.products:
                described = attributes.get(asin, {}).get("attributes", ["DUMMY_ATTR"])
                self.products[asin] = _product(record, described)
        self._postings: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._lengths: dict[str, int] = {}
        for asin, product in self.products.items():
            words = Counter(_words(_document(product)))
            self._lengths[asin] = words.total()
            for word, count in words.items():
                self._postings[word].append((asin, count))

    def search(self, keywords: str) -> list[str]:
        """Return the ASINs of the best products by BM25; equal ones in the order of the file."""
        mean = sum(self._lengths.values()) / max(1, len(self._lengths))
        scores: dict[str, float] = defaultdict(float)
        for word in _words(keywords):
            found = self._postings.get(word, [])
            rarity = math.log(1 + (len(self._lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for asin, count in found:
                length = 1 - _B + _B * self._lengths[asin] / mean
                scores[asin] += rarity * count / (count + _K1 * length)
        order = {asin: at for at, asin in enumerate(self.products)}
        return sorted(scores, key=lambda asin: (-scores[asin], order[asin]))[:RESULTS_MAX]


@lru_cache(maxsize=2)
def catalogue(folder: str) -> Catalogue:
    """Return the products of a checkout.

    Raises:
        SpecError: a file is missing or has another format.
    """
    data = Path(folder) / "data"
    try:
        files = [
            json.loads((data / name).read_text(encoding="utf-8")) for name in (PRODUCTS, ATTRIBUTES)
        ]
        return Catalogue(*files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise SpecError(
            "folder",
            f"{data}: needs {PRODUCTS} and {ATTRIBUTES} of WebShop, readable by all "
            f"users: {reason}",
        ) from None


def _product(record: dict[str, Any], attributes: list[str]) -> dict[str, Any]:
    bullets = record["small_description"]
    text = record.get("pricing")
    prices = [float(re.sub(r"[^\d.]", "", part)) for part in (text or "$100.0").split("$")[1:]][:2]
    options: dict[str, list[str]] = {}
    for name, values in (record.get("customization_options") or {}).items():
        if values is not None:
            options[name.lower()] = [
                value["value"].strip().replace("/", " | ").lower() for value in values
            ]
    return {
        "name": record["name"],
        "description": record["full_description"] or "",
        "bullets": bullets if isinstance(bullets, list) else [bullets or ""],
        "query": record["query"].lower().strip(),
        "product_category": record["product_category"],
        "attributes": attributes,
        "options": options,
        "shown_price": " to ".join(f"${price}" for price in prices),
        "price": _price(record["asin"], prices),
    }


def _price(asin: str, prices: list[float]) -> float:
    """Return the price; of a range one by a seed, where the original draws without a seed."""
    low, high = prices[0], prices[-1]
    return low + (high - low) * SeededChoices("webshop", asin).below(10_001) / 10_000


def _document(product: dict[str, Any]) -> str:
    options = [
        f"{name}: {value}" for name, values in product["options"].items() for value in values
    ]
    return " ".join([product["name"], product["description"], product["bullets"][0], *options])


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
