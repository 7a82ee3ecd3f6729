"""Executes the script in its task by MCP over a pipe, and prints its observations.

The server is the command in the box. ``_meta`` contains what MCP does not define.
The README of the protocol cases describes the steps.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

Json = dict[str, Any]

BOX_SOCKET_DIR = os.path.dirname(os.environ.get("FUMEHOOD_SOCKET", "/fumehood/grpc.sock"))
PROTOCOL = "2025-06-18"
META = "fumehood.v1"
ENDINGS = ("submit", "give_up")
UNDER_WAY_S = 0.005
"""After which a call that was sent is on its way."""


class Server:
    """The command in the box, as MCP's stdio transport has it: a message a line."""

    def __init__(self) -> None:
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([f"{BOX_SOCKET_DIR}/bin/fumehood", "mcp"], **pipes)
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        Thread(target=self._read, daemon=True).start()
        self._number = 0
        client = {"name": "conformance", "version": "0"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        self.instructions: str = self.ask("initialize", json.dumps(hello))["instructions"]
        self._say('{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def send(self, method: str, params: str) -> int:
        """Send a request, its parameters as the text they are, and return its number."""
        self._number += 1
        self._say(f'{{"jsonrpc":"2.0","id":{self._number},"method":"{method}","params":{params}}}')
        return self._number

    def ask(self, method: str, params: str = "{}", deadline_ms: int | None = None) -> Json:
        """Return the result of a request.

        Raises:
            queue.Empty: it was not there in time.
        """
        number = self.send(method, params)
        timeout_s = None if deadline_ms is None else deadline_ms / 1000
        # A late answer whose caller has stopped waiting is dropped.
        while (answer := json.loads(self._lines.get(timeout=timeout_s)))["id"] != number:
            pass
        result: Json = answer["result"]
        return result

    def end(self) -> None:
        """Hang up at once."""
        self._process.kill()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)


class Interpreter:
    """Does one step after the other and tells what it saw."""

    def __init__(self) -> None:
        self._server = Server()
        self._ended = False

    def work(self) -> list[Json]:
        """Carry out every script there is; return all observations."""
        observed: list[Json] = []
        instruction: str | None = self._server.instructions
        while instruction is not None:
            observations = [self._do(step) for step in json.loads(instruction)["steps"]]
            observed += observations
            instruction = None if self._ended else self._answer(json.dumps(observations))
        self._server.end()
        return observed

    def _do(self, step: Json) -> Json:
        match step:
            case {"do": "task"}:
                return self._tell_task()
            case {"do": "call"}:
                return self._reply(step, json.dumps(step["arguments"]))
            case {"do": "raw_call"}:
                # A line's end would end the message; to JSON it is a blank.
                return self._reply(step, step["text"].replace("\n", " "))
            case {"do": "submit" | "give_up"}:
                return self._end(step)
            case {"do": "cancel_stream"}:
                second = Server()
                second.send("tools/call", _called(step, json.dumps(step["arguments"])))
                time.sleep(UNDER_WAY_S)
                second.end()
                return {"cancelled": True}
            case {"do": "reconnect"}:
                self._server.end()
                self._server = Server()
                return {"reconnected": True}
        raise ValueError(f"no such step: {step}")

    def _tell_task(self) -> Json:
        listed = self._server.ask("tools/list")
        metadata = listed["_meta"][META]
        left = {
            kind: int(units) for kind, units in metadata["remaining"].items() if kind != "wall_ms"
        }
        tools = [tool["name"] for tool in listed["tools"] if tool["name"] not in ENDINGS]
        return {"turn": metadata["turn"], "tools": tools, "remaining": left}

    def _reply(self, step: Json, arguments: str) -> Json:
        try:
            result = self._server.ask(
                "tools/call", _called(step, arguments), step.get("deadline_ms")
            )
        except Empty:
            return {"deadline": True}
        metadata, text = result["_meta"][META], result["content"][0]["text"]
        self._ended = self._ended or metadata.get("ended", False)
        if "refusal" in metadata:
            return _refusal(text)
        ended = {"ended": True} if metadata.get("ended") else {}
        if result.get("isError"):
            return {"failure": json.loads(text)} | ended
        if "measure" in step:
            return {"bytes": len(json.loads(text)[step["measure"]].encode())} | ended
        return {"value": json.loads(text)} | ended

    def _end(self, step: Json) -> Json:
        arguments = {name: step[name] for name in ("answer", "reason") if name in step}
        result = self._server.ask(
            "tools/call", json.dumps({"name": step["do"], "arguments": arguments})
        )
        metadata = result["_meta"][META]
        if "refusal" in metadata:
            return _refusal(result["content"][0]["text"])
        self._ended = True
        return {"accepted": metadata.get("accepted", False)}

    def _answer(self, text: str) -> str | None:
        """Submit; return what the user says then."""
        submitted = {"name": "submit", "arguments": {"answer": text}}
        metadata = self._server.ask("tools/call", json.dumps(submitted))["_meta"][META]
        return metadata["next"]["instruction"] if "next" in metadata else None


def _called(step: Json, arguments: str) -> str:
    """Return the parameters of a call, its arguments as the text they are."""
    meta = json.dumps({"fumehood.v1/call_id": step["id"]} if "id" in step else {})
    spliced = f'"arguments":{arguments},' if arguments else ""
    return f'{{"name":{json.dumps(step["tool"])},{spliced}"_meta":{meta}}}'


def _refusal(text: str) -> Json:
    refusal: Json = json.loads(text)
    return refusal if refusal["limit"] else {"refusal": refusal["refusal"]}


if __name__ == "__main__":
    print(json.dumps(Interpreter().work()))
