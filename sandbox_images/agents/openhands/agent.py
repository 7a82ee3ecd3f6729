"""The SDK of OpenHands, unmodified: model by base URL, tools by MCP over a pipe."""

import json
import os
from urllib.request import urlopen

from openhands.sdk import LLM, Agent, Conversation
from openhands.sdk.conversation.response_utils import get_agent_final_response
from seat import HELPER, converse

BASE = os.environ["OPENAI_BASE_URL"]
with urlopen(BASE + "/models") as models:
    MODEL = json.load(models)["data"][0]["id"]
# The gateway already retries.
llm = LLM(model=f"openai/{MODEL}", base_url=BASE, api_key="none", num_retries=0)
seat = {"command": HELPER, "args": ["mcp"]}
agent = Agent(llm=llm, tools=[], mcp_config={"seat": seat})
conversation = Conversation(agent=agent, workspace="/tmp", visualizer=None)


def answer(message: str) -> str:
    """Answer a message of the user."""
    conversation.send_message(message)
    conversation.run()
    return get_agent_final_response(conversation.state.events)


converse(answer)
# Closing the library takes seconds.
os._exit(0)
