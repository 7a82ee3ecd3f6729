"""Calls every tool once, without arguments, and answers with what they said. Begin here."""

import asyncio

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

FUMEHOOD = StdioServerParameters(command="/fumehood/bin/fumehood", args=["mcp"])
ENDINGS = ("submit", "give_up")


async def work(client):
    """Do what the user asks; return whether there is more."""
    tools = [tool.name for tool in (await client.list_tools()).tools if tool.name not in ENDINGS]
    said = [f"{name}: {(await client.call_tool(name, {})).content[0].text}"[:200] for name in tools]
    ending = await client.call_tool("submit", {"answer": "\n".join(said)})
    return "next" in ending.meta["fumehood.v1"]


async def main():
    """Sit down; what to do is in `client.instructions`."""
    async with Client(stdio_client(FUMEHOOD)) as client:
        while await work(client):
            pass


asyncio.run(main())
