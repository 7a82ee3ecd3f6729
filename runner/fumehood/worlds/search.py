"""A library: search and open_page, over a sealed snapshot, the network or a recording of it.

Which of them stands in the data_source, not in the state, and the tools are the same in each. The work is
done by ``snapshots``, which is imported when an episode begins: its libraries are an extra.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fumehood.core.episode_spec import DataSource
from fumehood.core.errors import InputError, SpecError, how_to_install
from fumehood.core.json_values import Json, JsonObject, copy_json, copy_object
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import refuse
from fumehood_snapshots.library.tools import K_MAX, TOOLS

if TYPE_CHECKING:
    from fumehood_snapshots.library.library import Library
    from fumehood_snapshots.library.reader import LibraryReader
    from fumehood_snapshots.snapshot import Snapshot

ANSWER_BYTES_MAX = 32_000
"""Of one answer, unless the state says otherwise."""
ANSWER_BYTES_MOST = 1_000_000
DEFAULT_K = 5
DIGEST_PREFIX = "sha256:"

_SPECS = tuple(
    ToolSpec(each["name"], copy_object(each["parameters"]), each["description"]) for each in TOOLS
)
_NUMBERS = {"k": K_MAX, "snippet_chars": ANSWER_BYTES_MOST, "answer_bytes_max": ANSWER_BYTES_MOST}


def preload() -> None:
    """Import what searching needs, before a process may no longer read it."""
    from fumehood_snapshots.library.preload import preload as preload_library

    preload_library()


class Search:
    """State: ``snapshot`` (``name`` and ``digest``), and if they are to be others than usual ``k``,
    ``snippet_chars`` and ``answer_bytes_max``. No call changes it."""

    toolset_id = "search_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: a part of it is not of its kind.
        """
        _check(state)
        self.state = state
        self.revision = 0
        self._reader: LibraryReader | None = None

    def attach_data_source(self, data_source: DataSource, session: str) -> None:
        """Open what the data_source name.

        Raises:
            SpecError: it cannot be opened, or is not the snapshot that the state names.
            InputError: the libraries for it are not installed.
        """
        try:
            from fumehood_snapshots.library.reader import LibraryReader

            library = _library(data_source, session, self.state)
        except ModuleNotFoundError as error:
            hint = f"searching needs {error.name}; install it with: {how_to_install('snapshots')}"
            raise InputError(hint) from None
        self._reader = LibraryReader(
            library,
            answer_bytes_max=_number(self.state, "answer_bytes_max", ANSWER_BYTES_MAX),
            k=_number(self.state, "k", DEFAULT_K),
        )

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the two tools."""
        return _SPECS

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call whose arguments fit its tool's schema.

        Raises:
            SpecError: what the data_source name is damaged.
        """
        if self._reader is None:
            return refuse("not_found", "There is nothing here to search.")
        from fumehood_snapshots.errors import Refusal, SnapshotError

        try:
            return Value(_answer(self._reader, call))
        except Refusal as refusal:
            return refuse(refusal.code.value, str(refusal))
        except SnapshotError as error:
            raise SpecError("data_source", str(error)) from None


def _answer(reader: LibraryReader, call: ToolCall) -> JsonObject:
    # A whole number to JSON Schema may be 3.0 here.
    arguments: dict[str, Any] = {
        name: int(value) if isinstance(value, float) else copy_json(value)
        for name, value in call.arguments.items()
    }
    answer = reader.search if call.tool_name == "search" else reader.open_page
    return answer(**arguments, bytes_max=call.answer_bytes_max)


def _library(data_source: DataSource, session: str, state: JsonObject) -> Library:
    from fumehood_snapshots.errors import SnapshotError
    from fumehood_snapshots.library.environment import open_library
    from fumehood_snapshots.library.library import SealedLibrary
    from fumehood_snapshots.library.settings import read_settings

    try:
        told = {**data_source.settings, "data_mode": data_source.data_mode.value}
        config = read_settings(told)
        if config.data_mode == "offline" and config.snapshot is not None:
            opened = _snapshot(config.snapshot, _digest(state))
            return SealedLibrary(opened, _number(state, "snippet_chars", 0) or config.snippet_chars)
        return open_library(config, session)
    except SnapshotError as error:
        raise SpecError("data_source", str(error)) from None
    except OSError as error:
        raise SpecError("data_source", f"{error.filename}: {error.strerror}") from None


@lru_cache(maxsize=8)
def _snapshot(path: Path, digest: str | None) -> Snapshot:
    """Open a snapshot once a process: every episode maps the same sealed bytes."""
    from fumehood_snapshots.snapshot import open_snapshot

    opened = open_snapshot(path)
    if digest is not None and digest != f"{DIGEST_PREFIX}{opened.digest}":
        found = f"{DIGEST_PREFIX}{opened.digest}"
        raise SpecError("initial_state.snapshot.digest", f"is {digest}, but {path} is {found}")
    return opened


def _check(state: JsonObject) -> None:
    named = state.get("snapshot", {})
    if not isinstance(named, dict) or not all(isinstance(part, str) for part in named.values()):
        raise SpecError("initial_state.snapshot", "must be an object with a name and a digest")
    for name, most in _NUMBERS.items():
        number = state.get(name, 1)
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
            raise SpecError(f"initial_state.{name}", f"must be a whole number from 1 to {most}")


def _number(state: JsonObject, name: str, otherwise: int) -> int:
    number: Json = state.get(name, otherwise)
    assert isinstance(number, int)
    return number


def _digest(state: JsonObject) -> str | None:
    named = state.get("snapshot")
    digest = named.get("digest") if isinstance(named, dict) else None
    return digest if isinstance(digest, str) else None
