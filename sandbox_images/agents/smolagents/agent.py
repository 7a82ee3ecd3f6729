"""Smolagents, unmodified: model by base URL, tools by MCP over a pipe."""

import os

from mcp import StdioServerParameters
from openai import OpenAI
from seat import HELPER, converse
from smolagents import AgentMemory, LogLevel, MCPClient, OpenAIModel, ToolCallingAgent

SEAT = StdioServerParameters(command=HELPER, args=["mcp"])
model = OpenAIModel(OpenAI().models.list().data[0].id, api_base=os.environ["OPENAI_BASE_URL"])
memory: list[AgentMemory] = []  # Of the last message.


def answer(message: str) -> object:
    """Answer a message of the user, with the tools that are available now."""
    with MCPClient(SEAT, structured_output=False) as tools:
        agent = ToolCallingAgent(tools, model, max_steps=30, verbosity_level=LogLevel.ERROR)
        agent.memory = memory.pop() if memory else agent.memory
        result = agent.run(message, reset=not agent.memory.steps)
        memory.append(agent.memory)
    return result


converse(answer)
