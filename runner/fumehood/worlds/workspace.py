"""A workspace: a box in which the tools of an agent execute commands and read and write files.

The orchestrator starts the box of the workspace, which has no network, and passes a folder in the
settings of the data source. The service listens there, and a helper inside the box connects. The
process of the episode asks the service, which passes requests and replies on without reading them.
``docs/workspaces.md`` describes the tools; ``sandbox_images/helper/workspace.c`` executes them.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import socket
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from fumehood.core.conversation import Handover
from fumehood.core.episode_spec import ONLY_SEAT, EpisodeSpec
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.third_party.outside import Outside, parsed_question
from fumehood.third_party.process import Checker, QuestionFailed, are_routed, checker
from fumehood.worlds.schema import reject

SETTING = "workspace"
"""Setting of the data source: the folder in which the service listens."""
STEPS = "workspace_steps"
"""Setting of the data source of a task with steps: the folder in which the service listens for the
orchestrator."""
SOCKET_NAME, STEPS_NAME = "workspace.sock", "steps.sock"
CONNECT_TIMEOUT_S = 120.0
"""Time for the box of a workspace to start and to connect."""
REPLY_BYTES_MAX = 32 << 20
QUESTION_BYTES_MAX = 16 << 20
DEFAULT_TIMEOUT_S = 120
TIMEOUT_S_MAX = 3600
READ_BYTES_MAX = 256 * 1024
"""Part of a file that one call reads."""
CHANGES_MAX = 2000
"""Changed paths that the state lists; the others count only in its digest."""
SHOWN_CHANGES_MAX = 20
"""Changed paths that the result of a call lists."""
MAIN_SESSION = "main"
_LENGTH = struct.Struct(">I")


def _tool(name: str, description: str, required: JsonObject, **optional: Json) -> ToolSpec:
    parameters: JsonObject = {
        "type": "object",
        "properties": {**required, **optional},
        "required": [*required],
        "additionalProperties": False,
    }
    return ToolSpec(name, parameters, description)


_TEXT: JsonObject = {"type": "string"}
_PATH: JsonObject = {
    "type": "string",
    "description": "Absolute, or relative to the folder in which a new session starts.",
}
_NATURAL: JsonObject = {"type": "integer", "minimum": 0}
_TOOLS = (
    _tool(
        "bash",
        "Run a command in bash. A session keeps its working folder, variables and functions "
        "between calls. The output is the first and last 32 KiB of standard output and standard "
        "error.",
        {"command": _TEXT},
        session={
            "type": "string",
            "pattern": "^[a-z0-9_]{1,32}$",
            "description": "Name of the session. A new name starts a new session; there are at "
            f"most 8. Default: {MAIN_SESSION}.",
        },
        timeout_s={
            "type": "integer",
            "minimum": 1,
            "maximum": TIMEOUT_S_MAX,
            "description": "Seconds after which the session is killed. "
            f"Default: {DEFAULT_TIMEOUT_S}.",
        },
    ),
    _tool(
        "read_file",
        f"Read a text file, or a part of it; at most {READ_BYTES_MAX} bytes.",
        {"path": _PATH},
        offset_bytes=_NATURAL,
        limit_bytes={"type": "integer", "minimum": 1, "maximum": READ_BYTES_MAX},
    ),
    _tool(
        "write_file",
        "Create or replace a text file. Missing folders are created.",
        {"path": _PATH, "content": _TEXT},
    ),
    _tool(
        "edit_file",
        "Replace a text that occurs exactly once in a file.",
        {"path": _PATH, "old_text": _TEXT, "new_text": _TEXT},
    ),
    _tool(
        "list_dir",
        "List the entries of a folder. Names of folders end with /, names of links with @.",
        {"path": _PATH},
    ),
    _tool(
        "upload",
        "Create or replace a file from bytes in base64. Missing folders are created.",
        {"path": _PATH, "content_base64": _TEXT},
        mode={
            "type": "string",
            "pattern": "^[0-7]{3}$",
            "description": "Permissions in octal, such as 755.",
        },
    ),
)


class _NotDoneError(Exception):
    """The helper cannot do what a request asks for."""


class Workspace:
    """State: what the task says about its workspace, and ``changed``, the paths below the watched
    folders that differ from the image, each with kind, mode, size and SHA-256. Optional: ``start``,
    a command for the main session before the first call, and ``output_chars_max``, to which longer
    outputs are cut. Conversations with the rule ``world`` also have ``later_steps``, the
    instructions of the steps after the first, and ``step``, the number of the current step from
    1."""

    toolset_id = "workspace_v1"

    def __init__(self, state: JsonObject, box: Checker | None = None) -> None:
        """Use ``state`` as the state of the world; the box is asked at the first call.

        Args:
            state: of the task.
            box: passes requests on; None for the service of this process.

        Raises:
            SpecError: ``changed`` is not an object.
        """
        if not isinstance(state.get("changed", {}), dict):
            raise SpecError("initial_state.changed", "must be an object of facts by path")
        self.state = state
        self.revision = 0
        self._box = box
        self._has_begun = False

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the six tools."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call with valid arguments in the box."""
        arguments = call.arguments
        if self._box is None and not are_routed():
            return reject("no_workspace", "this episode has no workspace")
        tools = {
            "bash": self._bash,
            "read_file": self._read,
            "write_file": self._write_text,
            "edit_file": self._edit,
            "list_dir": self._list,
            "upload": self._upload,
        }
        try:
            self._begin()
            return tools[call.tool_name](arguments)
        except _NotDoneError as error:
            return reject("not_done", str(error))
        except QuestionFailed as error:
            return reject("no_workspace", str(error))

    def first_turn(self) -> Handover:
        """Return the turn of the first step."""
        return Handover(ONLY_SEAT, "")

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Return the turn of the next step, after the files of this one have been copied; None
        after the last step, and if there can be no next one."""
        later, number = self.state.get("later_steps"), self.state.get("step", 1)
        if not isinstance(later, list) or not isinstance(number, int) or number > len(later):
            return None
        box = self._box or (checker(SETTING) if are_routed() else None)
        try:
            if box is None or box.ask({"step": number}).get("ready") is not True:
                return None
        except QuestionFailed:
            return None
        self.state["step"] = number + 1
        self.revision += 1
        return Handover(seat, str(later[number - 1]))

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the work: the agent has the only seat."""
        return None

    def _begin(self) -> None:
        """Execute the task's ``start`` in the main session before the first call."""
        start, has_begun, self._has_begun = self.state.get("start"), self._has_begun, True
        if isinstance(start, str) and not has_begun:
            *_, listed = self._execute(MAIN_SESSION, start, DEFAULT_TIMEOUT_S)
            self._changes(listed)

    def _execute(self, session: str, command: str, timeout_s: int) -> list[bytes]:
        timeout_ms = str(timeout_s * 1000).encode()
        return self._ask(b"x", _encoded(session), _encoded(command), timeout_ms, replies=5)

    def _bash(self, arguments: Mapping[str, Json]) -> ToolResult:
        command, timeout_s = str(arguments["command"]), arguments.get("timeout_s")
        if "\0" in command:
            return reject("not_done", "a command cannot contain a zero byte")
        timeout_s = timeout_s if isinstance(timeout_s, int) else DEFAULT_TIMEOUT_S
        session = str(arguments.get("session") or MAIN_SESSION)
        how, status, output, dropped, listed = self._execute(session, command, timeout_s)
        text, chars_max = _decoded(output), self.state.get("output_chars_max")
        if isinstance(chars_max, int) and len(text) > chars_max:
            text = f"{text[:chars_max]}\n[the output is too long: {len(text)} characters]"
        result: JsonObject = {"exit_status": int(status), "output": text}
        if int(dropped):
            result["dropped_bytes"] = int(dropped)
        if how == b"timed_out":
            result["timed_out"] = f"after {timeout_s} s; the session was killed"
        elif how == b"ended":
            result["session_ended"] = True
        return Value({**result, **self._changes(listed)})

    def _read(self, arguments: Mapping[str, Json]) -> ToolResult:
        offset, limit = arguments.get("offset_bytes") or 0, arguments.get("limit_bytes")
        content, size = self._read_bytes(arguments["path"], offset, limit or READ_BYTES_MAX)
        result: JsonObject = {"content": _decoded(content), "size_bytes": size}
        return Value(result)

    def _read_bytes(self, path: Json, offset: Json, limit: Json) -> tuple[bytes, int]:
        numbers = (str(offset).encode(), str(limit).encode())
        content, size = self._ask(b"r", _path(path), *numbers, replies=2)
        return content, int(size)

    def _write_text(self, arguments: Mapping[str, Json]) -> ToolResult:
        return self._write(arguments["path"], _encoded(arguments["content"]), "")

    def _write(self, path: Json, content: bytes, mode: str) -> ToolResult:
        (listed,) = self._ask(b"w", _path(path), content, mode.encode(), replies=1)
        return Value({"written_bytes": len(content), **self._changes(listed)})

    def _edit(self, arguments: Mapping[str, Json]) -> ToolResult:
        path, old = arguments["path"], _encoded(arguments["old_text"])
        content, size = self._read_bytes(path, 0, READ_BYTES_MAX)
        if size > len(content):
            return reject(
                "not_done", f"the file has {size} bytes, of at most {READ_BYTES_MAX}: use bash"
            )
        count = content.count(old) if old else 0
        if count != 1:
            return reject(
                "not_done",
                f"old_text occurs {count} times in the file, not once: use a text that occurs once",
            )
        return self._write(path, content.replace(old, _encoded(arguments["new_text"])), "")

    def _list(self, arguments: Mapping[str, Json]) -> ToolResult:
        (listed,) = self._ask(b"l", _path(arguments["path"]), replies=1)
        kinds = {"d": "/", "l": "@"}
        names = [_decoded(name) for name in listed.split(b"\0") if name]
        entries: list[Json] = [*sorted(name[1:] + kinds.get(name[0], "") for name in names)]
        return Value({"entries": entries})

    def _upload(self, arguments: Mapping[str, Json]) -> ToolResult:
        try:
            content = base64.b64decode(str(arguments["content_base64"]), validate=True)
        except (binascii.Error, ValueError):
            return reject("not_done", "content_base64 is not base64")
        return self._write(arguments["path"], content, str(arguments.get("mode") or ""))

    def _ask(self, operation: bytes, *fields: bytes, replies: int) -> list[bytes]:
        """Return the fields of the reply. Programs of the agent may have replaced the helper.

        Raises:
            _NotDoneError: the helper reports an error, or its reply is not valid.
            QuestionFailed: the workspace does not answer.
        """
        request = operation + b"".join(_LENGTH.pack(len(field)) + field for field in fields)
        text = base64.b64encode(request).decode("ascii")
        box = self._box or checker(SETTING)
        answer: Any = box.ask({"request": text}).get("reply")
        reply = base64.b64decode(answer)
        parts = _fields(reply[1:])
        if reply[:1] == b"!" and parts:
            if len(parts) > 1:
                self._changes(parts[1])
            raise _NotDoneError(_decoded(parts[0]))
        if reply[:1] != b"=" or len(parts) != replies:
            raise _NotDoneError("the helper of the workspace sent no valid reply")
        return parts

    def _changes(self, listed: bytes) -> JsonObject:
        """Take over the paths that differ from the image; return those that this call changed."""
        texts = [_decoded(part) for part in listed.split(b"\0")[:-1]]
        pairs = list(zip(texts[::2], texts[1::2], strict=False))
        before, now = self.state.get("changed", {}), dict(pairs[:CHANGES_MAX])
        rest = sha256(repr(pairs[CHANGES_MAX:]).encode()).hexdigest() if pairs[CHANGES_MAX:] else ""
        if now == before and self.state.get("more_changed", "") == rest:
            return {}
        assert isinstance(before, dict)
        paths: list[Json] = [*sorted(_differing(before, now))]
        self.revision += 1
        self.state["changed"] = {**now}
        if rest or "more_changed" in self.state:
            self.state["more_changed"] = rest
        shown: JsonObject = {"changed_files": paths[:SHOWN_CHANGES_MAX]}
        if len(paths) > SHOWN_CHANGES_MAX:
            shown["more_changed_files"] = len(paths) - SHOWN_CHANGES_MAX
        return shown


