"""Mini-SWE-agent, unmodified: model by base URL, a shell as its only tool."""

import json
import os
from urllib.request import urlopen

from minisweagent.run.mini import app
from seat import HELPER, ask, converse

TOOLS = f"""
This task is not about files. Use the command {HELPER}: `{HELPER} tools` lists the tools as JSON,
and `{HELPER} call NAME 'JSON'` calls a tool. To finish, print your answer like this:
`echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 'ANSWER'`.
"""
with urlopen(os.environ["OPENAI_BASE_URL"] + "/models") as models:
    MODEL = json.load(models)["data"][0]["id"]
SWITCHES = ["--yolo", "--exit-immediately", "--cost-limit", "0", "--model", f"openai/{MODEL}"]
IN_WORKSPACE = any(tool["name"] == "bash" for tool in json.loads(ask("tools")))
HOW, ENVIRONMENT = ("", "workspace.Workspace") if IN_WORKSPACE else (TOOLS, "local")
earlier: list[str] = []


def answer(message: str) -> str:
    """Answer a message of the user; the command remembers nothing, so the task has all of them."""
    words = ["--environment-class", ENVIRONMENT, "--task", "".join(earlier) + message + HOW]
    # Its record of the conversation can exceed the largest file of a box.
    words += ["--output", "/dev/null"]
    ended = app([*SWITCHES, *words], standalone_mode=False).messages[-1]
    text = ended["extra"]["submission"].strip()
    earlier.append(f"The user wrote: {message}\nYour answer was: {text}\nNow the user writes: ")
    return text


converse(answer)
