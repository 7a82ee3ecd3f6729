"""Calls every tool once, without arguments, and submits the results. Put your logic here."""

import asyncio

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

FUMEHOOD = StdioServerParameters(command="/fumehood/bin/fumehood", args=["mcp"])
ENDINGS = ("submit", "give_up")


async def work(client):
    """Handle one user turn, and return whether another one follows."""
    tools = [tool.name for tool in (await client.list_tools()).tools if tool.name not in ENDINGS]
    results = [
        f"{name}: {(await client.call_tool(name, {})).content[0].text}"[:200] for name in tools
    ]
    ending = await client.call_tool("submit", {"answer": "\n".join(results)})
    return "next" in ending.meta["fumehood.v1"]


async def main():
    """Connect to the seat; `client.instructions` is the instruction of the task."""
    async with Client(stdio_client(FUMEHOOD)) as client:
        while await work(client):
            pass


asyncio.run(main())