def _differing(before: Mapping[str, Json], now: Mapping[str, Json]) -> Iterable[str]:
    return (path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def _fields(reply: bytes) -> list[bytes]:
    parts, at = [], 0
    while at + _LENGTH.size <= len(reply):
        (size,) = _LENGTH.unpack_from(reply, at)
        at += _LENGTH.size
        if at + size > len(reply):
            raise _NotDoneError("the helper of the workspace sent no valid reply")
        parts.append(reply[at : at + size])
        at += size
    return parts


def _path(path: Json) -> bytes:
    text = _encoded(path)
    if not text or b"\0" in text:
        raise _NotDoneError("a path cannot be empty or contain a zero byte")
    return text


def _encoded(text: Json) -> bytes:
    return str(text).encode("utf-8", "replace")


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


class WorkspaceOutside:
    """Passes the requests of one episode to the helper in the box, without reading them."""

    question_bytes_max = QUESTION_BYTES_MAX * 3 // 2
    has_failed = False

    def __init__(self, folder: Path, steps: Path | None = None) -> None:
        """Listen in a folder that only the box of this workspace sees.

        Args:
            folder: of the box.
            steps: folder in which to listen for the orchestrator; None for a task without steps.

        Raises:
            InfraError: a folder cannot be used.
        """
        self._path = folder / SOCKET_NAME
        self._listener = _listen(self._path)
        self._connection: socket.socket | None = None
        self._step_listener = _listen(steps / STEPS_NAME) if steps else None
        self._step_connection: socket.socket | None = None

    def answer(self, question: bytes) -> bytes:
        """Return the reply of the helper in JSON.

        Raises:
            QuestionFailed: the box does not run any more, its reply is too large, or the question
                has too many values.
        """
        asked = parsed_question(question)
        if "step" in asked:
            return self._ask_about_step()
        request = base64.b64decode(asked["request"])
        try:
            connection = self._connected()
            send_frame(connection, request)
            reply = receive_frame(connection, REPLY_BYTES_MAX)
        except OSError as error:
            raise QuestionFailed(f"the workspace does not answer: {error.strerror}") from error
        if reply is None:
            raise QuestionFailed("the workspace has ended")
        return json.dumps({"answer": {"reply": base64.b64encode(reply).decode()}}).encode()

    def close(self) -> None:
        """Close the connections."""
        for used in (
            self._listener,
            self._connection,
            self._step_listener,
            self._step_connection,
        ):
            if used is not None:
                used.close()

    def _ask_about_step(self) -> bytes:
        """Tell the orchestrator that a step ended; return its reply."""
        try:
            if self._step_connection is None and self._step_listener is not None:
                self._step_listener.settimeout(CONNECT_TIMEOUT_S)
                self._step_connection, _ = self._step_listener.accept()
            if self._step_connection is None:
                raise QuestionFailed("the task has no steps")
            send_frame(self._step_connection, b"{}")
            reply = receive_frame(self._step_connection, REPLY_BYTES_MAX)
        except OSError as error:
            raise QuestionFailed(f"the run does not answer: {error.strerror}") from error
        is_ready = reply is not None and json.loads(reply).get("ready") is True
        return json.dumps({"answer": {"ready": is_ready}}).encode()

    def _connected(self) -> socket.socket:
        if self._connection is None:
            self._listener.settimeout(CONNECT_TIMEOUT_S)
            self._connection, _ = self._listener.accept()
            # No other program of the workspace can take the place of the helper.
            self._listener.close()
            with suppress(OSError):
                os.unlink(self._path)
        return self._connection


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        # The box runs as another user; only this user and the box can enter the folder.
        path.chmod(0o666)
        listener.listen(1)
    except OSError as error:
        listener.close()
        raise InfraError(f"cannot listen at {path}: {error.strerror}") from error
    return listener


def open_outside(spec: EpisodeSpec) -> Outside:
    """Listen for the box of an episode.

    Raises:
        SpecError: the orchestrator passed no folder.
        InfraError: the folder cannot be used.
    """
    settings = spec.data_source.settings if spec.data_source else {}
    folder = settings.get(SETTING)
    if not isinstance(folder, str):
        raise SpecError("data_source", "an episode in a workspace needs the folder of its socket")
    steps = settings.get(STEPS)
    return WorkspaceOutside(Path(folder), Path(steps) if isinstance(steps, str) else None)
