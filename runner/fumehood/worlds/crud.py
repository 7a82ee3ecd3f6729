"""Customer accounts: read, change, create, close (docs/reference/toolmisuse.md, Worlds)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json, copy_object
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject, tool

_TOOLS = (
    tool("get_account", "Read one account.", id="string"),
    tool("update_account", "Set some fields of one account.", id="string", patch="object"),
    tool("create_account", "Create an account with these fields.", fields="object"),
    tool("close_account", "Close one account and store the reason.", id="string", reason="string"),
)


class Crud:
    """State: ``accounts``, a map from account id to account."""

    toolset_id = "crud_v1"

    def __init__(self, state: JsonObject) -> None:
        """Use ``state`` as the state of the world.

        Raises:
            SpecError: ``accounts`` is not an object.
        """
        if not isinstance(state.get("accounts", {}), dict):
            raise SpecError("initial_state.accounts", "must be an object of accounts by id")
        self._state = state
        self._non_string_ids: dict[Json, JsonObject] = {}
        """Accounts whose ID is a number or a boolean, which the reference accepts. JSON has no such
        keys."""
        self.are_texts_unique = True
        """Whether an ID such as the number 34 is refused beside the ID "34"; not in the
        reference."""
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """The accounts by ID. The key of an ID that is not a string is its JSON text."""
        if not self._non_string_ids:
            return self._state
        others: JsonObject = {
            json.dumps(name): account for name, account in self._non_string_ids.items()
        }
        return {**self._state, "accounts": {**self._accounts(), **others}}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the four tools."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call with valid arguments."""
        accounts = self._accounts()
        match call.tool_name:
            case "get_account":
                return self._get(accounts, call.arguments)
            case "update_account":
                return self._update(accounts, call.arguments)
            case "create_account":
                return self._create(accounts, call.arguments)
            case _:
                return self._close(accounts, call.arguments)

    def _accounts(self) -> JsonObject:
        if "accounts" not in self._state:
            self._state["accounts"] = {}
            self.revision += 1
        accounts = self._state["accounts"]
        assert isinstance(accounts, dict)
        return accounts

    def _get(self, accounts: JsonObject, arguments: Mapping[str, Json]) -> ToolResult:
        account = accounts.get(str(arguments["id"]))
        return _NOT_FOUND if account is None else Value({"account": copy_json(account)})

    def _update(self, accounts: JsonObject, arguments: Mapping[str, Json]) -> ToolResult:
        name, patch = str(arguments["id"]), arguments["patch"]
        if name not in accounts:
            return _NOT_FOUND
        account = _as_account(accounts, name)
        account.update(copy_object(patch if isinstance(patch, dict) else {}))
        return self._changed(account)

    def _create(self, accounts: JsonObject, arguments: Mapping[str, Json]) -> ToolResult:
        fields = arguments["fields"]
        account = copy_object(fields if isinstance(fields, dict) else {})
        # An id that is false in Python, such as 0, [] or "", is replaced, as in the reference.
        name = account.get("id") or f"acct_{len(accounts) + len(self._non_string_ids) + 1}"
        if isinstance(name, dict | list):
            return _UNUSABLE_ID
        is_taken = name in accounts or name in self._non_string_ids
        if is_taken or (self.are_texts_unique and self._is_text_taken(accounts, name)):
            return reject("already_exists", "Account already exists.")
        account["id"] = name
        account.setdefault("status", "active")
        if isinstance(name, str):
            accounts[name] = account
        else:
            self._non_string_ids[name] = account
        return self._changed(account)

    def _is_text_taken(self, accounts: JsonObject, name: Json) -> bool:
        """Return whether an account has an ID of the same text, so that one would hide the other
        in the state."""
        if isinstance(name, str):
            return name in map(json.dumps, self._non_string_ids)
        return json.dumps(name) in accounts

    def _close(self, accounts: JsonObject, arguments: Mapping[str, Json]) -> ToolResult:
        name = str(arguments["id"])
        if accounts.get(name) is None:
            return _NOT_FOUND
        account = _as_account(accounts, name)
        account["status"] = "closed"
        account["closed_reason"] = arguments["reason"]
        return self._changed(account)

    def _changed(self, account: JsonObject) -> Value:
        self.revision += 1
        return Value({"account": copy_object(account)})


_NOT_FOUND = reject("not_found", "Account not found.")

_UNUSABLE_ID = Failure(
    FailureKind.INVALID_CALL,
    "invalid_argument_type",
    "Argument type mismatch.",
    {"tool_name": "create_account", "arg": "fields.id", "expected": "string"},
)


def _as_account(accounts: JsonObject, name: str) -> JsonObject:
    account = accounts[name]
    if not isinstance(account, dict):
        raise SpecError(f"initial_state.accounts.{name}", "must be an object")
    return account
