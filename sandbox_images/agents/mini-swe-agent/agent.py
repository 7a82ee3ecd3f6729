"""Mini-SWE-agent, unmodified: model by base URL, a shell in the box as its only tool."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

HELPER = "/fumehood/bin/fumehood"
LAST_RUN = Path("/tmp/last_run.json")
HOW = f"""
This task is not about files. Use the command {HELPER}: `{HELPER} tools` lists the tools as JSON,
and `{HELPER} call NAME 'JSON'` calls a tool. To finish, print your answer like this:
`echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 'ANSWER'`.
"""


def main() -> None:
    """Run the agent on the task and submit its final answer."""
    task = subprocess.run([HELPER, "task"], capture_output=True, text=True, check=True).stdout
    with urlopen(os.environ["OPENAI_BASE_URL"] + "/models") as models:
        model = json.load(models)["data"][0]["id"]
    switches = ["--yolo", "--exit-immediately", "--cost-limit", "0"]
    words = ["--model", f"openai/{model}", "--task", task + HOW, "--output", str(LAST_RUN)]
    subprocess.run([sys.executable, "-m", "minisweagent.run.mini", *switches, *words], check=True)
    answer = json.loads(LAST_RUN.read_text())["info"]["submission"]
    subprocess.run([HELPER, "submit", answer.strip()], check=True)


main()
