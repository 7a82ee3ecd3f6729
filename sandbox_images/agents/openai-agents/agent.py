"""OpenAI's Agents SDK, unmodified: model by base URL, tools by MCP over a pipe."""

import asyncio

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import OpenAI
from seat import HELPER, converse

set_tracing_disabled(True)  # There is no network for sending traces.
model = OpenAI().models.list().data[0].id
said = []


async def answer(message: str) -> str:
    """Answer a message of the user, with the tools that are available now."""
    async with MCPServerStdio({"command": HELPER, "args": ["mcp"]}) as seat:
        agent = Agent(
            name="agent", instructions="Do what you are asked.", mcp_servers=[seat], model=model
        )
        said.append({"role": "user", "content": message})
        result = await Runner.run(agent, said, max_turns=30)
    said[:] = result.to_input_list()
    return result.final_output


with asyncio.Runner() as runner:
    converse(lambda message: runner.run(answer(message)))
