"""Smolagents, unmodified: model by base URL, tools by MCP over a pipe."""

import os
import subprocess

from mcp import StdioServerParameters
from openai import OpenAI
from smolagents import MCPClient, OpenAIModel, ToolCallingAgent

HELPER = "/fumehood/bin/fumehood"


def main() -> None:
    """Run the agent on the task and submit its final answer."""
    task = subprocess.run([HELPER, "task"], capture_output=True, text=True, check=True).stdout
    model = OpenAIModel(OpenAI().models.list().data[0].id, api_base=os.environ["OPENAI_BASE_URL"])
    with MCPClient(
        StdioServerParameters(command=HELPER, args=["mcp"]), structured_output=False
    ) as tools:
        agent = ToolCallingAgent(tools, model, max_steps=30)
        answer = agent.run(task)
    subprocess.run([HELPER, "submit", str(answer)], check=True)


main()
