"""Writes a checkout of WebShop with products and instructions of this project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COLORS = ("blue", "green", "red")
MATERIALS = ("cotton", "steel", "walnut", "linen", "glass", "copper", "wool", "bamboo")
THINGS = ("lamp", "kettle", "jacket")


def products() -> list[dict[str, Any]]:
    """Return 24 products, one for each thing of each material."""
    made: list[dict[str, Any]] = []
    for at, material in enumerate(MATERIALS):
        for number, thing in enumerate(THINGS):
            made.append(
                {
                    "asin": f"B0{at}{number}",
                    "name": f"{material.title()} {thing.title()} by Hearth",
                    "full_description": f"A {thing} made of {material}.",
                    "small_description": [f"easy clean {thing}", "long lasting"],
                    "pricing": ("$12.50", "$20.00 to $30.00", "")[at % 3],
                    "customization_options": {
                        "Color": [{"value": f"{color.title()}/Matt"} for color in COLORS],
                        "Size": [{"value": "Large"}, {"value": "Small"}] if number else None,
                    },
                    "query": f"{thing}s ",
                    "category": "home",
                    "product_category": f"Home › {thing.title()}s › {material}",
                    "images": ["none"],
                }
            )
    return made


def instructions() -> dict[str, list[dict[str, Any]]]:
    """Return an instruction for each product, and one without attributes, which is skipped."""
    made: dict[str, list[dict[str, Any]]] = {}
    for at, product in enumerate(products()):
        sizes = ["large"] if product["customization_options"]["Size"] else []
        made[product["asin"]] = [
            {
                "instruction": f"i want {product['name'].lower()} that is easy to clean.",
                "instruction_attributes": ["easy clean", product["name"].split()[0].lower()],
                "instruction_options": [COLORS[at % 3], *sizes],
            }
        ]
    made["B000"].append({**made["B000"][0], "instruction_attributes": []})
    return made


def write_checkout(folder: Path, **replaced: Any) -> Path:
    """Write the files that the benchmark reads; ``replaced`` are data files by name."""
    (folder / "data").mkdir(parents=True)
    engine = folder / "web_agent_site" / "engine"
    engine.mkdir(parents=True)
    (engine / "normalize.py").write_text(f"import re\nCOLOR_SET = {[*COLORS]}\n", encoding="utf-8")
    attributes = {
        product["asin"]: {"attributes": ["easy clean", "long lasting"]} for product in products()
    }
    files = {
        "items_shuffle_1000": products(),
        "items_ins_v2_1000": attributes,
        "items_human_ins": instructions(),
        **replaced,
    }
    for name, value in files.items():
        (folder / "data" / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder
