"""OpenAI's Agents SDK, unmodified: model by base URL, tools by MCP over a pipe."""

import asyncio
import subprocess

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import OpenAI

HELPER = "/fumehood/bin/fumehood"


async def main() -> None:
    """Run the agent on the task and submit its final answer."""
    set_tracing_disabled(True)  # There is no network for sending traces.
    task = subprocess.run([HELPER, "task"], capture_output=True, text=True, check=True).stdout
    async with MCPServerStdio({"command": HELPER, "args": ["mcp"]}) as seat:
        model = OpenAI().models.list().data[0].id
        agent = Agent(
            name="agent", instructions="Do what you are asked.", mcp_servers=[seat], model=model
        )
        result = await Runner.run(agent, task, max_turns=30)
    subprocess.run([HELPER, "submit", str(result.final_output)], check=True)


asyncio.run(main())
