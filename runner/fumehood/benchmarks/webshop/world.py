"""The pages of WebShop: search, results, product, and its description, features and reviews.

Source: ``web_agent_site`` of WebShop 64fa2a5, in its observation mode ``text``.
"""

from __future__ import annotations

from typing import Any

from fumehood.benchmarks.webshop.catalogue import catalogue
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import NO_SUCH_TOOL, reject, tool

PAGE_PRODUCTS = 10
SEARCH, BACK, PREVIOUS, NEXT, BUY = "search", "back to search", "< prev", "next >", "buy now"
SUBPAGES = ("description", "features", "reviews")
_TOOLS = (
    tool("search_action", "Search for products.", keywords="string"),
    tool("click_action", "Click a button or link of the page.", value="string"),
)

READS = ("folder",)
"""Parts of the state that name what an episode reads."""


class WebShop:
    """A shop. State: ``folder`` of a checkout and ``instruction``.

    The state also contains the ``session`` (``page``, ``keywords``, ``number``, ``asin``,
    ``subpage``, ``options``), and the product that was ``bought``.
    """

    toolset_id = "webshop_v1"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Read the products.

        Raises:
            SpecError: the state or the files cannot be used.
        """
        match state:
            case {"folder": str(folder), "instruction": str(instruction)}:
                self._catalogue = catalogue(folder)
                self._instruction = instruction
            case _:
                raise SpecError("initial_state", "must have folder and instruction")
        self.state: dict[str, Any] = state
        session: Any = state.get("session") or {"page": "search"}
        self._session: dict[str, Any] = session
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return both actions."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Execute an action. An action that the page lacks changes nothing, as in the original."""
        # The original takes the first argument, also if it has another name.
        value = next(iter(call.arguments.values()), None)
        if call.tool_name not in {spec.name for spec in _TOOLS}:
            return NO_SUCH_TOOL
        if not isinstance(value, str):
            return reject("invalid_argument", "The argument must be a text.")
        if "bought" in self.state:
            return reject("over", "You have bought a product.")
        value = value.lower()
        if call.tool_name == "search_action" and value:
            self._session = {"page": "results", "keywords": value, "number": 1, "options": {}}
        elif call.tool_name == "click_action" and value in self._clickables() and value != SEARCH:
            self._click(value)
        self.state["session"] = self._session
        self.revision += 1
        return Value(self.shown())

    def shown(self) -> JsonObject:
        """Return the page and what can be clicked."""
        if "bought" in self.state:
            return {"observation": "Thank you for shopping with us!", "clickables": []}
        return {
            "observation": " [SEP] ".join(["Instruction:", self._instruction, *self._texts()]),
            "has_search_bar": self._session["page"] == "search",
            "clickables": [*self._clickables()],
        }

    def _click(self, value: str) -> None:
        session = self._session
        match session["page"], value:
            case _, "back to search":
                self._session = {"page": "search"}
            case "results", "next >" | "< prev":
                session["number"] += 1 if value == NEXT else -1
            case "results", asin:
                session.update(page="product", asin=asin.upper())
            case "subpage", _:
                session["page"] = "product"
            case "product", "< prev":
                session.update(page="results", options={})
            case "product", "buy now":
                self._buy()
            case "product", "description" | "features" | "reviews":
                session.update(page="subpage", subpage=value)
            case _:
                options = self._product()["options"]
                name = [each for each, values in options.items() if value in values][-1]
                session["options"][name] = value

    def _buy(self) -> None:
        asin, product = self._session["asin"], self._product()
        bought = {key: value for key, value in product.items() if key != "shown_price"}
        self.state["bought"] = {**bought, "asin": asin, "options": dict(self._session["options"])}

    def _product(self) -> dict[str, Any]:
        return self._catalogue.products[self._session["asin"]]

    def _results(self) -> tuple[list[str], int]:
        """Return the ASINs of the page and the number of all results."""
        found = self._catalogue.search(self._session["keywords"])
        first = (self._session["number"] - 1) * PAGE_PRODUCTS
        return found[first : first + PAGE_PRODUCTS], len(found)

    def _clickables(self) -> list[str]:
        page = self._session["page"]
        if page == "search":
            return [SEARCH]
        if page == "results":
            asins = [asin.lower() for asin in self._results()[0]]
            previous = [PREVIOUS] if self._session["number"] > 1 else []
            return [BACK, *previous, NEXT, *asins]
        if page == "subpage":
            return [BACK, PREVIOUS]
        values = [value for values in self._product()["options"].values() for value in values]
        return list(dict.fromkeys([BACK, PREVIOUS, *SUBPAGES, BUY, *values]))

    def _texts(self) -> list[str]:
        page = self._session["page"]
        if page == "search":
            return ["Search"]
        if page == "results":
            asins, total = self._results()
            number = self._session["number"]
            buttons = ["< Prev", "Next >"] if number > 1 else ["Next >"]
            shown = [(asin, self._catalogue.products[asin]) for asin in asins]
            lines = [
                text for asin, each in shown for text in (asin, each["name"], each["shown_price"])
            ]
            return ["Back to Search", f"Page {number} (Total results: {total})", *buttons, *lines]
        product = self._product()
        if page == "subpage":
            texts = {"description": [product["description"]], "features": product["bullets"]}
            return ["Back to Search", "< Prev", *texts.get(self._session["subpage"], [])]
        options = [text for name, values in product["options"].items() for text in (name, *values)]
        facts = [product["name"], f"Price: {product['shown_price']}", "Rating: N.A."]
        buttons = ["Description", "Features", "Reviews", "Buy Now"]
        return ["Back to Search", "< Prev", *options, *facts, *buttons]
