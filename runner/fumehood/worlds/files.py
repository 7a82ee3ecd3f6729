"""A flat store of text files (docs/reference/toolmisuse.md, Worlds)."""

from __future__ import annotations

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_json
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject, tool

_TOOLS = (
    tool("read_file", "Read one file.", path="string"),
    tool("write_file", "Create a file or replace its content.", path="string", content="string"),
    tool("list_dir", "List the entries of a folder.", path="string"),
)


class Files:
    """State: ``files``, a map from path to content. Folders exist only as path prefixes."""

    toolset_id = "files_v1"

    def __init__(self, state: JsonObject) -> None:
        """Use ``state`` as the state of the world.

        Raises:
            SpecError: ``files`` is there and is not an object.
        """
        if not isinstance(state.get("files", {}), dict):
            raise SpecError("initial_state.files", "must be an object of contents by path")
        self.state = state
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the three tools."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call with valid arguments."""
        path = str(call.arguments["path"])
        match call.tool_name:
            case "read_file":
                return self._read(path)
            case "write_file":
                return self._write(path, call.arguments["content"])
            case _:
                return self._list(path)

    def _files(self) -> JsonObject:
        if "files" not in self.state:
            self.state["files"] = {}
            self.revision += 1
        files = self.state["files"]
        assert isinstance(files, dict)
        return files

    def _read(self, path: str) -> ToolResult:
        files = self._files()
        if path not in files:
            return reject("not_found", "File not found.")
        return Value({"path": path, "content": copy_json(files[path])})

    def _write(self, path: str, content: Json) -> ToolResult:
        self._files()[path] = content
        self.revision += 1
        # The number of characters; the reference calls it bytes.
        return Value({"path": path, "bytes_written": len(str(content))})

    def _list(self, path: str) -> ToolResult:
        folder = path.rstrip("/")
        prefix = f"{folder}/" if folder else ""
        names = {
            stored[len(prefix) :].split("/", 1)[0]
            for stored in self._files()
            if stored.startswith(prefix) and len(stored) > len(prefix)
        }
        entries: list[Json] = [*sorted(names)]
        return Value({"path": path, "entries": entries})
