"""A plain MCP client: its model is offered whatever tools there are, until it has no more to call."""

import asyncio
import json
import os
import sys
from urllib.request import Request, urlopen

from mcp import Client, StdioServerParameters

SEATS = {
    "stdio": StdioServerParameters(command="/fumehood/bin/fumehood", args=["mcp"]),
    "http": "http://127.0.0.1:4141/mcp",
}
TURNS_MAX = 30


def ask(path: str, request: dict | None = None) -> dict:
    """Ask the model's provider."""
    body = None if request is None else json.dumps(request).encode()
    headers = {"content-type": "application/json"}
    with urlopen(Request(os.environ["OPENAI_BASE_URL"] + path, body, headers)) as answer:
        return json.load(answer)


async def main() -> None:
    """Work on the task until the model has nothing more to call, then hand its last words in."""
    model = ask("/models")["data"][0]["id"]
    async with Client(SEATS[sys.argv[1]]) as seat:
        tools = [
            {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.input_schema,
            }
            for tool in (await seat.list_tools()).tools
        ]
        offered = [{"type": "function", "function": tool} for tool in tools]
        messages = [{"role": "user", "content": seat.instructions}]
        for _ in range(TURNS_MAX):
            request = {"model": model, "messages": messages, "tools": offered, "max_tokens": 1024}
            said = ask("/chat/completions", request)["choices"][0]["message"]
            messages.append(said)
            if not said.get("tool_calls"):
                await seat.call_tool("submit", {"answer": said["content"]})
                return
            for call in said["tool_calls"]:
                asked = call["function"]
                result = await seat.call_tool(asked["name"], json.loads(asked["arguments"]))
                told = {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": result.content[0].text,
                }
                messages.append(told)
        await seat.call_tool("give_up", {"reason": f"no end after {TURNS_MAX} turns"})


asyncio.run(main())
