"""The domains of τ²-bench: the world of each, how it begins, and what of its state is its database."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fumehood.benchmarks.tau2.database import FILES, read_database
from fumehood.benchmarks.tau2.library import data_folder, domain
from fumehood.benchmarks.tau2.world_company import SEARCH, SEARCHING, Tau2Company
from fumehood.benchmarks.tau2.world_mock import AGENT_TOOLS, USER_TOOLS, Tau2Mock
from fumehood.benchmarks.tau2.world_telecom import Tau2Telecom
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import ToolSpec

World = Tau2Company | Tau2Mock | Tau2Telecom
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """A domain as it is played."""

    domain: str
    world: Callable[[JsonObject], World]
    begin: Callable[[Path], JsonObject]
    """Returns the state before any task, of a folder of data; raises SpecError where there is none."""
    database: Names
    """Keys of a state that are its databases."""
    tools: Callable[[], tuple[Names, Names]]
    """Returns the names of the agent's tools and of the user's."""
    talks: bool = True
    """Whether there is a user; whoever works alone has both sides' tools."""

    def folder(self, given: str) -> Path:
        """Return where its data lies."""
        return Path(given) if given else data_folder(self.domain)


def _begin_company(name: str, root: Path) -> JsonObject:
    # Tasks of the user's may be over the package's database, which is the published one.
    has_own = root != data_folder(name) and any((root / file).is_file() for file in FILES)
    folder = str(root.resolve()) if has_own else ""
    digest = read_database(name, folder).digest
    return {"domain": name, "folder": folder, "database": digest, "changes": [], "kept": {}}


def _begin_telecom(root: Path) -> JsonObject:
    return {"agent": _parsed(root / "db.toml"), "user": _parsed(root / "user_db.toml")}


def _begin_mock(root: Path) -> JsonObject:
    inbox = root / "user_db.json"
    user = _parsed(inbox) if inbox.is_file() else {"notifications": {}}
    return {"agent": _parsed(root / "db.json"), "user": user}


def _parsed(path: Path) -> JsonObject:
    parse: Callable[[str], Any] = tomllib.loads if path.suffix == ".toml" else json.loads
    try:
        # A date of TOML is text in JSON, as which the package reads it just as well.
        found: JsonObject = json.loads(json.dumps(parse(path.read_text("utf-8")), default=str))
    except (OSError, ValueError) as error:
        raise SpecError("folder", f"{path} cannot be read: {error}") from None
    return found


def _tools_of(name: str) -> tuple[Names, Names]:
    found = domain(name)
    search = [SEARCH] if name in SEARCHING else []
    return (*found.agent.executes, *search), tuple(found.user.executes) if found.user else ()


def _tools_of_mock() -> tuple[Names, Names]:
    return _names(AGENT_TOOLS), _names(USER_TOOLS)


def _names(tools: tuple[ToolSpec, ...]) -> Names:
    return tuple(tool.name for tool in tools)


def _company(name: str) -> Setting:
    return Setting(
        name, Tau2Company, partial(_begin_company, name), ("changes",), partial(_tools_of, name)
    )


_BOTH = ("agent", "user")
_TELECOM = ("telecom", Tau2Telecom, _begin_telecom, _BOTH, partial(_tools_of, "telecom"))
SETTINGS: Mapping[str, Setting] = {
    "airline": _company("airline"),
    "retail": _company("retail"),
    "banking": _company("banking"),
    "mock": Setting("mock", Tau2Mock, _begin_mock, _BOTH, _tools_of_mock),
    "telecom": Setting(*_TELECOM, talks=False),
    "telecom_user": Setting(*_TELECOM),
}
"""By what a suite argument calls them."""
