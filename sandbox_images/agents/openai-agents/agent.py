"""OpenAI's Agents SDK as it is published: its model behind a base URL, its tools by MCP over a pipe."""

import asyncio
import subprocess

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import OpenAI

HELPER = "/fumehood/bin/fumehood"


async def main() -> None:
    """Work on the task until the model has nothing more to call, then hand its last words in."""
    set_tracing_disabled(True)  # There is nobody to send traces to.
    task = subprocess.run([HELPER, "task"], capture_output=True, text=True, check=True).stdout
    async with MCPServerStdio({"command": HELPER, "args": ["mcp"]}) as seat:
        model = OpenAI().models.list().data[0].id
        agent = Agent(
            name="agent", instructions="Do what you are asked.", mcp_servers=[seat], model=model
        )
        result = await Runner.run(agent, task, max_turns=30)
    subprocess.run([HELPER, "submit", str(result.final_output)], check=True)


asyncio.run(main())
