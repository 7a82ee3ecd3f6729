"""Mini-SWE-agent as it is published: its model behind a base URL, its only tool a shell in the box."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

HELPER = "/fumehood/bin/fumehood"
LAST_RUN = Path("/tmp/last_run.json")
HOW = f"""
This is not about files. Everything that you can do is behind one command: `{HELPER} tools` lists tools,
as JSON, and `{HELPER} call NAME 'JSON'` calls one. Your answer goes behind the word that ends your work:
`echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 'ANSWER'`.
"""


def main() -> None:
    """Let it work on the task until it says that it is done, then hand in what it said."""
    task = subprocess.run([HELPER, "task"], capture_output=True, text=True, check=True).stdout
    with urlopen(os.environ["OPENAI_BASE_URL"] + "/models") as answer:
        model = json.load(answer)["data"][0]["id"]
    switches = ["--yolo", "--exit-immediately", "--cost-limit", "0"]
    words = ["--model", f"openai/{model}", "--task", task + HOW, "--output", str(LAST_RUN)]
    subprocess.run([sys.executable, "-m", "minisweagent.run.mini", *switches, *words], check=True)
    said = json.loads(LAST_RUN.read_text())["info"]["submission"]
    subprocess.run([HELPER, "submit", said.strip()], check=True)


main()
